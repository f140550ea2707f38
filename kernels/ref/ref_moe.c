/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts: routing, its losses, and the way of tokens to experts and back. */
#include "kernels/moe.h"
#include "kernels/ref/ref.h"

/* The workspace of a route: one row of everything, then the whole micro-batch's. */
typedef struct route_work {
  double *logits, *p, *load, *columns, *weights; /* [E], [E], [E], [2E], [k]; load: what chooses, before */
  double *correction;                            /* [E]; NULL: there is none */
  double *all;                                   /* [n,E] where sinkhorn chooses, else NULL */
  float *all_weights;                            /* [n,k] */
  int32_t *chosen;                               /* [n,k] */
  nxk_moe_claim *claims;                         /* [capacity] */
} route_work;

static int64_t doubles(int64_t n, size_t bytes) {
  return (n * (int64_t)bytes + 7) / 8;
}

static int64_t attribute(const nxk_operator *operator, uint32_t index) {
  return operator->attrs[index].integer;
}

int64_t ref_moe_route_work(const nxk_operator *operator) {
  const int64_t *all = operator->args[1].dims;
  int64_t n = all[0] * all[1], n_experts = all[2], k = attribute(operator, NX_moe_route_top_k);
  int64_t matrix = attribute(operator, NX_moe_route_sinkhorn) ? n * n_experts : 0;
  return 6 * n_experts + k + matrix + doubles(n * k, sizeof(float)) + doubles(n * k, sizeof(int32_t)) +
         doubles(attribute(operator, NX_moe_route_capacity), sizeof(nxk_moe_claim));
}

static route_work route_work_of(double *work, const nxk_moe *moe, bool corrected) {
  int64_t n = moe->n_sequences * moe->sequence, n_experts = moe->n_experts;
  route_work w = {.logits = work, .p = work + n_experts, .load = work + 2 * n_experts};
  w.columns = w.load + n_experts;
  w.weights = w.columns + 2 * n_experts;
  double *next = w.weights + moe->top_k;
  if (corrected) w.correction = next, next += n_experts;
  if (moe->sinkhorn) w.all = next, next += n * n_experts;
  w.all_weights = (float *)next, next += doubles(n * moe->top_k, sizeof(float));
  w.chosen = (int32_t *)next, next += doubles(n * moe->top_k, sizeof(int32_t));
  w.claims = (nxk_moe_claim *)next;
  return w;
}

static nxk_moe route_form(const ref_call *call) {
  const int64_t *all = call->operator->args[1].dims;
  return (nxk_moe){.n_sequences = all[0],
                   .sequence = all[1],
                   .n_experts = all[2],
                   .top_k = ref_int(call, NX_moe_route_top_k),
                   .score = ref_int(call, NX_moe_route_score),
                   .normalize = ref_int(call, NX_moe_route_normalize),
                   .scale = ref_real(call, NX_moe_route_scale),
                   .sinkhorn = ref_int(call, NX_moe_route_sinkhorn),
                   .tolerance = ref_real(call, NX_moe_route_tolerance),
                   .capacity = ref_int(call, NX_moe_route_capacity),
                   .drop = ref_int(call, NX_moe_route_drop),
                   .zigzag = ref_int(call, NX_moe_route_zigzag),
                   .groups = ref_int(call, NX_moe_route_groups),
                   .top_groups = ref_int(call, NX_moe_route_top_groups),
                   .group_best = ref_int(call, NX_moe_route_group_best),
                   .by_logits = ref_int(call, NX_moe_route_by_logits)};
}

static void choose_all(const nxk_moe *moe, const ref_operand *all, const route_work *w) {
  int64_t n = moe->n_sequences * moe->sequence, n_experts = moe->n_experts, k = moe->top_k;
  if (w->all) {
    ref_load_row(all, 0, 1, n * n_experts, w->all);
    nxk_moe_sinkhorn(moe, w->all, n, w->columns);
  }
  for (int64_t t = 0; t < n; t++) {
    ref_load_row(all, t * n_experts, 1, n_experts, w->logits);
    if (!w->all) nxk_moe_choosing(moe, w->logits, w->correction, w->p, w->load);
    nxk_moe_choose(w->all ? w->all + t * n_experts : w->load, n_experts, k, w->chosen + t * k);
    nxk_moe_weights(moe, w->logits, w->chosen + t * k, w->p, w->weights);
    for (int64_t j = 0; j < k; j++) w->all_weights[t * k + j] = (float)w->weights[j];
  }
}

static void count(const nxk_moe *moe, const int32_t *chosen, const ref_operand *counts) {
  int64_t n_each = moe->n_sequences * moe->sequence * moe->top_k / counts->dims[0];
  for (int64_t i = 0; i < counts->n_elements; i++) ref_store(counts, i, 0);
  for (int64_t i = 0; i < n_each * counts->dims[0]; i++)
    ref_store_sum(counts, i / n_each * moe->n_experts + chosen[i], 1, true);
}

void ref_moe_route(const ref_call *call) {
  ref_operand logits = ref_in(call, 0), all = ref_in(call, 1);
  ref_operand experts = ref_out(call, 0), weights = ref_out(call, 1), counts = ref_out(call, 2),
              losses = ref_out(call, 3);
  nxk_moe moe = route_form(call);
  bool third = call->operator->n_in > 2, ranked = moe.drop == NXK_MOE_LEAST, corrected = third && !ranked;
  route_work w = route_work_of(call->work, &moe, corrected);
  int64_t k = moe.top_k, n_local = logits.dims[1], seq_start = ref_int(call, NX_moe_route_seq_start);
  double sums[2], total[2] = {0, 0};
  ref_operand more = third ? ref_in(call, 2) : all;
  if (corrected) ref_load_row(&more, 0, 1, moe.n_experts, w.correction);
  choose_all(&moe, &all, &w);
  count(&moe, w.chosen, &counts);
  nxk_moe_drop(&moe, w.all_weights, ranked ? more.data : NULL, w.chosen, w.claims);
  for (int64_t t = 0; t < moe.n_sequences * n_local; t++) {
    const int32_t *chosen = w.chosen + (t / n_local * moe.sequence + seq_start + t % n_local) * k;
    ref_load_row(&logits, t * moe.n_experts, 1, moe.n_experts, w.logits);
    nxk_moe_weights(&moe, w.logits, chosen, w.p, w.weights);
    for (int64_t j = 0; j < k; j++) {
      ref_store(&experts, t * k + j, chosen[j]);
      ref_store(&weights, t * k + j, w.weights[j]);
    }
    ref_load_row(&counts, t / n_local * counts.dims[0] / moe.n_sequences * moe.n_experts, 1, moe.n_experts,
                 w.load);
    nxk_moe_losses(moe.score, w.logits, w.load, moe.n_experts, 0, 0, w.p, NULL, sums);
    for (int i = 0; i < 2; i++) total[i] += sums[i];
  }
  ref_store(&losses, 0, ref_real(call, NX_moe_route_aux) * total[0]);
  ref_store(&losses, 1, ref_real(call, NX_moe_route_z) * total[1]);
}

int64_t ref_moe_route_grad_work(const nxk_operator *operator) {
  return 4 * operator->args[1].dims[2] + 2 * operator->args[2].dims[2];
}

void ref_moe_route_grad(const ref_call *call) {
  ref_operand dweights = ref_in(call, 0), logits = ref_in(call, 1), experts = ref_in(call, 2),
              counts = ref_in(call, 3), dlogits = ref_out(call, 0);
  int64_t n_experts = logits.dims[2], k = experts.dims[2], n = logits.dims[0] * logits.dims[1];
  nxk_moe moe = {.n_experts = n_experts,
                 .top_k = k,
                 .score = ref_int(call, NX_moe_route_grad_score),
                 .normalize = ref_int(call, NX_moe_route_grad_normalize),
                 .scale = ref_real(call, NX_moe_route_grad_scale)};
  double aux = ref_real(call, NX_moe_route_grad_aux), z = ref_real(call, NX_moe_route_grad_z), sums[2];
  if (call->operator->n_in > 4) {
    const ref_operand factor = ref_in(call, 4);
    aux *= ref_load(&factor, 0), z *= ref_load(&factor, 0);
  }
  double *x = call->work, *p = x + n_experts, *dx = p + n_experts, *load = dx + n_experts,
         *dw = load + n_experts, *scores = dw + k;
  for (int64_t t = 0; t < n; t++) {
    ref_load_row(&logits, t * n_experts, 1, n_experts, x);
    ref_load_row(&counts, t / logits.dims[1] * counts.dims[0] / logits.dims[0] * n_experts, 1, n_experts,
                 load);
    ref_load_row(&dweights, t * k, 1, k, dw);
    nxk_moe_weights_grad(&moe, x, (const int32_t *)experts.data + t * k, dw, p, scores, dx);
    if (aux != 0 || z != 0) nxk_moe_losses(moe.score, x, load, n_experts, aux, z, p, dx, sums);
    ref_store_row(&dlogits, t * n_experts, n_experts, dx);
  }
}

void ref_moe_imbalance(const ref_call *call) {
  ref_operand counts = ref_in(call, 0), y = ref_out(call, 0);
  int64_t n_experts = y.n_elements;
  bool adds = ref_int(call, NX_moe_imbalance_accumulate);
  double all = 0;
  for (int64_t i = 0; i < counts.n_elements; i++) all += ref_load(&counts, i);
  for (int64_t e = 0; e < n_experts; e++) {
    double own = 0;
    for (int64_t i = e; i < counts.n_elements; i += n_experts) own += ref_load(&counts, i);
    ref_store_sum(&y, e, (double)n_experts * own - all, adds);
  }
}

/* ---- quantiles ---- */

int64_t ref_moe_quantile_work(const nxk_operator *operator) {
  const int64_t *all = operator->args[0].dims;
  int64_t k = attribute(operator, NX_moe_quantile_top_k);
  return 3 * all[2] + 2 * doubles(all[0] * all[1], sizeof(float)) + doubles(k + 1, sizeof(int32_t));
}

/* The element that `nth` others are not below. */
static float select_nth(float *x, int64_t n, int64_t nth) {
  int64_t first = 0, last = n - 1;
  while (first < last) {
    const float pivot = x[first + (last - first) / 2];
    int64_t i = first, j = last;
    while (i <= j) {
      while (x[i] > pivot) i++;
      while (x[j] < pivot) j--;
      if (i > j) break;
      const float moved = x[i];
      x[i++] = x[j], x[j--] = moved;
    }
    if (nth > j && nth < i) break;
    if (nth <= j) last = j;
    else first = i;
  }
  return x[nth];
}

/* Of each token, the greatest corrected logit that does not choose. */
static void find_bounds(const nxk_moe *moe, const ref_operand *all, const double *correction, double *work,
                        int32_t *chosen, float *bounds) {
  double *logits = work, *values = logits + moe->n_experts;
  for (int64_t t = 0; t < moe->n_sequences; t++) {
    ref_load_row(all, t * moe->n_experts, 1, moe->n_experts, logits);
    nxk_moe_choosing(moe, logits, correction, NULL, values);
    nxk_moe_choose(values, moe->n_experts, moe->top_k, chosen);
    bounds[t] = (float)values[chosen[moe->top_k - 1]];
  }
}

/* As Megatron-LM's qb_dual_update, in fp32 as there; its corrections are the negative of these. */
void ref_moe_quantile(const ref_call *call) {
  ref_operand all = ref_in(call, 0), given = ref_in(call, 1), y = ref_out(call, 0);
  int64_t n = all.dims[0] * all.dims[1], n_experts = all.dims[2], k = ref_int(call, NX_moe_quantile_top_k);
  bool adds = ref_int(call, NX_moe_quantile_accumulate);
  const nxk_moe moe = {
      .n_sequences = n, .n_experts = n_experts, .top_k = k + 1, .groups = 1, .by_logits = true};
  double *correction = call->work, *room = correction + n_experts, *next = room + 2 * n_experts;
  float *bounds = (float *)next, *margins = (float *)(next + doubles(n, sizeof(float)));
  ref_load_row(&given, 0, 1, n_experts, correction);
  find_bounds(&moe, &all, correction, room, (int32_t *)(next + 2 * doubles(n, sizeof(float))), bounds);
  for (int64_t e = 0; e < n_experts; e++) {
    for (int64_t t = 0; t < n; t++) margins[t] = (float)ref_load(&all, t * n_experts + e) - bounds[t];
    ref_store_sum(&y, e, (double)select_nth(margins, n, n * k / n_experts), adds);
  }
  ref_store_sum(&y, n_experts, 1, adds);
}

void ref_moe_settle(const ref_call *call) {
  ref_operand sums = ref_in(call, 1), correction = ref_out(call, 0);
  int64_t n = correction.n_elements;
  double memory = ref_real(call, NX_moe_settle_memory), number = ref_load(&sums, n), mean = 0;
  if (!(number > 0)) return;
  for (int64_t pass = 0; pass < 2; pass++)
    for (int64_t e = 0; e < n; e++) {
      double value = memory * ref_load(&correction, e) - (1 - memory) * ref_load(&sums, e) / number;
      if (pass == 0) mean += value / (double)n;
      else ref_store(&correction, e, value - mean);
    }
}

/* ---- loads ---- */

void ref_moe_share(const ref_call *call) {
  ref_operand counts = ref_in(call, 0), y = ref_out(call, 0);
  double all = 0;
  for (int64_t e = 0; e < y.n_elements; e++) all += ref_load(&counts, e);
  for (int64_t e = 0; e < y.n_elements; e++) ref_store(&y, e, all > 0 ? ref_load(&counts, e) / all : 0);
}

void ref_moe_load(const ref_call *call) {
  ref_operand counts = ref_in(call, 0), y = ref_out(call, 0);
  bool shared = call->operator->n_in > 1;
  ref_operand shares = shared ? ref_in(call, 1) : counts;
  double together = ref_real(call, NX_moe_load_together), further = ref_real(call, NX_moe_load_further);
  int64_t n_experts = ref_last_dim(&y);
  for (int64_t i = 0; i < y.n_elements; i++) {
    double all = 0;
    for (int64_t at = i % n_experts; at < y.n_elements; at += n_experts) all += ref_load(&counts, at);
    double beside = shared ? further * ref_load(&shares, i % n_experts) : 0;
    ref_store(&y, i, ref_load(&counts, i) + together * all + beside);
  }
}

int64_t ref_moe_index_work(const nxk_operator *operator) {
  return attribute(operator, NX_moe_index_destinations) * attribute(operator, NX_moe_index_experts);
}

void ref_moe_index(const ref_call *call) {
  ref_operand experts = ref_in(call, 0), rows = ref_out(call, 0), counts = ref_out(call, 1);
  int64_t n_rows = ref_int(call, NX_moe_index_rows), most;
  if (nxk_moe_number(experts.data, experts.n_elements, ref_int(call, NX_moe_index_expert_start),
                     counts.dims[0], counts.dims[2], n_rows, counts.data, (int64_t *)call->work, rows.data,
                     &most))
    return;
  nxk_fail(call->frame, NXK_MOE_FULL, (long long)most, (long long)n_rows, (double)most / (double)n_rows);
}

/* y[rows[t,j]] = x[t], or dx[t] weights[t,j] where there are weights. */
static void scatter(const ref_operand *x, const ref_operand *rows, const ref_operand *weights,
                    const ref_operand *y) {
  int64_t k = rows->dims[2], width = ref_last_dim(x);
  for (int64_t i = 0; i < y->n_elements; i++) ref_store(y, i, 0);
  for (int64_t i = 0; i < rows->n_elements; i++) {
    int64_t row = nxk_moe_row(ref_index(rows, i), y->n_elements / width);
    double weight = weights ? ref_load(weights, i) : 1;
    for (int64_t h = 0; row >= 0 && h < width; h++)
      ref_store(y, row * width + h, weight * ref_load(x, i / k * width + h));
  }
}

void ref_moe_permute(const ref_call *call) {
  ref_operand x = ref_in(call, 0), rows = ref_in(call, 1), y = ref_out(call, 0);
  scatter(&x, &rows, NULL, &y);
}

void ref_moe_combine(const ref_call *call) {
  ref_operand y = ref_in(call, 0), rows = ref_in(call, 1), x = ref_out(call, 0);
  bool weighted = call->operator->n_in == 3;
  ref_operand weights = weighted ? ref_in(call, 2) : (ref_operand){0};
  int64_t k = rows.dims[2], width = ref_last_dim(&x);
  for (int64_t i = 0; i < x.n_elements; i++) {
    double sum = 0;
    for (int64_t at = i / width * k; at < (i / width + 1) * k; at++) {
      int64_t row = nxk_moe_row(ref_index(&rows, at), y.n_elements / width);
      if (row >= 0) sum += (weighted ? ref_load(&weights, at) : 1) * ref_load(&y, row * width + i % width);
    }
    ref_store(&x, i, sum);
  }
}

void ref_moe_combine_grad(const ref_call *call) {
  ref_operand dx = ref_in(call, 0), y = ref_in(call, 1), rows = ref_in(call, 2), weights = ref_in(call, 3);
  ref_operand dy = ref_out(call, 0), dweights = ref_out(call, 1);
  int64_t k = rows.dims[2], width = ref_last_dim(&dx);
  scatter(&dx, &rows, &weights, &dy);
  for (int64_t i = 0; i < rows.n_elements; i++) {
    int64_t row = nxk_moe_row(ref_index(&rows, i), y.n_elements / width);
    double sum = 0;
    for (int64_t h = 0; row >= 0 && h < width; h++)
      sum += ref_load(&dx, i / k * width + h) * ref_load(&y, row * width + h);
    ref_store(&dweights, i, sum);
  }
}
