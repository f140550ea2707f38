/* SPDX-License-Identifier: Apache-2.0 */
/* How many sequences there are in a step, and in each pass. */
#ifndef NXC_RECORDS_BATCH_H
#define NXC_RECORDS_BATCH_H

#include "compiler/program/records/layout.h"

typedef struct nxc_batch {
  int64_t micro, global;
  int64_t n_micro; /* micro-batches of a rank in a step */
} nxc_batch;

nxc_batch nxc_batch_read(const nxc_settings *settings, const nxc_layout *layout);

#endif
