/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of one update, the same for every element. */
#ifndef KERNELS_RULES_STEP_H
#define KERNELS_RULES_STEP_H

#include "kernels/backend.h"
#include "schema/optimizers.h"

#include <math.h>

typedef struct rule_step {
  double number[NX_MAX_ATTRS]; /* of the rule, by attribute */
  double power[NX_MAX_ATTRS];  /* number^count */
  double lr, decay, scale;
  int64_t count;               /* of steps, this one included */
  bool stochastic;             /* how it is rounded to bf16, with this seed */
  uint64_t seed;
  bool parted;                 /* this is a box of a tensor, which is there as a whole too */
  uint32_t n_states;
  nx_dtype param, states[NX_MAX_STATES]; /* as what they are stored */
} rule_step;

/* Input `which` (NX_UPDATE_*) of an update; from NX_UPDATE_END on p, states and gradient of a whole
 * tensor. */
static inline uint32_t rule_input(const rule_step *step, uint32_t which) {
  return 1 + step->n_states + which;
}

/* What a number, or its power, leaves of 1: a device without fp64 has these better than the numbers. */
static inline double rule_rest(const rule_step *step, int number) {
  return 1 - step->number[number];
}

static inline double rule_left(const rule_step *step, int number) {
  return 1 - step->power[number];
}

/* All but lr, decay, scale and count, which are in memory. */
static inline rule_step rule_step_of(const nxk_operator *operator) {
  rule_step step = {.n_states = nx_optimizer_n_states(nx_optimizer_of(operator->op)),
                    .param = operator->args[0].dtype};
  step.parted = operator->n_in > 1 + step.n_states + NX_UPDATE_END;
  for (uint32_t i = 0; i < step.n_states; i++) step.states[i] = operator->args[1 + i].dtype;
  for (uint32_t i = 0; i < operator->n_attrs; i++)
    step.number[i] = operator->attrs[i].kind == NXK_REAL ? operator->attrs[i].real
                                                         : (double)operator->attrs[i].integer;
  return step;
}

static inline void rule_step_count(rule_step *step, int64_t count) {
  step->count = count;
  for (uint32_t i = 0; i < NX_MAX_ATTRS; i++) step->power[i] = pow(step->number[i], (double)count);
}

#endif
