/* SPDX-License-Identifier: Apache-2.0 */
/* Of the rules of element.h, which includes this, those with the moments of Adam. */
#ifndef KERNELS_RULES_ADAM_H
#define KERNELS_RULES_ADAM_H

/* What a rule's numbers come to in a step; without correction the moments start from 0 as they are. */
typedef struct rule_moments {
  real beta1, rest1, beta2, rest2, rate, root, epsilon;
} rule_moments;

/* Where these stand among the rule's numbers. */
static inline rule_moments rule_moments_of(const rule_step *step, int beta1, int beta2, int epsilon,
                                           bool corrected) {
  const double *number = step->number;
  rule_moments of;
  of.beta1 = (real)number[beta1], of.rest1 = (real)rule_rest(step, beta1);
  of.beta2 = (real)number[beta2], of.rest2 = (real)rule_rest(step, beta2);
  of.rate = (real)(corrected ? step->lr / rule_left(step, beta1) : step->lr);
  of.root = (real)(corrected ? 1 / sqrt(rule_left(step, beta2)) : 1);
  of.epsilon = (real)number[epsilon];
  return of;
}

/* What members of the family do otherwise. It is known where each is compiled, so that a loop asks nothing.
 */
enum {
  ADAM_L2 = 1,       /* the decay is a part of the gradient, not of the parameter */
  ADAM_PLAIN = 2,    /* moments are not corrected */
  ADAM_GREATEST = 4, /* AMSGrad: what divides is a third state, the greatest second moment so far */
  ADAM_LATE = 8      /* the parameter decays behind its update, and the correction takes epsilon in */
};

static inline __attribute__((always_inline)) void adam_as(int form, const rule_moments *of,
                                                          const rule_step *step, real *restrict p,
                                                          real *const *states, const real *restrict g,
                                                          int64_t n) {
  real *restrict m = states[0], *restrict v = states[1],
                 *restrict most = states[form & ADAM_GREATEST ? 2 : 1];
  const real scale = (real)step->scale, decay = (real)step->decay;
  const real kept = form & ADAM_L2 ? 1 : (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    if (form & ADAM_L2) gradient += decay * p[i];
    real first = of->beta1 * m[i] + of->rest1 * gradient;
    real second = of->beta2 * v[i] + of->rest2 * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    if (form & ADAM_GREATEST) most[i] = second = rule_max(most[i], second);
    real length = rule_sqrt(second);
    length = form & ADAM_LATE ? (length + of->epsilon) * of->root : length * of->root + of->epsilon;
    real change = of->rate * (first / length);
    p[i] = form & ADAM_LATE ? (p[i] - change) * kept : p[i] * kept - change;
  }
}

#define ADAM(NAME, FORM)                                                                                     \
  static inline void rule_##NAME(const rule_step *step, real *restrict p, real *const *states,               \
                                 const real *restrict g, int64_t n) {                                        \
    const rule_moments of = rule_moments_of(step, NX_##NAME##_beta1, NX_##NAME##_beta2, NX_##NAME##_epsilon, \
                                            !((FORM)&ADAM_PLAIN));                                           \
    adam_as(FORM, &of, step, p, states, g, n);                                                               \
  }
ADAM(adam, ADAM_L2)
ADAM(adam_uncorrected, ADAM_L2 | ADAM_PLAIN)
ADAM(adam_amsgrad, ADAM_L2 | ADAM_GREATEST)
ADAM(adamw, 0)
ADAM(adamw_uncorrected, ADAM_PLAIN)
ADAM(adamw_amsgrad, ADAM_GREATEST)
ADAM(adamw_late_decay, ADAM_LATE)
#undef ADAM

static inline void rule_onebitadam(const rule_step *step, real *restrict p, real *const *states,
                                   const real *restrict g, int64_t n) {
  real *restrict m = states[0], *restrict v = states[1];
  const double *number = step->number;
  const bool frozen = step->count >= (int64_t)number[NX_onebitadam_freeze_step];
  const double decay2 = frozen ? 1 : number[NX_onebitadam_beta2];
  const real beta1 = (real)number[NX_onebitadam_beta1], rest1 = (real)rule_rest(step, NX_onebitadam_beta1);
  const real beta2 = (real)decay2, rest2 = (real)(1 - decay2), epsilon = (real)number[NX_onebitadam_epsilon];
  const real scale = (real)step->scale, lr = (real)step->lr, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real first = beta1 * m[i] + rest1 * gradient;
    real second = beta2 * v[i] + rest2 * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * kept - lr * (first / (rule_sqrt(second) + epsilon));
  }
}

/* Steps after which half of a mean with this decay is newer, and the decay with which it is so. */
static inline double rule_half_life(double beta) {
  return log(0.5) / log(beta + 1e-8) - 1;
}

/* The decay of the slow mean: its half-life grows in a line from that of the first moment. */
static inline double rule_ademamix_beta(const rule_step *step) {
  const double *number = step->number;
  const double end = number[NX_ademamix_slow_beta], warmup = number[NX_ademamix_slow_beta_warmup];
  const double share = (double)step->count / warmup;
  if (!(share < 1)) return end;
  const double half_life =
      (1 - share) * rule_half_life(number[NX_ademamix_beta1]) + share * rule_half_life(end);
  return pow(0.5, 1 / (half_life + 1));
}

static inline double rule_ademamix_weight(const rule_step *step) {
  const double *number = step->number;
  const double weight = number[NX_ademamix_slow_weight];
  const double share = (double)step->count / number[NX_ademamix_slow_weight_warmup];
  return share < 1 ? share * weight : weight;
}

static inline void rule_ademamix(const rule_step *step, real *restrict p, real *const *states,
                                 const real *restrict g, int64_t n) {
  real *restrict m = states[0], *restrict v = states[1], *restrict slow = states[2];
  const double *number = step->number;
  const double slow_beta = rule_ademamix_beta(step);
  const real beta1 = (real)number[NX_ademamix_beta1], rest1 = (real)rule_rest(step, NX_ademamix_beta1);
  const real beta2 = (real)number[NX_ademamix_beta2], rest2 = (real)rule_rest(step, NX_ademamix_beta2);
  const real beta3 = (real)slow_beta, rest3 = (real)(1 - slow_beta);
  const real scale = (real)step->scale, kept = (real)(1 - step->lr * step->decay), lr = (real)step->lr;
  const real fast_weight = (real)(1 / rule_left(step, NX_ademamix_beta1));
  const real slow_weight = (real)rule_ademamix_weight(step);
  const real root = (real)(1 / sqrt(rule_left(step, NX_ademamix_beta2)));
  const real epsilon = (real)number[NX_ademamix_epsilon];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real first = beta1 * m[i] + rest1 * gradient, slower = beta3 * slow[i] + rest3 * gradient;
    real second = beta2 * v[i] + rest2 * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    slow[i] = slower;
    p[i] = p[i] * kept -
           lr * ((fast_weight * first + slow_weight * slower) / (rule_sqrt(second) * root + epsilon));
  }
}

/* Before the first step there was no other gradient. */
static inline void rule_adan(const rule_step *step, real *restrict p, real *const *states,
                             const real *restrict g, int64_t n) {
  real *restrict m = states[0], *restrict d = states[1], *restrict v = states[2],
                 *restrict before = states[3];
  const double *number = step->number;
  const real beta1 = (real)number[NX_adan_beta1], rest1 = (real)rule_rest(step, NX_adan_beta1);
  const real beta2 = (real)number[NX_adan_beta2], rest2 = (real)rule_rest(step, NX_adan_beta2);
  const real beta3 = (real)number[NX_adan_beta3], rest3 = (real)rule_rest(step, NX_adan_beta3);
  const real scale = (real)step->scale, kept = (real)(1 / (1 + step->lr * step->decay));
  const real rate = (real)(step->lr / rule_left(step, NX_adan_beta1));
  const real ahead = (real)(step->lr * number[NX_adan_beta2] / rule_left(step, NX_adan_beta2));
  const real root = (real)(1 / sqrt(rule_left(step, NX_adan_beta3))), epsilon = (real)number[NX_adan_epsilon];
  const real differs = step->count > 1;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale, difference = differs * (gradient - before[i]);
    real looked = gradient + beta2 * difference;
    real first = beta1 * m[i] + rest1 * gradient, mean = beta2 * d[i] + rest2 * difference;
    real second = beta3 * v[i] + rest3 * (looked * looked), length = rule_sqrt(second) * root + epsilon;
    m[i] = first;
    d[i] = mean;
    v[i] = second;
    before[i] = gradient;
    p[i] = (p[i] - (rate * first + ahead * mean) / length) * kept;
  }
}

/* What xorl's AnyPrecisionAdamW computes. PyTorch stores what each of its operators makes, so numbers in bf16
 * are rounded after the decay of a moment and after its growth, and the root of the second, its correction
 * and epsilon one by one. */
static inline real rule_grown(real moment, real beta, real more, nx_dtype type) {
  return rule_stored(rule_stored(beta * moment, type) + more, type);
}

static inline real rule_anyprecision_update(const rule_moments *of, real first, real second, nx_dtype type) {
  real length =
      rule_stored(rule_stored(rule_stored(rule_sqrt(second), type) * of->root, type) + of->epsilon, type);
  return of->rate * (first / length);
}

/* With types that are known where it is compiled the loops become vectors. */
static inline void anyprecision_adamw_as(const rule_step *step, real *restrict p, real *const *states,
                                         const real *restrict g, int64_t n, nx_dtype p_type, nx_dtype type,
                                         bool cautious) {
  real *restrict m = states[0], *restrict v = states[1];
  const rule_moments of = rule_moments_of(step, NX_anyprecision_adamw_beta1, NX_anyprecision_adamw_beta2,
                                          NX_anyprecision_adamw_epsilon, true);
  const real scale = (real)step->scale, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real first = rule_grown(m[i], of.beta1, of.rest1 * gradient, type);
    real second = rule_grown(v[i], of.beta2, of.rest2 * (gradient * gradient), type);
    m[i] = first;
    v[i] = second;
    real held = cautious && first * p[i] < 0 ? p[i] : rule_stored(p[i] * kept, p_type);
    p[i] = held - rule_anyprecision_update(&of, first, second, type);
  }
}

static inline void anyprecision_adamw(const rule_step *step, real *restrict p, real *const *states,
                                      const real *restrict g, int64_t n, bool cautious) {
  const nx_dtype p_type = step->param, type = step->states[0];
  bool short_p = p_type == NX_bf16, short_states = type == NX_bf16;
  bool known = (short_p || p_type == NX_f32) && (short_states || type == NX_f32);
  if (!known) anyprecision_adamw_as(step, p, states, g, n, p_type, type, cautious);
  else if (short_p && short_states) anyprecision_adamw_as(step, p, states, g, n, NX_bf16, NX_bf16, cautious);
  else if (short_p) anyprecision_adamw_as(step, p, states, g, n, NX_bf16, NX_f32, cautious);
  else if (short_states) anyprecision_adamw_as(step, p, states, g, n, NX_f32, NX_bf16, cautious);
  else anyprecision_adamw_as(step, p, states, g, n, NX_f32, NX_f32, cautious);
}

static inline void rule_anyprecision_adamw(const rule_step *step, real *restrict p, real *const *states,
                                           const real *restrict g, int64_t n) {
  anyprecision_adamw(step, p, states, g, n, false);
}

static inline void rule_cautious_adamw(const rule_step *step, real *restrict p, real *const *states,
                                       const real *restrict g, int64_t n) {
  anyprecision_adamw(step, p, states, g, n, true);
}

static inline void kahan_adamw_as(const rule_step *step, real *restrict p, real *const *states,
                                  const real *restrict g, int64_t n, nx_dtype p_type, nx_dtype type) {
  real *restrict m = states[0], *restrict v = states[1], *restrict lost = states[2];
  const rule_moments of =
      rule_moments_of(step, NX_kahan_adamw_beta1, NX_kahan_adamw_beta2, NX_kahan_adamw_epsilon, true);
  const real scale = (real)step->scale, kept = (real)(1 - step->lr * step->decay);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real gradient = g[i] * scale;
    real first = rule_grown(m[i], of.beta1, of.rest1 * gradient, type);
    real second = rule_grown(v[i], of.beta2, of.rest2 * (gradient * gradient), type);
    real change = rule_anyprecision_update(&of, first, second, type);
    real due = rule_stored(lost[i] - change, type), old = rule_stored(p[i] * kept, p_type);
    real new = rule_stored(old + due, p_type);
    m[i] = first;
    v[i] = second;
    lost[i] = due + (old - new);
    p[i] = new;
  }
}

static inline void rule_kahan_adamw(const rule_step *step, real *restrict p, real *const *states,
                                    const real *restrict g, int64_t n) {
  const nx_dtype p_type = step->param, type = step->states[0];
  bool short_p = p_type == NX_bf16, short_states = type == NX_bf16;
  bool known = (short_p || p_type == NX_f32) && (short_states || type == NX_f32);
  if (!known) kahan_adamw_as(step, p, states, g, n, p_type, type);
  else if (short_p && short_states) kahan_adamw_as(step, p, states, g, n, NX_bf16, NX_bf16);
  else if (short_p) kahan_adamw_as(step, p, states, g, n, NX_bf16, NX_f32);
  else if (short_states) kahan_adamw_as(step, p, states, g, n, NX_f32, NX_bf16);
  else kahan_adamw_as(step, p, states, g, n, NX_f32, NX_f32);
}

#endif
