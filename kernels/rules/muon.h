/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends share of muon. Whoever includes this says before in what it is computed: the type
 * `real`. */
#ifndef KERNELS_RULES_MUON_H
#define KERNELS_RULES_MUON_H

#include "kernels/rules/step.h"

/* Of muon: the mean of gradients, and the direction that is made orthogonal. */
static inline void rule_muon_direction(const rule_step *step, real *restrict m, const real *restrict g,
                                       real *restrict direction, int64_t n) {
  const real momentum = (real)step->number[NX_muon_momentum],
             rest = (real)(1 - step->number[NX_muon_momentum]);
  const real scale = (real)step->scale;
  const bool nesterov = step->number[NX_muon_nesterov] != 0;
  const real of_gradient = nesterov ? rest : 0, of_mean = nesterov ? momentum : 1;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real mean = momentum * m[i] + rest * gradient;
    m[i] = mean;
    direction[i] = of_gradient * gradient + of_mean * mean;
  }
}

/* The learning rate of a tensor of this shape. */
static inline double rule_muon_rate(const rule_step *step, double rows, double columns) {
  const double scales[] = {1, sqrt(fmax(1, rows / columns)), sqrt(fmax(rows, columns)), sqrt(rows / columns)};
  return step->lr * step->number[NX_muon_update_factor] * scales[(int)step->number[NX_muon_update_scale]];
}

/* X becomes a X + (b X X^T + c (X X^T)^2) X, time and again: its singular values come near 1. By
 * ns_coefficients, a row for each step of five, and again from the first. */
enum { RULE_MUON_ROUND = 5 };
static const double rule_muon_coefficients[2][RULE_MUON_ROUND][3] = {
    {{3.4445, -4.7750, 2.0315},
     {3.4445, -4.7750, 2.0315},
     {3.4445, -4.7750, 2.0315},
     {3.4445, -4.7750, 2.0315},
     {3.4445, -4.7750, 2.0315}},
    {{4.0848, -6.8946, 2.9270},
     {3.9505, -6.3029, 2.6377},
     {3.7418, -5.5913, 2.3037},
     {2.8769, -3.1427, 1.2046},
     {2.8366, -3.0525, 1.2012}},
};

static inline const double *rule_muon_coefficients_of(const rule_step *step, int64_t iteration) {
  return rule_muon_coefficients[(int)step->number[NX_muon_ns_coefficients]][iteration % RULE_MUON_ROUND];
}

static const double rule_muon_epsilon = 1e-7; /* the norm that it is first divided by is no less */

#endif
