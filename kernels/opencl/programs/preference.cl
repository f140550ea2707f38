/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives that compare answers, in fp64: a group sums a sequence, one item goes through the samples. */

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

#ifdef IS_sequence_value
kernel void sequence_value(OPERANDS) {
  local double room[LOCAL];
  long b = get_group_id(0), width = XDIM(1, 3);
  double sum = 0, count = 0;
  for (long t = b * width + get_local_id(0); t < (b + 1) * width; t += LOCAL) {
    double weight = X1(t);
    sum += weight * (double)X0(t);
    count += weight;
  }
  sum = group_sum(sum, room);
  count = group_sum(count, room);
  if (get_local_id(0) == 0) SET_Y0(b, sum), SET_Y1(b, count);
}
#endif

#ifdef IS_value_grad
kernel void value_grad(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, (float)(A_scale * (double)X0(i)));
}
#endif

#ifdef IS_preference
static double log_sigmoid(double x, double *slope) {
  *slope = x > 0 ? exp(-x) / (1 + exp(-x)) : 1 / (1 + exp(x));
  return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

typedef struct sample {
  double loss, slopes[2], metrics[N_METRICS];
} sample;

static void compare(sample *s, int first, const double *rewards) {
  s->metrics[first] = rewards[0] > rewards[1], s->metrics[first + 1] = rewards[0] - rewards[1];
}

static void dpo(const double *sums, const double *reference, double beta, double smoothing, sample *s) {
  double right, wrong, rewards[2];
  for (int i = 0; i < 2; i++) {
    s->metrics[i] = -sums[i];
    rewards[i] = s->metrics[2 + i] = beta * (reference[i] - sums[i]);
  }
  double margin = rewards[0] - rewards[1];
  s->loss = -(1 - smoothing) * log_sigmoid(margin, &right) - smoothing * log_sigmoid(-margin, &wrong);
  double by_margin = -(1 - smoothing) * right + smoothing * wrong;
  s->slopes[0] = -beta * by_margin, s->slopes[1] = beta * by_margin;
  compare(s, 4, rewards);
}

static void orpo(const double *sums, const double *counts, double beta, sample *s) {
  double odds[2], bend[2], rewards[2], slope;
  for (int i = 0; i < 2; i++) {
    double mean = fmin(-sums[i] / fmax(counts[i], 1.0), -1e-12);
    bend[i] = -expm1(mean);
    odds[i] = mean - log(bend[i]);
    s->metrics[2 + i] = mean;
    rewards[i] = s->metrics[4 + i] = beta * mean;
  }
  s->metrics[0] = -s->metrics[2], s->metrics[1] = odds[0] - odds[1];
  s->loss = s->metrics[0] - beta * log_sigmoid(s->metrics[1], &slope);
  s->slopes[0] = (1 + beta * slope / bend[0]) / fmax(counts[0], 1.0);
  s->slopes[1] = -beta * slope / bend[1] / fmax(counts[1], 1.0);
  compare(s, 6, rewards);
}

static void reward(const double *values, double penalty, sample *s) {
  double slope;
  s->loss = -log_sigmoid(values[0] - values[1], &slope);
  for (int i = 0; i < 2; i++) {
    s->metrics[i] = values[i];
    s->loss += penalty * values[i] * values[i];
    s->slopes[i] = (i == 0 ? -slope : slope) + 2 * penalty * values[i];
  }
  compare(s, 2, values);
}

/* `given` and its mean over the sequence; `weight` of the answer's half, `divergence` of the other. */
static void kto(double sum, double reference, double given, double mean, double weight, double divergence,
                double beta, sample *s) {
  double ratio = reference - sum, slope;
  double right = exp(log_sigmoid(beta * mean * (ratio - divergence), &slope));
  s->loss = weight * slope;
  s->slopes[0] = weight * right * slope * beta * mean;
  s->metrics[0] = -sum, s->metrics[1] = -reference;
  if (given > 0) s->metrics[2] = -sum, s->metrics[3] = -reference;
  if (given < 0) s->metrics[4] = -sum, s->metrics[5] = -reference;
  s->metrics[7] = beta * given * ratio;
  s->metrics[8] = s->metrics[7] > 0;
}

#if N_IN > 2
#define REFERENCE(b) X2(b)
#else
#define REFERENCE(b) 0.0
#endif
#if N_IN > 3
#define REWARD(b, which) X3(2 * (b) + (which))
#else
#define REWARD(b, which) 0.0
#endif

kernel void preference(OPERANDS) {
  double total = 0, found[N_METRICS], weights[2] = {0, 0}, divergences[2] = {0, 0}, ratio = 0, count = 0;
  bool alone = A_objective == objective_kto;
  long n = XN(0), rows = alone ? 1 : 2;
  if (get_global_id(0) != 0) return;
  for (int i = 0; i < N_METRICS; i++) found[i] = 0;
  for (int side = 0; alone && side < 2; side++) {
    double present = 0;
    for (long b = side * n / 2; b < side * n / 2 + n / 2; b++) {
      if (X1(b) == 0) continue;
      double by = REFERENCE(b) - X0(b), mean = REWARD(b, 1);
      present += 1, ratio += by, count += X1(b);
      divergences[side] += fmax(by, 0.0);
      weights[side] += mean > 0 ? A_desirable : mean < 0 ? A_undesirable : 0.0;
    }
    if (present > 0) weights[side] /= present, divergences[side] /= present;
  }
  for (long b = 0; b < n; b += rows) {
    const double sums[2] = {X0(b), X0(b + rows - 1)}, counts[2] = {X1(b), X1(b + rows - 1)};
    const double reference[2] = {REFERENCE(b), REFERENCE(b + rows - 1)};
    int second = 2 * b >= n;
    sample s;
    s.loss = s.slopes[0] = s.slopes[1] = 0;
    for (int i = 0; i < N_METRICS; i++) s.metrics[i] = 0;
    if (counts[0] + counts[1] != 0) {
      if (A_objective == objective_dpo) dpo(sums, reference, A_beta, A_smoothing, &s);
      else if (A_objective == objective_orpo) orpo(sums, counts, A_beta, &s);
      else if (A_objective == objective_reward) reward(sums, A_penalty, &s);
      else
        kto(sums[0], reference[0], REWARD(b, 0), REWARD(b, 1), weights[second], divergences[!second], A_beta,
            &s);
      if (alone && count > 0) s.metrics[6] = ratio / count;
    }
    total += A_scale * s.loss;
    for (long i = 0; i < rows; i++) SET_Y1(b + i, A_scale * s.slopes[i]);
    for (int i = 0; i < N_METRICS; i++) found[i] += s.metrics[i];
  }
  SET_Y0(0, A_accumulate ? Y0(0) + total : total);
  for (int i = 0; i < N_METRICS; i++) SET_Y2(i, A_accumulate ? Y2(i) + found[i] : found[i]);
}
#endif
