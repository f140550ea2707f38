/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives that compare answers: sums of log-probabilities or values of sequences, what an objective makes
 * of them, and the weights that its slopes give to tokens. */
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

/* What a sample comes to: a pair, or a sequence and nothing. Sums are negative log-probabilities, or values.
 */
typedef struct sample {
  double loss, slopes[2], metrics[NX_N_ANSWER_METRICS];
} sample;

/* All that an objective reads of a micro-batch. */
typedef struct answers {
  const ref_call *call;
  ref_operand sums, counts, reference, rewards;
  bool refers;
  double beta;
} answers;

static answers answers_of(const ref_call *call) {
  uint32_t n_in = call->operator->n_in;
  answers of = {.call = call,
                .sums = ref_in(call, 0),
                .counts = ref_in(call, 1),
                .refers = n_in > 2,
                .beta = ref_real(call, NX_preference_beta)};
  if (n_in > 2) of.reference = ref_in(call, 2);
  if (n_in > 3) of.rewards = ref_in(call, 3);
  return of;
}

static double reference_of(const answers *of, int64_t b) {
  return of->refers ? ref_load(&of->reference, b) : 0;
}

static bool is_there(const answers *of, int64_t b) {
  return ref_load(&of->counts, b) != 0;
}

/* ---- pairs ---- */

static void compare(sample *s, int first, const double rewards[2]) {
  s->metrics[first] = rewards[0] > rewards[1];
  s->metrics[first + 1] = rewards[0] - rewards[1];
}

/* loss = -(1 - e) log sigmoid(m) - e log sigmoid(-m), m = beta (r1 - r0), r a sum less the reference's. */
static void dpo(const answers *of, int64_t b, sample *s) {
  double smoothing = ref_real(of->call, NX_preference_smoothing), rewards[2], right, wrong;
  for (int i = 0; i < 2; i++) {
    s->metrics[i] = -ref_load(&of->sums, b + i);
    rewards[i] = s->metrics[2 + i] = of->beta * (s->metrics[i] + reference_of(of, b + i));
  }
  double margin = rewards[0] - rewards[1];
  s->loss = -(1 - smoothing) * log_sigmoid(margin, &right) - smoothing * log_sigmoid(-margin, &wrong);
  double by_margin = -(1 - smoothing) * right + smoothing * wrong;
  s->slopes[0] = -of->beta * by_margin;
  s->slopes[1] = of->beta * by_margin;
  compare(s, 4, rewards);
}

/* loss = -a0 - beta log sigmoid(o), o = a0 - a1 - log(1 - exp a0) + log(1 - exp a1), a the mean
 * log-probability of a token. A sequence without tokens has probability 1, as little as a number allows less.
 */
static void orpo(const answers *of, int64_t b, sample *s) {
  double odds[2], bend[2], rewards[2], counts[2], slope;
  for (int i = 0; i < 2; i++) {
    counts[i] = fmax(ref_load(&of->counts, b + i), 1);
    double mean = fmin(-ref_load(&of->sums, b + i) / counts[i], -1e-12);
    bend[i] = -expm1(mean);
    odds[i] = mean - log(bend[i]);
    s->metrics[2 + i] = mean;
    rewards[i] = s->metrics[4 + i] = of->beta * mean;
  }
  s->metrics[0] = -s->metrics[2];
  s->metrics[1] = odds[0] - odds[1];
  s->loss = s->metrics[0] - of->beta * log_sigmoid(s->metrics[1], &slope);
  s->slopes[0] = (1 + of->beta * slope / bend[0]) / counts[0];
  s->slopes[1] = -of->beta * slope / bend[1] / counts[1];
  compare(s, 6, rewards);
}

/* loss = -log sigmoid(v0 - v1) + penalty (v0^2 + v1^2), v a sequence's value. */
static void reward(const answers *of, int64_t b, sample *s) {
  const double values[2] = {ref_load(&of->sums, b), ref_load(&of->sums, b + 1)};
  double penalty = ref_real(of->call, NX_preference_penalty), slope;
  s->loss = -log_sigmoid(values[0] - values[1], &slope);
  for (int i = 0; i < 2; i++) {
    s->metrics[i] = values[i];
    s->loss += penalty * values[i] * values[i];
    s->slopes[i] = (i == 0 ? -slope : slope) + 2 * penalty * values[i];
  }
  compare(s, 2, values);
}

typedef void pair_form(const answers *of, int64_t b, sample *s);
enum { DPO, ORPO, KTO, REWARD }; /* as the attribute */
static pair_form *const pair_forms[] = {[DPO] = dpo, [ORPO] = orpo, [REWARD] = reward};

/* ---- KTO ---- */

/* How much likelier than the reference has it. */
static double log_ratio(const answers *of, int64_t b) {
  return reference_of(of, b) - ref_load(&of->sums, b);
}

/* Of some sequences of a micro-batch: the mean of their weights, and the divergence, of their mean what is
 * above 0. */
typedef struct half {
  double weight, divergence;
} half;

static half half_of(const answers *of, int64_t first, int64_t n) {
  half h = {0};
  double n_there = 0;
  for (int64_t b = first; b < first + n; b++) {
    double given = ref_load(&of->rewards, 2 * b + 1);
    if (!is_there(of, b)) continue;
    n_there++;
    h.divergence += fmax(log_ratio(of, b), 0);
    if (given > 0) h.weight += ref_real(of->call, NX_preference_desirable);
    if (given < 0) h.weight += ref_real(of->call, NX_preference_undesirable);
  }
  if (n_there > 0) h.weight /= n_there, h.divergence /= n_there;
  return h;
}

/* Log-probabilities of tokens, and by how much they are above the reference's, over those that count. */
static double divergence_of_tokens(const answers *of) {
  double ratio = 0, n = 0;
  for (int64_t b = 0; b < of->sums.n_elements; b++) {
    if (is_there(of, b)) ratio += log_ratio(of, b);
    n += ref_load(&of->counts, b);
  }
  return n > 0 ? ratio / n : 0;
}

/* loss = w (1 - sigmoid(beta r (l - k))): l the log ratio, r the mean of the reward over the sequence, w its
 * half's weight, and k the divergence of the other half, which is no function of the weights here. */
static void kto(const answers *of, int64_t b, const half *own, const half *other, sample *s) {
  double given = ref_load(&of->rewards, 2 * b), mean = ref_load(&of->rewards, 2 * b + 1), slope;
  double ratio = log_ratio(of, b), logp = -ref_load(&of->sums, b), reference = -reference_of(of, b);
  double right = exp(log_sigmoid(of->beta * mean * (ratio - other->divergence), &slope));
  int column = given > 0 ? 2 : 4;
  s->loss = own->weight * slope;
  s->slopes[0] = own->weight * right * slope * of->beta * mean;
  s->metrics[0] = logp;
  s->metrics[1] = reference;
  if (given != 0) s->metrics[column] = logp, s->metrics[column + 1] = reference;
  s->metrics[7] = of->beta * given * ratio;
  s->metrics[8] = s->metrics[7] > 0;
}

/* ---- all ---- */

static sample sample_at(const answers *of, int64_t objective, const half halves[2], int64_t b) {
  sample s = {0};
  bool second = 2 * b >= of->sums.n_elements;
  if (objective != KTO && (is_there(of, b) || is_there(of, b + 1))) pair_forms[objective](of, b, &s);
  if (objective == KTO && is_there(of, b)) kto(of, b, &halves[second], &halves[!second], &s);
  return s;
}

void ref_preference(const ref_call *call) {
  ref_operand loss = ref_out(call, 0), slopes = ref_out(call, 1), metrics = ref_out(call, 2);
  double scale = ref_real(call, NX_preference_scale), total = 0, found[NX_N_ANSWER_METRICS] = {0};
  int64_t objective = ref_int(call, NX_preference_objective), n = slopes.n_elements;
  int64_t rows = objective == KTO ? 1 : 2, accumulate = ref_int(call, NX_preference_accumulate);
  const answers of = answers_of(call);
  half halves[2] = {{0}};
  double divergence = objective == KTO ? divergence_of_tokens(&of) : 0;
  for (int i = 0; i < 2 && objective == KTO; i++) halves[i] = half_of(&of, i * n / 2, n / 2);
  for (int64_t b = 0; b < n; b += rows) {
    const sample s = sample_at(&of, objective, halves, b);
    total += scale * s.loss;
    for (int i = 0; i < rows; i++) ref_store(&slopes, b + i, scale * s.slopes[i]);
    for (int i = 0; i < NX_N_ANSWER_METRICS; i++) found[i] += s.metrics[i];
    if (is_there(&of, b)) found[6] += divergence;
  }
  ref_store_sum(&loss, 0, total, accumulate);
  for (int i = 0; i < NX_N_ANSWER_METRICS; i++) ref_store_sum(&metrics, i, found[i], accumulate);
}

void ref_sequence_value(const ref_call *call) {
  ref_operand values = ref_in(call, 0), weights = ref_in(call, 1);
  ref_operand sums = ref_out(call, 0), counts = ref_out(call, 1);
  int64_t width = ref_last_dim(&weights);
  for (int64_t b = 0; b < sums.n_elements; b++) {
    double sum = 0, count = 0;
    for (int64_t t = b * width; t < (b + 1) * width; t++) {
      double weight = ref_load(&weights, t);
      sum += weight * ref_load(&values, t);
      count += weight;
    }
    ref_store(&sums, b, sum);
    ref_store(&counts, b, count);
  }
}

void ref_value_grad(const ref_call *call) {
  ref_operand weights = ref_in(call, 0), y = ref_out(call, 0);
  double scale = ref_real(call, NX_value_grad_scale);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, scale * ref_load(&weights, i));
}

void ref_row_weights(const ref_call *call) {
  ref_operand slopes = ref_in(call, 0), weights = ref_in(call, 1), y = ref_out(call, 0);
  int64_t width = ref_last_dim(&weights);
  for (int64_t i = 0; i < y.n_elements; i++)
    ref_store(&y, i, ref_load(&slopes, i / width) * ref_load(&weights, i));
}
