/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate, step by step. */
#ifndef NXC_RECORDS_LEARNING_RATE_H
#define NXC_RECORDS_LEARNING_RATE_H

#include "compiler/settings/settings.h"

typedef struct nxc_learning_rate {
  int64_t shape, warmup_steps, constant_steps, max_steps;
  double lr, min_lr;
} nxc_learning_rate;

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *settings);

#endif
