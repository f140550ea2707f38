/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives over pairs of answers: sums of log-probabilities of sequences, what an objective makes of them,
 * and the weights that its slopes give to tokens. */
#include "kernels/ref/ref.h"
#include "schema/objective.h"

#include <math.h>

void ref_sequence_loss(const ref_call *call) {
  ref_operand stats = ref_in(call, 0), weights = ref_in(call, 1);
  ref_operand lse = ref_out(call, 0), sums = ref_out(call, 1), counts = ref_out(call, 2);
  int64_t n_tokens = lse.n_elements, n_shards = stats.dims[0], width = ref_last_dim(&weights);
  for (int64_t b = 0; b < sums.n_elements; b++) {
    double sum = 0, count = 0;
    for (int64_t t = b * width; t < (b + 1) * width; t++) {
      double label, logarithm = ref_log_sum_exp(&stats, t, n_tokens, n_shards, &label);
      double weight = ref_load(&weights, t);
      ref_store(&lse, t, logarithm);
      sum += weight * (logarithm - label);
      count += weight;
    }
    ref_store(&sums, b, sum);
    ref_store(&counts, b, count);
  }
}

/* log(1 / (1 + exp(-x))), and its slope. */
static double log_sigmoid(double x, double *slope) {
  *slope = x > 0 ? exp(-x) / (1 + exp(-x)) : 1 / (1 + exp(x));
  return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

/* What a pair comes to. Sums are negative log-probabilities. */
typedef struct pair {
  double loss, slopes[2], logps[2], rewards[2], margin;
} pair;

/* loss = -(1 - e) log sigmoid(m) - e log sigmoid(-m), m = beta (r1 - r0), r a sum less the reference's. */
static pair dpo(const double sums[2], const double reference[2], double beta, double smoothing) {
  pair p;
  for (int i = 0; i < 2; i++) {
    p.logps[i] = -sums[i];
    p.rewards[i] = -beta * (sums[i] - reference[i]);
  }
  p.margin = p.rewards[0] - p.rewards[1];
  double right, wrong;
  p.loss = -(1 - smoothing) * log_sigmoid(p.margin, &right) - smoothing * log_sigmoid(-p.margin, &wrong);
  double by_margin = -(1 - smoothing) * right + smoothing * wrong;
  p.slopes[0] = -beta * by_margin;
  p.slopes[1] = beta * by_margin;
  return p;
}

/* loss = -a0 - beta log sigmoid(o), o = a0 - a1 - log(1 - exp a0) + log(1 - exp a1), a the mean
 * log-probability of a token. A sequence without tokens has probability 1, as little as a number allows less.
 */
static pair orpo(const double sums[2], const double counts[2], double beta) {
  pair p;
  double mean[2], odds[2], bend[2], slope;
  for (int i = 0; i < 2; i++) {
    mean[i] = fmin(-sums[i] / fmax(counts[i], 1), -1e-12);
    bend[i] = -expm1(mean[i]);
    odds[i] = mean[i] - log(bend[i]);
    p.logps[i] = mean[i];
    p.rewards[i] = beta * mean[i];
  }
  p.margin = odds[0] - odds[1];
  p.loss = -mean[0] - beta * log_sigmoid(p.margin, &slope);
  p.slopes[0] = (1 + beta * slope / bend[0]) / fmax(counts[0], 1);
  p.slopes[1] = -beta * slope / bend[1] / fmax(counts[1], 1);
  return p;
}

/* Of the pair whose chosen answer is row b; false where there is none. */
static bool pair_of(const ref_call *call, int64_t b, pair *p) {
  ref_operand sums = ref_in(call, 0), counts = ref_in(call, 1), reference = sums;
  bool refers = call->operator->n_in > 2;
  if (refers) reference = ref_in(call, 2);
  const double s[2] = {ref_load(&sums, b), ref_load(&sums, b + 1)};
  const double n[2] = {ref_load(&counts, b), ref_load(&counts, b + 1)};
  const double r[2] = {refers ? ref_load(&reference, b) : 0, refers ? ref_load(&reference, b + 1) : 0};
  double beta = ref_real(call, NX_preference_beta);
  if (n[0] + n[1] == 0) return false;
  *p = ref_int(call, NX_preference_objective) == 0 ? dpo(s, r, beta, ref_real(call, NX_preference_smoothing))
                                                   : orpo(s, n, beta);
  return true;
}

void ref_preference(const ref_call *call) {
  ref_operand loss = ref_out(call, 0), slopes = ref_out(call, 1), metrics = ref_out(call, 2);
  double scale = ref_real(call, NX_preference_scale), total = 0, found[NX_N_PAIR_METRICS] = {0};
  for (int64_t b = 0; b < slopes.n_elements; b += 2) {
    pair p = {0};
    bool present = pair_of(call, b, &p);
    total += scale * p.loss;
    for (int i = 0; i < 2; i++) {
      ref_store(&slopes, b + i, scale * p.slopes[i]);
      found[NX_PAIR_LOGPS_CHOSEN + i] += p.logps[i];
      found[NX_PAIR_REWARDS_CHOSEN + i] += p.rewards[i];
    }
    found[NX_PAIR_ACCURACY] += present && p.rewards[0] > p.rewards[1];
    found[NX_PAIR_MARGIN] += p.margin;
  }
  int64_t accumulate = ref_int(call, NX_preference_accumulate);
  ref_store_sum(&loss, 0, total, accumulate);
  for (int i = 0; i < NX_N_PAIR_METRICS; i++) ref_store_sum(&metrics, i, found[i], accumulate);
}

void ref_row_weights(const ref_call *call) {
  ref_operand slopes = ref_in(call, 0), weights = ref_in(call, 1), y = ref_out(call, 0);
  int64_t width = ref_last_dim(&weights);
  for (int64_t i = 0; i < y.n_elements; i++)
    ref_store(&y, i, ref_load(&slopes, i / width) * ref_load(&weights, i));
}
