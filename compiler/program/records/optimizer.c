/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/optimizer.h"

#include "compiler/program/records/read.h"

#include <float.h>

nxc_optimizer nxc_optimizer_read(const nxc_settings *s) {
  size_t n_betas;
  const nxc_value *betas = nxc_list(s, NX_SETTING_OPTIMIZER_BETAS, &n_betas);
  return (nxc_optimizer){.rule = nx_optimizer_find(nxc_text(s, NX_SETTING_OPTIMIZER_NAME)),
                         .norm_weight_decay = nxc_flag(s, NX_SETTING_OPTIMIZER_NORM_WEIGHT_DECAY),
                         .beta1 = n_betas > 0 ? betas[0].number : 0,
                         .beta2 = n_betas > 1 ? betas[1].number : 0,
                         .epsilon = nxc_number(s, NX_SETTING_OPTIMIZER_EPSILON),
                         .weight_decay = nxc_number(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY),
                         .clip_norm = nxc_number_or(s, NX_SETTING_OPTIMIZER_CLIP_NORM, DBL_MAX)};
}

nxc_sharding nxc_sharding_read(const nxc_settings *s) {
  nxc_sharding sharding = {.stage = (uint32_t)nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE),
                           .reshard_after_forward = nxc_flag(s, NX_SETTING_OPTIMIZER_RESHARD_AFTER_FORWARD),
                           .overlap_reduce = nxc_flag(s, NX_SETTING_REDUCE_OVERLAP),
                           .overlap_gather = nxc_flag(s, NX_SETTING_GATHER_OVERLAP),
                           .reduce_once = nxc_flag(s, NX_SETTING_REDUCE_ONCE),
                           .bucket_elements = (uint64_t)nxc_int_or(s, NX_SETTING_REDUCE_BUCKET_ELEMENTS, 0)};
  if (sharding.stage == 3) sharding.keep_below = (uint64_t)nxc_int(s, NX_SETTING_GATHER_KEEP_BELOW);
  return sharding;
}
