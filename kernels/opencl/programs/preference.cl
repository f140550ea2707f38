/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives over pairs of answers, in fp64: a group sums a sequence, one item goes through the pairs. */

#ifdef IS_sequence_loss
kernel void sequence_loss(OPERANDS) {
  local double room[LOCAL];
  long b = get_group_id(0), n_tokens = YN(0), n_shards = XN(0) / 3 / n_tokens, width = XDIM(1, 3);
  double sum = 0, count = 0;
  for (long t = b * width + get_local_id(0); t < (b + 1) * width; t += LOCAL) {
    float largest = -INFINITY, label = 0;
    double exponentials = 0;
    for (long shard = 0; shard < n_shards; shard++) largest = fmax(largest, X0((shard * n_tokens + t) * 3));
    for (long shard = 0; shard < n_shards; shard++) {
      long at = (shard * n_tokens + t) * 3;
      exponentials += (double)X0(at + 1) * exp((double)(X0(at) - largest));
      label += X0(at + 2);
    }
    double logarithm = (double)largest + log(exponentials), weight = X1(t);
    SET_Y0(t, logarithm);
    sum += weight * (logarithm - (double)label);
    count += weight;
  }
  sum = group_sum(sum, room);
  count = group_sum(count, room);
  if (get_local_id(0) == 0) SET_Y1(b, sum), SET_Y2(b, count);
}
#endif

#ifdef IS_row_weights
kernel void row_weights(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, X0(i / XDIM(1, 3)) * X1(i));
}
#endif

#ifdef IS_preference
static double log_sigmoid(double x, double *slope) {
  *slope = x > 0 ? exp(-x) / (1 + exp(-x)) : 1 / (1 + exp(x));
  return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

typedef struct pair {
  double loss, slopes[2], logps[2], rewards[2], margin;
} pair;

static pair dpo(const double *sums, const double *reference, double beta, double smoothing) {
  pair p;
  double right, wrong;
  for (int i = 0; i < 2; i++) p.logps[i] = -sums[i], p.rewards[i] = -beta * (sums[i] - reference[i]);
  p.margin = p.rewards[0] - p.rewards[1];
  p.loss = -(1 - smoothing) * log_sigmoid(p.margin, &right) - smoothing * log_sigmoid(-p.margin, &wrong);
  double by_margin = -(1 - smoothing) * right + smoothing * wrong;
  p.slopes[0] = -beta * by_margin, p.slopes[1] = beta * by_margin;
  return p;
}

static pair orpo(const double *sums, const double *counts, double beta) {
  pair p;
  double mean[2], odds[2], bend[2], slope;
  for (int i = 0; i < 2; i++) {
    mean[i] = fmin(-sums[i] / fmax(counts[i], 1.0), -1e-12);
    bend[i] = -expm1(mean[i]);
    odds[i] = mean[i] - log(bend[i]);
    p.logps[i] = mean[i], p.rewards[i] = beta * mean[i];
  }
  p.margin = odds[0] - odds[1];
  p.loss = -mean[0] - beta * log_sigmoid(p.margin, &slope);
  p.slopes[0] = (1 + beta * slope / bend[0]) / fmax(counts[0], 1.0);
  p.slopes[1] = -beta * slope / bend[1] / fmax(counts[1], 1.0);
  return p;
}

kernel void preference(OPERANDS) {
  double total = 0, found[N_METRICS];
  if (get_global_id(0) != 0) return;
  for (int i = 0; i < N_METRICS; i++) found[i] = 0;
  for (long b = 0; b < XN(0); b += 2) {
    const double sums[2] = {X0(b), X0(b + 1)}, counts[2] = {X1(b), X1(b + 1)};
#if N_IN > 2
    const double reference[2] = {X2(b), X2(b + 1)};
#else
    const double reference[2] = {0, 0};
#endif
    pair p = {0, {0, 0}, {0, 0}, {0, 0}, 0};
    bool present = counts[0] + counts[1] != 0;
    if (present && A_objective == objective_dpo) p = dpo(sums, reference, A_beta, A_smoothing);
    else if (present) p = orpo(sums, counts, A_beta);
    total += A_scale * p.loss;
    for (int i = 0; i < 2; i++) {
      SET_Y1(b + i, A_scale * p.slopes[i]);
      found[LOGPS_CHOSEN + i] += p.logps[i];
      found[REWARDS_CHOSEN + i] += p.rewards[i];
    }
    found[ACCURACY] += present && p.rewards[0] > p.rewards[1];
    found[MARGIN] += p.margin;
  }
  SET_Y0(0, A_accumulate ? Y0(0) + total : total);
  for (int i = 0; i < N_METRICS; i++) SET_Y2(i, A_accumulate ? Y2(i) + found[i] : found[i]);
}
#endif
