/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a vocabulary that may be divided over ranks: per shard three numbers a token, then their
 * union, then the gradient of each shard. */
#include "kernels/ref/ref.h"

#include <math.h>

/* Logits as they are read: capped, with the slope that this leaves them. */
static double capped(double x, double cap, double *slope) {
  double t = cap > 0 ? tanh(x / cap) : 0;
  *slope = 1 - t * t;
  return cap > 0 ? cap * t : x;
}

static double logit(const ref_operand *logits, int64_t i, double cap) {
  double slope;
  return capped(ref_load(logits, i), cap, &slope);
}

void ref_ce_stats(const ref_call *call) {
  ref_operand logits = ref_in(call, 0), labels = ref_in(call, 1), stats = ref_out(call, 0);
  int64_t width = ref_last_dim(&logits), start = ref_int(call, NX_ce_stats_row_start);
  int64_t n_valid = ref_int(call, NX_ce_stats_n_valid);
  double cap = ref_real(call, NX_ce_stats_soft_cap);
  for (int64_t t = 0; t < labels.n_elements; t++) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n_valid; i++) largest = fmax(largest, logit(&logits, t * width + i, cap));
    for (int64_t i = 0; i < n_valid; i++) sum += exp(logit(&logits, t * width + i, cap) - largest);
    int64_t label = ref_index(&labels, t) - start;
    bool local = label >= 0 && label < n_valid;
    ref_store(&stats, 3 * t, largest);
    ref_store(&stats, 3 * t + 1, sum);
    ref_store(&stats, 3 * t + 2, local ? logit(&logits, t * width + label, cap) : 0);
  }
}

double ref_log_sum_exp(const ref_operand *stats, int64_t t, int64_t n_tokens, int64_t n_shards,
                       double *label) {
  double largest = -INFINITY, sum = 0;
  *label = 0;
  for (int64_t shard = 0; shard < n_shards; shard++)
    largest = fmax(largest, ref_load(stats, (shard * n_tokens + t) * 3));
  for (int64_t shard = 0; shard < n_shards; shard++) {
    int64_t at = (shard * n_tokens + t) * 3;
    sum += ref_load(stats, at + 1) * exp(ref_load(stats, at) - largest);
    *label += ref_load(stats, at + 2);
  }
  return largest + log(sum);
}

void ref_ce_loss(const ref_call *call) {
  ref_operand stats = ref_in(call, 0), lse = ref_out(call, 0), loss = ref_out(call, 1);
  bool weighed = call->operator->n_in > 1;
  ref_operand weights = weighed ? ref_in(call, 1) : stats;
  double total = 0, z = ref_real(call, NX_ce_loss_z);
  for (int64_t t = 0; t < lse.n_elements; t++) {
    double label, logarithm = ref_log_sum_exp(&stats, t, lse.n_elements, stats.dims[0], &label);
    ref_store(&lse, t, logarithm);
    total += (weighed ? ref_load(&weights, t) : 1) * (logarithm - label + z * logarithm * logarithm);
  }
  ref_store_sum(&loss, 0, total, ref_int(call, NX_ce_loss_accumulate));
}

void ref_ce_grad(const ref_call *call) {
  ref_operand logits = ref_in(call, 0), labels = ref_in(call, 1), lse = ref_in(call, 2),
              dlogits = ref_out(call, 0);
  int64_t width = ref_last_dim(&logits), start = ref_int(call, NX_ce_grad_row_start);
  int64_t n_valid = ref_int(call, NX_ce_grad_n_valid);
  double scale = ref_real(call, NX_ce_grad_scale), z = ref_real(call, NX_ce_grad_z),
         cap = ref_real(call, NX_ce_grad_soft_cap);
  bool weighed = call->operator->n_in > 3;
  ref_operand weights = weighed ? ref_in(call, 3) : lse;
  for (int64_t t = 0; t < labels.n_elements; t++) {
    int64_t label = ref_index(&labels, t) - start;
    double logarithm = ref_load(&lse, t), slope = weighed ? scale * ref_load(&weights, t) : scale;
    for (int64_t i = 0; i < n_valid; i++) {
      double bend, weight = exp(capped(ref_load(&logits, t * width + i), cap, &bend) - logarithm);
      weight *= 1 + 2 * z * logarithm;
      ref_store(&dlogits, t * width + i, slope * bend * (i == label ? weight - 1 : weight));
    }
    for (int64_t i = n_valid; i < width; i++) ref_store(&dlogits, t * width + i, 0);
  }
}

void ref_loss_weights(const ref_call *call) {
  ref_operand factor = ref_in(call, 0), y = ref_out(call, 0), weights = {0};
  bool weighted = call->operator->n_in > 2;
  if (weighted) weights = ref_in(call, 2);
  for (int64_t i = 0; i < y.n_elements; i++)
    ref_store(&y, i, ref_load(&factor, 0) * (weighted ? ref_load(&weights, i) : 1));
}
