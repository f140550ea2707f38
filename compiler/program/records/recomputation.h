/* SPDX-License-Identifier: Apache-2.0 */
/* What the backward pass computes again instead of reading what the forward pass kept. */
#ifndef NXC_RECORDS_RECOMPUTATION_H
#define NXC_RECORDS_RECOMPUTATION_H

#include "compiler/program/records/layout.h"

typedef struct nxc_recomputation {
  bool full, block;    /* block: the first layers of each chunk only */
  bool distribute;     /* what is kept for it is divided over the tensor-parallel ranks */
  int64_t layers;      /* that are computed again together; block: how many */
  const nxc_value *modules; /* list, or NULL */
  size_t n_modules;
} nxc_recomputation;

nxc_recomputation nxc_recomputation_read(const nxc_settings *settings, const nxc_layout *layout);

#endif
