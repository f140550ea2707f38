/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules in double, for ref's two files of them. */
#ifndef REF_UPDATE_H
#define REF_UPDATE_H

#include "kernels/ref/ref.h"

#include <math.h>

typedef double real;

static inline real rule_sqrt(real x) {
  return sqrt(x);
}

static inline real rule_cbrt(real x) {
  return cbrt(x);
}

static inline real rule_stored(real x, nx_dtype type) {
  switch (type) {
  case NX_f32: return (double)(float)x;
  case NX_bf16: return (double)nx_bf16_to_float(nx_bf16_from_double(x));
  case NX_f16: return (double)nx_f16_to_float(nx_f16_from_double(x));
  default: return x;
  }
}

#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* that ask for vectors */
#include "kernels/rules/element.h"

static inline rule_step ref_step(const ref_call *call) {
  rule_step step = rule_step_of(call->operator);
  ref_operand lr = ref_in(call, rule_input(&step, NX_UPDATE_LR));
  ref_operand decay = ref_in(call, rule_input(&step, NX_UPDATE_DECAY));
  ref_operand scale = ref_in(call, rule_input(&step, NX_UPDATE_SCALE));
  ref_operand now = ref_in(call, rule_input(&step, NX_UPDATE_STEP));
  step.lr = ref_load(&lr, 0);
  step.decay = ref_load(&decay, 0);
  step.scale = ref_load(&scale, 0);
  rule_step_count(&step, ref_index(&now, 0) + 1);
  step.stochastic = call->frame->stochastic;
  step.seed = call->frame->seed;
  return step;
}

#endif
