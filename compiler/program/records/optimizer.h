/* SPDX-License-Identifier: Apache-2.0 */
/* The update rule and its numbers, and what of it is divided over the ranks, and when that is exchanged. */
#ifndef NXC_RECORDS_OPTIMIZER_H
#define NXC_RECORDS_OPTIMIZER_H

#include "compiler/settings/settings.h"
#include "schema/optimizers.h"

typedef struct nxc_optimizer {
  const nx_optimizer_row *rule; /* NULL: there is no such operator */
  bool norm_weight_decay;
  double beta1, beta2, epsilon, weight_decay;
  double clip_norm; /* DBL_MAX: gradients are not clipped */
} nxc_optimizer;

/* ZeRO, and the reductions and gathers of ranges. */
typedef struct nxc_sharding {
  uint32_t stage;
  uint32_t axis; /* atoms that may be divided over, once there is a mesh */
  bool reshard_after_forward, overlap_reduce, overlap_gather, reduce_once;
  uint64_t bucket_elements; /* 0: not given */
  uint64_t keep_below;
} nxc_sharding;

nxc_optimizer nxc_optimizer_read(const nxc_settings *settings);
nxc_sharding nxc_sharding_read(const nxc_settings *settings);

#endif
