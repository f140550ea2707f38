/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate, step by step: segments in order, of which each holds from its first step on.
 *
 * Every named schedule (schema/schedules.def) is lowered to segments here; nothing behind this knows names.
 * The first begins at step 0. Numbers as in schema/segment.h. */
#ifndef NXC_RECORDS_LEARNING_RATE_H
#define NXC_RECORDS_LEARNING_RATE_H

#include "compiler/settings/settings.h"
#include "schema/segment.h"

enum { NXC_MAX_SEGMENTS = 8 };

typedef struct nxc_learning_rate {
  nx_segment segments[NXC_MAX_SEGMENTS];
  size_t n_segments;
  int64_t max_steps; /* of the training */
} nxc_learning_rate;

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *settings);

/* The same schedule from another peak to another minimum. */
nxc_learning_rate nxc_learning_rate_between(const nxc_settings *settings, double peak, double least);

double nxc_learning_rate_at(const nxc_learning_rate *rate, int64_t step);

#endif
