/* SPDX-License-Identifier: Apache-2.0 */
/* The ELEMENT rules of schema/optimizers.def: what each does to a run of elements.
 *
 * They are written once. Whoever includes this says before in what they are computed: the type `real`, and
 * rule_sqrt, rule_cbrt and rule_stored (a number as it is when it has been stored in a type). ref computes in
 * double, cpu in float, where each loop becomes vectors. Numbers of the step are made in double, so that both
 * start from the same.
 *
 * p and states are read and written in place; g is not yet scaled. A rule reads states as they were stored,
 * and new ones before they are, unless it says otherwise. */
#ifndef KERNELS_RULES_ELEMENT_H
#define KERNELS_RULES_ELEMENT_H

#include "kernels/rules/step.h"

static inline real rule_sign(real x) {
  return x > 0 ? 1 : x < 0 ? -1 : x; /* of a NaN that */
}

static inline real rule_max(real a, real b) {
  return a > b ? a : b;
}

static inline real rule_size(real x) {
  return x < 0 ? -x : x;
}

static inline void rule_adamax(const rule_step *step, real *restrict p, real *const *states,
                               const real *restrict g, int64_t n) {
  real *restrict m = states[0], *restrict largest = states[1];
  const double *number = step->number;
  const real beta1 = (real)number[NX_adamax_beta1], beta2 = (real)number[NX_adamax_beta2];
  const real rest1 = (real)rule_rest(step, NX_adamax_beta1), epsilon = (real)number[NX_adamax_epsilon];
  const real scale = (real)step->scale, decay = (real)step->decay;
  const real rate = (real)(step->lr / rule_left(step, NX_adamax_beta1));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real first = beta1 * m[i] + rest1 * gradient;
    real most = rule_max(beta2 * largest[i], rule_size(gradient) + epsilon);
    m[i] = first;
    largest[i] = most;
    p[i] -= rate * (first / most);
  }
}

static inline void rule_sgd(const rule_step *step, real *restrict p, real *const *states,
                            const real *restrict g, int64_t n) {
  (void)states;
  const real scale = (real)step->scale, decay = (real)step->decay, lr = (real)step->lr;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) p[i] -= lr * (g[i] * scale + decay * p[i]);
}

static inline void rule_distsignsgd(const rule_step *step, real *restrict p, real *const *states,
                                    const real *restrict g, int64_t n) {
  rule_sgd(step, p, states, g, n);
}

static inline void rule_sgd_momentum(const rule_step *step, real *restrict p, real *const *states,
                                     const real *restrict g, int64_t n) {
  real *restrict sum = states[0];
  const double *number = step->number;
  const real momentum = (real)number[NX_sgd_momentum_momentum];
  const real share = (real)(step->count == 1 ? 1 : rule_rest(step, NX_sgd_momentum_dampening));
  const real scale = (real)step->scale, decay = (real)step->decay, lr = (real)step->lr;
  const bool nesterov = number[NX_sgd_momentum_nesterov] != 0;
  const real of_gradient = nesterov ? 1 : 0, of_sum = nesterov ? momentum : 1;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real new = momentum * sum[i] + share * gradient;
    sum[i] = new;
    p[i] -= lr * (of_gradient * gradient + of_sum * new);
  }
}

static inline void rule_adadelta(const rule_step *step, real *restrict p, real *const *states,
                                 const real *restrict g, int64_t n) {
  real *restrict square = states[0], *restrict square_step = states[1];
  const double *number = step->number;
  const real rho = (real)number[NX_adadelta_rho], rest = (real)rule_rest(step, NX_adadelta_rho);
  const real epsilon = (real)number[NX_adadelta_epsilon];
  const real scale = (real)step->scale, decay = (real)step->decay, lr = (real)step->lr;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real mean = rho * square[i] + rest * (gradient * gradient);
    real change = rule_sqrt(square_step[i] + epsilon) / rule_sqrt(mean + epsilon) * gradient;
    square[i] = mean;
    square_step[i] = rho * square_step[i] + rest * (change * change);
    p[i] -= lr * change;
  }
}

static inline void rule_adagrad(const rule_step *step, real *restrict p, real *const *states,
                                const real *restrict g, int64_t n) {
  real *restrict sum = states[0];
  const double *number = step->number;
  const real before = (real)(step->count == 1 ? number[NX_adagrad_initial_accumulator] : 0);
  const real epsilon = (real)number[NX_adagrad_epsilon];
  const real scale = (real)step->scale, decay = (real)step->decay;
  const real rate = (real)(step->lr / (1 + (double)(step->count - 1) * number[NX_adagrad_lr_decay]));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real new = sum[i] + before + gradient * gradient;
    sum[i] = new;
    p[i] -= rate * (gradient / (rule_sqrt(new) + epsilon));
  }
}

/* The rules begin with the same numbers and end with the sum, if there is one. */
static inline void rmsprop_as(const rule_step *step, real *restrict p, real *const *states,
                              const real *restrict g, int64_t n, bool centered, bool summed) {
  real *restrict square = states[0], *restrict average = states[centered ? 1 : 0],
                 *restrict sum = states[summed ? 1 + centered : 0];
  const double *number = step->number;
  const real alpha = (real)number[NX_rmsprop_alpha], rest = (real)rule_rest(step, NX_rmsprop_alpha);
  const real epsilon = (real)number[NX_rmsprop_epsilon];
  const real momentum = summed ? (real)number[NX_rmsprop_momentum_momentum] : 0;
  const real scale = (real)step->scale, decay = (real)step->decay, lr = (real)step->lr;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real squares = alpha * square[i] + rest * (gradient * gradient), length = squares;
    square[i] = squares;
    if (centered) {
      real mean = alpha * average[i] + rest * gradient;
      average[i] = mean;
      length = rule_max(squares - mean * mean, 0);
    }
    real change = gradient / (rule_sqrt(length) + epsilon);
    if (summed) sum[i] = change = momentum * sum[i] + change;
    p[i] -= lr * change;
  }
}

#define RMSPROP(name, centered, summed)                                                                      \
  static inline void rule_##name(const rule_step *step, real *restrict p, real *const *states,               \
                                 const real *restrict g, int64_t n) {                                        \
    rmsprop_as(step, p, states, g, n, centered, summed);                                                     \
  }
RMSPROP(rmsprop, false, false)
RMSPROP(rmsprop_momentum, false, true)
RMSPROP(rmsprop_centered, true, false)
RMSPROP(rmsprop_centered_momentum, true, true)
#undef RMSPROP

/* The first step is lr; where the sign changes the gradient counts as 0, here and at the next step. */
static inline void rule_rprop(const rule_step *step, real *restrict p, real *const *states,
                              const real *restrict g, int64_t n) {
  real *restrict before = states[0], *restrict size = states[1];
  const double *number = step->number;
  const real minus = (real)number[NX_rprop_eta_minus], plus = (real)number[NX_rprop_eta_plus];
  const real least = (real)number[NX_rprop_step_min], most = (real)number[NX_rprop_step_max];
  const real scale = (real)step->scale, decay = (real)step->decay;
  const real start = (real)(step->count == 1 ? step->lr : 0);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale + decay * p[i];
    real agrees = gradient * before[i];
    real factor = agrees > 0 ? plus : agrees < 0 ? minus : 1;
    real new = (size[i] + start) * factor;
    new = new < least ? least : new > most ? most : new;
    real counted = agrees < 0 ? 0 : gradient;
    before[i] = counted;
    size[i] = new;
    p[i] -= rule_sign(counted) * new;
  }
}

static inline void rule_lion(const rule_step *step, real *restrict p, real *const *states,
                             const real *restrict g, int64_t n) {
  real *restrict m = states[0];
  const double *number = step->number;
  const real beta1 = (real)number[NX_lion_beta1], rest1 = (real)rule_rest(step, NX_lion_beta1);
  const real beta2 = (real)number[NX_lion_beta2], rest2 = (real)rule_rest(step, NX_lion_beta2);
  const real scale = (real)step->scale, lr = (real)step->lr, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real direction = beta1 * m[i] + rest1 * gradient;
    m[i] = beta2 * m[i] + rest2 * gradient;
    p[i] = p[i] * kept - lr * rule_sign(direction);
  }
}

/* The third state is p before the first step. */
static inline void rule_madgrad_wd(const rule_step *step, real *restrict p, real *const *states,
                                   const real *restrict g, int64_t n) {
  real *restrict square = states[0], *restrict sum = states[1], *restrict start = states[2];
  const double *number = step->number;
  const double lr = step->lr + number[NX_madgrad_wd_epsilon];
  const real weight = (real)(lr * sqrt((double)step->count)), kept = (real)(1 - lr * step->decay);
  const real momentum = (real)number[NX_madgrad_wd_momentum],
             rest = (real)rule_rest(step, NX_madgrad_wd_momentum);
  const real epsilon = (real)number[NX_madgrad_wd_epsilon], scale = (real)step->scale;
  const bool first = step->count == 1;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real squares = square[i] + weight * (gradient * gradient), gradients = sum[i] + weight * gradient;
    real from = first ? p[i] : start[i];
    square[i] = squares;
    sum[i] = gradients;
    start[i] = from;
    p[i] = p[i] * kept * momentum + rest * (from - gradients / (rule_cbrt(squares) + epsilon));
  }
}

static inline void rule_madgrad_wd_alone(const rule_step *step, real *restrict p, real *const *states,
                                         const real *restrict g, int64_t n) {
  real *restrict square = states[0], *restrict sum = states[1];
  const double lr = step->lr + step->number[NX_madgrad_wd_alone_epsilon];
  const real weight = (real)(lr * sqrt((double)step->count)), kept = (real)(1 - lr * step->decay);
  const real epsilon = (real)step->number[NX_madgrad_wd_alone_epsilon], scale = (real)step->scale;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real squares = square[i] + weight * (gradient * gradient), gradients = sum[i] + weight * gradient;
    real from = p[i] * kept + sum[i] / (rule_cbrt(square[i]) + epsilon);
    square[i] = squares;
    sum[i] = gradients;
    p[i] = from - gradients / (rule_cbrt(squares) + epsilon);
  }
}

static inline void rule_signsgd(const rule_step *step, real *restrict p, real *const *states,
                                const real *restrict g, int64_t n) {
  (void)states;
  const real scale = (real)step->scale, lr = (real)step->lr, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) p[i] = p[i] * kept - lr * rule_sign(g[i] * scale);
}

static inline void rule_cautious_signsgd(const rule_step *step, real *restrict p, real *const *states,
                                         const real *restrict g, int64_t n) {
  (void)states;
  const real scale = (real)step->scale, lr = (real)step->lr, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    p[i] = (gradient * p[i] < 0 ? p[i] : p[i] * kept) - lr * rule_sign(gradient);
  }
}

#include "kernels/rules/adam.h"

#endif
