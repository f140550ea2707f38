/* SPDX-License-Identifier: Apache-2.0 */
/* Routing of tokens to experts, as every backend computes it: in double precision, by the same comparisons.
 *
 * A token goes to the k experts with the largest values (logits, what sinkhorn makes of them, or corrected
 * scores of some groups of experts); equal ones are taken in ascending number. `chosen` has their numbers,
 * descending by value. What an expert's capacity leaves out is marked -1 - e, so that the gradient of
 * normalised weights still knows who was chosen. Tokens of a micro-batch are counted in logical order
 * (sequence by sequence), whichever ranks hold them, so that every layout drops the same ones. Sinkhorn and
 * the load-balancing loss are those of Megatron-LM (megatron/core/transformer/moe/moe_utils.py: sinkhorn,
 * switch_load_balancing_loss_func, z_loss_func). */
#ifndef NXK_MOE_H
#define NXK_MOE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nxk_moe_score { NXK_MOE_SOFTMAX = 0, NXK_MOE_SOFTMAX_OF_CHOSEN, NXK_MOE_SIGMOID } nxk_moe_score;

typedef enum nxk_moe_dropped { NXK_MOE_LIGHTEST = 0, NXK_MOE_LAST, NXK_MOE_LEAST } nxk_moe_dropped;

typedef struct nxk_moe {
  int64_t n_sequences, sequence; /* of the whole micro-batch */
  int64_t n_experts, top_k;
  int64_t score; /* nxk_moe_score */
  bool normalize;
  double scale;
  int64_t sinkhorn; /* rounds */
  double tolerance;
  int64_t capacity; /* 0: none */
  int64_t drop;     /* nxk_moe_dropped */
  int64_t zigzag; /* ranks that hold the sequence in zigzag order; 0: it is in order */
  int64_t groups, top_groups, group_best; /* as of moe_route */
  bool by_logits; /* a correction is one of logits */
} nxk_moe;

/* Where a rank's memory has the token at `position` of its sequence. */
static inline int64_t nxk_moe_place(const nxk_moe *moe, int64_t position) {
  if (moe->zigzag <= 1) return position;
  int64_t chunk = moe->sequence / (2 * moe->zigzag), index = position / chunk;
  int64_t held = index < moe->zigzag ? 2 * index : 2 * (2 * moe->zigzag - 1 - index) + 1;
  return held * chunk + position % chunk;
}

static inline void nxk_moe_choose(const double *values, int64_t n_experts, int64_t top_k, int32_t *chosen) {
  int64_t n = 0;
  for (int64_t e = 0; e < n_experts; e++) {
    int64_t at = n;
    while (at > 0 && values[e] > values[chosen[at - 1]]) at--;
    if (at == top_k) continue;
    if (n < top_k) n++;
    for (int64_t i = n - 1; i > at; i--) chosen[i] = chosen[i - 1];
    chosen[at] = (int32_t)e;
  }
}

/* What is read from memory is never trusted as an index. Of a mark that is of no expert: the first. */
static inline int64_t nxk_moe_expert(const nxk_moe *moe, int32_t mark) {
  int64_t expert = mark < 0 ? -1 - (int64_t)mark : mark;
  return expert < moe->n_experts ? expert : 0;
}

/* -1 where the buffer has no such row. */
static inline int64_t nxk_moe_row(int64_t row, int64_t n_rows) {
  return row >= 0 && row < n_rows ? row : -1;
}

/* How many of the `n_left` rows of a block are the next expert's. */
static inline int64_t nxk_moe_count(int32_t count, int64_t n_left) {
  return count < 0 ? 0 : count < n_left ? count : n_left;
}

/* p = softmax(x); returns the logarithm of the sum of exponentials. */
static inline double nxk_moe_softmax(const double *x, int64_t n, double *p) {
  double most = x[0], sum = 0;
  for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
  for (int64_t i = 0; i < n; i++) sum += p[i] = exp(x[i] - most);
  for (int64_t i = 0; i < n; i++) p[i] /= sum;
  return most + log(sum);
}

/* The scores of the chosen experts before they are normalised and scaled. `p` has room for n_experts. */
static inline void nxk_moe_scores(const nxk_moe *moe, const double *logits, const int32_t *chosen, double *p,
                                  double *scores) {
  double most = logits[nxk_moe_expert(moe, chosen[0])], sum = 0;
  if (moe->score == NXK_MOE_SOFTMAX) nxk_moe_softmax(logits, moe->n_experts, p);
  for (int64_t j = 1; j < moe->top_k; j++) most = fmax(most, logits[nxk_moe_expert(moe, chosen[j])]);
  for (int64_t j = 0; j < moe->top_k; j++) {
    double x = logits[nxk_moe_expert(moe, chosen[j])];
    if (moe->score == NXK_MOE_SOFTMAX) scores[j] = p[nxk_moe_expert(moe, chosen[j])];
    if (moe->score == NXK_MOE_SIGMOID) scores[j] = 1 / (1 + exp(-x));
    if (moe->score == NXK_MOE_SOFTMAX_OF_CHOSEN) sum += scores[j] = exp(x - most);
  }
  for (int64_t j = 0; j < moe->top_k && moe->score == NXK_MOE_SOFTMAX_OF_CHOSEN; j++) scores[j] /= sum;
}

static inline double nxk_moe_sum(const double *scores, int64_t n) {
  double sum = 1e-20;
  for (int64_t j = 0; j < n; j++) sum += scores[j];
  return sum;
}

static inline void nxk_moe_weights(const nxk_moe *moe, const double *logits, const int32_t *chosen, double *p,
                                   double *weights) {
  nxk_moe_scores(moe, logits, chosen, p, weights);
  double factor = moe->normalize ? moe->scale / nxk_moe_sum(weights, moe->top_k) : moe->scale;
  for (int64_t j = 0; j < moe->top_k; j++) weights[j] *= factor;
}

/* dlogits of one token, from the gradient of its weights. `p` has room for n_experts, `scores` for top_k;
 * dweights is overwritten. */
static inline void nxk_moe_weights_grad(const nxk_moe *moe, const double *logits, const int32_t *chosen,
                                        double *dweights, double *p, double *scores, double *dlogits) {
  nxk_moe_scores(moe, logits, chosen, p, scores);
  double sum = moe->normalize ? nxk_moe_sum(scores, moe->top_k) : 1, mean = 0, inner = 0;
  for (int64_t j = 0; j < moe->top_k; j++) mean += dweights[j] * scores[j] / sum;
  for (int64_t j = 0; j < moe->top_k; j++)
    dweights[j] = moe->scale * (dweights[j] - (moe->normalize ? mean : 0)) / sum;
  for (int64_t j = 0; j < moe->top_k; j++) inner += dweights[j] * scores[j];
  for (int64_t e = 0; e < moe->n_experts; e++) dlogits[e] = moe->score == NXK_MOE_SOFTMAX ? -inner * p[e] : 0;
  for (int64_t j = 0; j < moe->top_k; j++) {
    double s = scores[j], slope = dweights[j] * s;
    if (moe->score == NXK_MOE_SIGMOID) slope *= 1 - s;
    if (moe->score == NXK_MOE_SOFTMAX_OF_CHOSEN) slope -= inner * s;
    dlogits[nxk_moe_expert(moe, chosen[j])] += slope;
  }
}

/* ---- what chooses ---- */

/* Whether a value is one of the n largest, of equal ones the first. */
static inline bool nxk_moe_is_among(const double *values, int64_t n_values, int64_t at, int64_t n) {
  int64_t before = 0;
  for (int64_t i = 0; i < n_values; i++)
    before += values[i] > values[at] || (values[i] == values[at] && i < at);
  return before < n;
}

/* Closes the groups that are worth less than others; `worth` has room for them. */
static inline void nxk_moe_close_groups(const nxk_moe *moe, double *values, double *worth) {
  int64_t size = moe->n_experts / moe->groups;
  for (int64_t g = 0; g < moe->groups; g++) {
    worth[g] = 0;
    for (int64_t i = 0; i < size; i++)
      if (nxk_moe_is_among(values + g * size, size, i, moe->group_best)) worth[g] += values[g * size + i];
  }
  for (int64_t e = 0; e < moe->n_experts; e++)
    if (!nxk_moe_is_among(worth, moe->groups, e / size, moe->top_groups)) values[e] = -INFINITY;
}

/* The values that choose the experts of a token: logits, or scores where there are groups or a correction of
 * scores (else NULL). `p` has room for n_experts, as `values` has. */
static inline void nxk_moe_choosing(const nxk_moe *moe, const double *logits, const double *correction,
                                    double *p, double *values) {
  bool scores = (correction != NULL && !moe->by_logits) || moe->groups > 1;
  if (scores && moe->score == NXK_MOE_SOFTMAX) nxk_moe_softmax(logits, moe->n_experts, p);
  for (int64_t e = 0; e < moe->n_experts; e++) {
    values[e] = logits[e];
    if (scores && moe->score == NXK_MOE_SOFTMAX) values[e] = p[e];
    if (scores && moe->score == NXK_MOE_SIGMOID) values[e] = 1 / (1 + exp(-logits[e]));
    if (correction) values[e] += correction[e];
  }
  if (moe->groups > 1) nxk_moe_close_groups(moe, values, p);
}

/* Turns logits [n, n_experts] into what chooses. `columns` has room for 2 n_experts. */
static inline void nxk_moe_sinkhorn(const nxk_moe *moe, double *x, int64_t n, double *columns) {
  const double epsilon = 1e-8;
  int64_t n_experts = moe->n_experts;
  double *sums = columns + n_experts, error = INFINITY;
  for (int64_t i = 0; i < n * n_experts; i++) x[i] = exp(x[i]);
  for (int64_t e = 0; e < n_experts; e++) columns[e] = 1;
  for (int64_t round = 0; round < moe->sinkhorn && error > moe->tolerance; round++) {
    for (int64_t e = 0; e < n_experts; e++) sums[e] = 0;
    for (int64_t t = 0; t < n; t++) {
      double sum = 0;
      for (int64_t e = 0; e < n_experts; e++) sum += columns[e] * x[t * n_experts + e];
      double row = 1 / ((double)n * (sum + epsilon));
      for (int64_t e = 0; e < n_experts; e++) sums[e] += row * x[t * n_experts + e];
    }
    error = 0;
    for (int64_t e = 0; e < n_experts; e++) {
      double column = 1 / ((double)n_experts * (sums[e] + epsilon));
      error += fabs(columns[e] - column) / (double)n_experts;
      columns[e] = column;
    }
  }
  for (int64_t i = 0; i < n * n_experts; i++) x[i] *= columns[i % n_experts];
}

/* ---- capacity ---- */

typedef struct nxk_moe_claim {
  float weight;
  int32_t position; /* in logical order, over the micro-batch */
  int32_t at;       /* in `chosen` */
} nxk_moe_claim;

/* Whether `a` is dropped rather than `b`. */
static inline bool nxk_moe_yields(const nxk_moe_claim *a, const nxk_moe_claim *b) {
  return a->weight != b->weight ? a->weight < b->weight : a->position > b->position;
}

static inline void nxk_moe_sift(nxk_moe_claim *heap, int64_t n, int64_t at) {
  for (int64_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
    if (child + 1 < n && nxk_moe_yields(&heap[child + 1], &heap[child])) child++;
    if (!nxk_moe_yields(&heap[child], &heap[at])) return;
    const nxk_moe_claim kept = heap[at];
    heap[at] = heap[child], heap[child] = kept;
  }
}

/* Marks what is beyond the capacity of its expert. The claims of an expert come in logical order; `claims`
 * has room for `capacity`: a heap with the next to be dropped on top. weights, chosen: [tokens as held,
 * top_k]; priorities: [tokens as held, n_experts], where they decide. */
static inline void nxk_moe_drop(const nxk_moe *moe, const float *weights, const float *priorities,
                                int32_t *chosen, nxk_moe_claim *claims) {
  int64_t n_tokens = moe->n_sequences * moe->sequence;
  for (int64_t e = 0; e < moe->n_experts && moe->capacity > 0; e++) {
    int64_t n = 0;
    for (int64_t position = 0; position < n_tokens; position++) {
      int64_t first = position / moe->sequence * moe->sequence;
      int64_t token = first + nxk_moe_place(moe, position % moe->sequence);
      for (int64_t at = token * moe->top_k; at < (token + 1) * moe->top_k; at++) {
        if (chosen[at] != e) continue;
        float decides = moe->drop == NXK_MOE_LIGHTEST ? weights[at]
                        : moe->drop == NXK_MOE_LEAST  ? priorities[token * moe->n_experts + e]
                                                      : 0;
        const nxk_moe_claim claim = {decides, (int32_t)position, (int32_t)at};
        if (n < moe->capacity) {
          claims[n++] = claim;
          for (int64_t i = n / 2; n == moe->capacity && i-- > 0;) nxk_moe_sift(claims, n, i);
        } else if (nxk_moe_yields(&claims[0], &claim)) {
          chosen[claims[0].at] = (int32_t)(-1 - e);
          claims[0] = claim;
          nxk_moe_sift(claims, n, 0);
        } else {
          chosen[at] = (int32_t)(-1 - e);
        }
      }
    }
  }
}

/* ---- rows ---- */

/* What ends a run: rows, room (both long long), and the first over the second. */
#define NXK_MOE_FULL \
  "%lld rows go to the experts of one rank, and there is room for %lld: set moe.buffer_factor to more than " \
  "%.2f times its value, or balance the load (moe.aux_loss_coef)"

/* Numbers the rows of what is kept: of each destination packed by expert, then by token. chosen [n], rows
 * [n], counts [n_destinations, n_local]; `next` has room for as many. False where a destination gets more
 * than n_rows: `most` says how many. */
static inline bool nxk_moe_number(const int32_t *chosen, int64_t n, int64_t expert_start,
                                  int64_t n_destinations, int64_t n_local, int64_t n_rows, int32_t *counts,
                                  int64_t *next, int32_t *rows, int64_t *most) {
  int64_t n_experts = n_destinations * n_local;
  for (int64_t e = 0; e < n_experts; e++) counts[e] = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t e = chosen[i] - expert_start;
    if (chosen[i] >= 0 && e >= 0 && e < n_experts) counts[e]++;
  }
  *most = 0;
  for (int64_t d = 0; d < n_destinations; d++) {
    int64_t row = 0;
    for (int64_t e = d * n_local; e < (d + 1) * n_local; row += counts[e++]) next[e] = d * n_rows + row;
    if (row > *most) *most = row;
  }
  for (int64_t i = 0; i < n && *most <= n_rows; i++) {
    int64_t e = chosen[i] - expert_start;
    rows[i] = chosen[i] >= 0 && e >= 0 && e < n_experts ? (int32_t)next[e]++ : -1;
  }
  return *most <= n_rows;
}

/* ---- losses ---- */

/* Probabilities as the load-balancing loss has them: softmax; or sigmoids, divided by their sum. Returns the
 * logarithm of the sum of exponentials. */
static inline double nxk_moe_probabilities(int64_t score, const double *logits, int64_t n_experts,
                                           double *p) {
  double lse = nxk_moe_softmax(logits, n_experts, p), sum = 1e-20;
  if (score != NXK_MOE_SIGMOID) return lse;
  for (int64_t e = 0; e < n_experts; e++) sum += 1 / (1 + exp(-logits[e]));
  for (int64_t e = 0; e < n_experts; e++) p[e] = 1 / (1 + exp(-logits[e])) / sum;
  return lse;
}

/* Of one token: adds to dlogits the gradient of aux x sum of probability x counts, and of z x lse^2. Returns
 * both sums without their factors. `p` has room for n_experts; dlogits may be NULL. */
static inline void nxk_moe_losses(int64_t score, const double *logits, const double *counts,
                                  int64_t n_experts, double aux, double z, double *p, double *dlogits,
                                  double sums[2]) {
  double lse = nxk_moe_probabilities(score, logits, n_experts, p), mean = 0;
  for (int64_t e = 0; e < n_experts; e++) mean += p[e] * counts[e];
  for (int64_t e = 0; e < n_experts && dlogits; e++) {
    double slope = score == NXK_MOE_SIGMOID ? p[e] / (1 + exp(logits[e])) : p[e];
    dlogits[e] += slope * aux * (counts[e] - mean) + exp(logits[e] - lse) * 2 * z * lse;
  }
  sums[0] = mean;
  sums[1] = lse * lse;
}

#endif
