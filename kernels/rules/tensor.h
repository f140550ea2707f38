/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends share of the rules of whole tensors: numbers of a step that hang on a tensor. */
#ifndef KERNELS_RULES_TENSOR_H
#define KERNELS_RULES_TENSOR_H

#include "kernels/rules/step.h"

/* Attributes that all rules of tensors begin with. */
enum { RULE_ROW_START, RULE_COLUMN_START, RULE_TENSOR_ROWS };

/* The squared norm that NovoGrad keeps. */
static inline double rule_novograd_second(const rule_step *step, double before, double norm) {
  const double beta2 = step->number[NX_novograd_beta2];
  return before == 0 ? norm : beta2 * before + (1 - beta2) * norm;
}

static inline double rule_novograd_bound(const rule_step *step, double p_norm, double m_norm) {
  const double *number = step->number;
  return fmin(step->lr, number[NX_novograd_luc_trust] * p_norm / (m_norm + number[NX_novograd_luc_epsilon]));
}

static const double rule_adafactor_square = 1e-30, /* added to squares */
    rule_adafactor_size = 1e-3;                    /* least size of a tensor */

static inline double rule_adafactor_decay(const rule_step *step) {
  return 1 - pow((double)step->count, step->number[NX_adafactor_decay_rate]);
}

/* `size`: the root mean square of p. */
static inline double rule_adafactor_rate(const rule_step *step, double size) {
  const double *number = step->number;
  double count = (double)step->count, rate = step->lr;
  double first = number[NX_adafactor_warmup_init] != 0 ? 1e-6 * count : 1e-2;
  if (number[NX_adafactor_relative_step] != 0) rate = fmin(first, 1 / sqrt(count));
  if (number[NX_adafactor_scale_parameter] != 0) rate *= fmax(rule_adafactor_size, size);
  return rate;
}

#endif
