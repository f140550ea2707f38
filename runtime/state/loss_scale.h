/* SPDX-License-Identifier: Apache-2.0 */
/* The factor that gradients carry from the loss to the update, so that those in fp16 do not vanish.
 *
 * A step whose gradient norm is no number is skipped: weights and moments stay, and steps are counted without
 * it. A dynamic factor then falls, and rises after many good steps (DeepSpeed's DynamicLossScaler, Megatron's
 * DynamicGradScaler). It follows from the norms alone, which all ranks share. */
#ifndef NXR_LOSS_SCALE_H
#define NXR_LOSS_SCALE_H

#include "schema/plan.h"

#include <stdbool.h>

typedef struct nxr_loss_scale {
  double factor;
  uint32_t n_good; /* steps since it changed, or a step was skipped */
  uint32_t n_left; /* skipped steps until it falls */
  uint64_t n_skipped, n_samples; /* steps, and the samples in them */
} nxr_loss_scale;

static inline bool nxr_loss_scale_is_used(const nx_run *run) {
  return run->loss_scale != NX_NONE;
}

nxr_loss_scale nxr_loss_scale_begin(const nx_run *run);
/* After a step of these samples. False where the plan ends the run: an overflow of a factor that is fixed or
 * at its least. */
bool nxr_loss_scale_next(nxr_loss_scale *scale, const nx_run *run, bool skipped, uint64_t n_samples);

#endif
