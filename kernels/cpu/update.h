/* SPDX-License-Identifier: Apache-2.0 */
/* What every update reads of the step. */
#ifndef CPU_UPDATE_H
#define CPU_UPDATE_H

#include "kernels/cpu/family.h"
#include "kernels/rules/step.h"

static inline double cpu_update_number(const nxk_kernel *kernel, const nxk_frame *frame,
                                       const rule_step *step, uint32_t which) {
  return *(const double *)cpu_in_at(kernel, frame, rule_input(step, which));
}

static inline rule_step cpu_update_step(const nxk_kernel *kernel, const nxk_frame *frame) {
  rule_step step = rule_step_of(&kernel->operator);
  step.lr = cpu_update_number(kernel, frame, &step, NX_UPDATE_LR);
  step.decay = cpu_update_number(kernel, frame, &step, NX_UPDATE_DECAY);
  step.scale = cpu_update_number(kernel, frame, &step, NX_UPDATE_SCALE);
  rule_step_count(&step, *(const int64_t *)cpu_in_at(kernel, frame, rule_input(&step, NX_UPDATE_STEP)) + 1);
  step.stochastic = frame->stochastic;
  step.seed = frame->seed;
  return step;
}

#endif
