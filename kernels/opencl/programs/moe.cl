/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts: routing in fp64, by the comparisons of moe.h, an item for each token; then the way of
 * tokens to experts and back. ROUTE_E and ROUTE_K are the experts and how many a token goes to. */
#include "kernels/moe.h"

#ifdef IS_moe_route
/* scratch, one behind the other: */
#define N_ALL (XDIM(1, 1) * XDIM(1, 2))
#define SINKHORN ((global double *)scratch)         /* [N_ALL, E], where it chooses; and 2 E of columns */
#define LOSSES (SINKHORN + (A_sinkhorn ? N_ALL * ROUTE_E : 0) + 2 * ROUTE_E) /* [tokens, 2] */
#define WEIGHTS ((global float *)(LOSSES + 2 * N_ALL))                       /* [N_ALL, K]; or priorities */
#define CHOSEN ((global int *)(WEIGHTS + N_ALL * ROUTE_K))
#define MARKED (CHOSEN + N_ALL * ROUTE_K)           /* and what capacity leaves of it */

#define MOE_FORM                                                                                             \
  {                                                                                                          \
    .n_sequences = XDIM(1, 1), .sequence = XDIM(1, 2), .n_experts = ROUTE_E, .top_k = ROUTE_K,               \
    .score = A_score, .normalize = A_normalize, .scale = A_scale, .sinkhorn = A_sinkhorn,                    \
    .tolerance = A_tolerance, .capacity = A_capacity, .drop = A_drop, .zigzag = A_zigzag,                    \
    .groups = A_groups, .top_groups = A_top_groups, .group_best = A_group_best, .by_logits = A_by_logits     \
  }

/* One group. */
kernel void route_sinkhorn(OPERANDS) {
  local double error, room[LOCAL];
  long n = N_ALL, item = get_local_id(0);
  global double *x = SINKHORN, *columns = x + n * ROUTE_E, *next = columns + ROUTE_E;
  for (long i = item; i < n * ROUTE_E; i += LOCAL) x[i] = exp((double)X1(i));
  for (long e = item; e < ROUTE_E; e += LOCAL) columns[e] = 1;
  if (item == 0) error = INFINITY;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (long round = 0; round < A_sinkhorn; round++) {
    if (!(error > A_tolerance)) break;
    for (long e = 0; e < ROUTE_E; e++) {
      double sum = 0;
      for (long t = item; t < n; t += LOCAL) {
        double row = 0;
        for (long other = 0; other < ROUTE_E; other++) row += columns[other] * x[t * ROUTE_E + other];
        sum += x[t * ROUTE_E + e] / ((double)n * (row + 1e-8));
      }
      sum = group_sum(sum, room);
      if (item == 0) next[e] = 1 / ((double)ROUTE_E * (sum + 1e-8));
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (item == 0) {
      error = 0;
      for (long e = 0; e < ROUTE_E; e++) {
        error += fabs(columns[e] - next[e]) / (double)ROUTE_E;
        columns[e] = next[e];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  for (long i = item; i < n * ROUTE_E; i += LOCAL) x[i] *= columns[i % ROUTE_E];
}

kernel void route_choose(OPERANDS) {
  const nxk_moe moe = MOE_FORM;
  long t = get_global_id(0);
  double logits[ROUTE_E], p[ROUTE_E], values[ROUTE_E], weights[ROUTE_K];
  int chosen[ROUTE_K];
  if (t >= N_ALL) return;
  for (int e = 0; e < ROUTE_E; e++) logits[e] = X1(t * ROUTE_E + e);
  if (A_sinkhorn) {
    for (int e = 0; e < ROUTE_E; e++) values[e] = SINKHORN[t * ROUTE_E + e];
  } else {
#if N_IN > 2
    double correction[ROUTE_E];
    for (int e = 0; e < ROUTE_E; e++) correction[e] = X2(e);
    nxk_moe_choosing(&moe, logits, A_drop == NXK_MOE_LEAST ? NULL : correction, p, values);
#else
    nxk_moe_choosing(&moe, logits, NULL, p, values);
#endif
  }
  nxk_moe_choose(values, ROUTE_E, ROUTE_K, chosen);
  nxk_moe_weights(&moe, logits, chosen, p, weights);
  for (int j = 0; j < ROUTE_K; j++) {
    WEIGHTS[t * ROUTE_K + j] = (float)weights[j];
#if N_IN > 2
    if (A_drop == NXK_MOE_LEAST) WEIGHTS[t * ROUTE_K + j] = X2(t * ROUTE_E + chosen[j]);
#endif
    CHOSEN[t * ROUTE_K + j] = chosen[j];
  }
}

kernel void route_count(OPERANDS) {
  long i = get_global_id(0), n_each = N_ALL * ROUTE_K / YDIM(2, 2), list = i / ROUTE_E, n = 0;
  if (i >= YN(2)) return;
  for (long at = list * n_each; at < (list + 1) * n_each; at++) n += CHOSEN[at] == i % ROUTE_E;
  SET_Y2(i, n);
}

/* Where a token that memory has at `at` stands in logical order. */
static long position_of(const nxk_moe *moe, long token) {
  long first = token / moe->sequence * moe->sequence, held = token % moe->sequence;
  if (moe->zigzag <= 1) return token;
  long chunk = moe->sequence / (2 * moe->zigzag), index = held / chunk;
  long piece = index % 2 == 0 ? index / 2 : 2 * moe->zigzag - 1 - index / 2;
  return first + piece * chunk + held % chunk;
}

/* A claim is kept where less than `capacity` others of its expert come before it. */
kernel void route_drop(OPERANDS) {
  const nxk_moe moe = MOE_FORM;
  long at = get_global_id(0), n = N_ALL * ROUTE_K, before = 0;
  if (at >= n) return;
  int expert = CHOSEN[at];
  float weight = A_drop == NXK_MOE_LAST ? 0 : WEIGHTS[at];
  long position = position_of(&moe, at / ROUTE_K);
  for (long other = 0; A_capacity > 0 && other < n; other++) {
    if (CHOSEN[other] != expert || other == at) continue;
    const nxk_moe_claim own = {weight, (int)position, 0};
    const nxk_moe_claim others = {A_drop == NXK_MOE_LAST ? 0 : WEIGHTS[other],
                                  (int)position_of(&moe, other / ROUTE_K), 0};
    before += nxk_moe_yields(&own, &others);
  }
  MARKED[at] = A_capacity > 0 && before >= A_capacity ? -1 - expert : expert;
}

kernel void route_weigh(OPERANDS) {
  const nxk_moe moe = MOE_FORM;
  long t = get_global_id(0), n_local = XDIM(0, 2), list = t / n_local * YDIM(2, 2) / XDIM(1, 1);
  double logits[ROUTE_E], p[ROUTE_E], load[ROUTE_E], weights[ROUTE_K], sums[2];
  int chosen[ROUTE_K];
  if (t >= XDIM(0, 1) * n_local) return;
  long all = t / n_local * XDIM(1, 2) + A_seq_start + t % n_local;
  for (int e = 0; e < ROUTE_E; e++) logits[e] = X0(t * ROUTE_E + e), load[e] = Y2(list * ROUTE_E + e);
  for (int j = 0; j < ROUTE_K; j++) chosen[j] = MARKED[all * ROUTE_K + j];
  nxk_moe_weights(&moe, logits, chosen, p, weights);
  for (int j = 0; j < ROUTE_K; j++) {
    SET_Y0(t * ROUTE_K + j, chosen[j]);
    SET_Y1(t * ROUTE_K + j, weights[j]);
  }
  nxk_moe_losses(moe.score, logits, load, ROUTE_E, 0, 0, p, NULL, sums);
  LOSSES[2 * t] = sums[0], LOSSES[2 * t + 1] = sums[1];
}

kernel void route_losses(OPERANDS) {
  local double room[LOCAL];
  double aux = 0, z = 0;
  for (long t = get_local_id(0); t < XDIM(0, 1) * XDIM(0, 2); t += LOCAL)
    aux += LOSSES[2 * t], z += LOSSES[2 * t + 1];
  aux = group_sum(aux, room);
  z = group_sum(z, room);
  if (get_local_id(0) == 0) SET_Y3(0, A_aux * aux), SET_Y3(1, A_z * z);
}
#endif

#ifdef IS_moe_route_grad
kernel void moe_route_grad(OPERANDS) {
  const nxk_moe moe = {.n_experts = ROUTE_E, .top_k = ROUTE_K, .score = A_score, .normalize = A_normalize,
                       .scale = A_scale};
  long t = get_global_id(0), n_tokens = XDIM(1, 2), list = t / n_tokens * XDIM(3, 2) / XDIM(1, 1);
  double logits[ROUTE_E], p[ROUTE_E], back[ROUTE_E], load[ROUTE_E], dweights[ROUTE_K], scores[ROUTE_K],
      sums[2];
  int chosen[ROUTE_K];
  if (t >= XDIM(1, 1) * n_tokens) return;
  for (int e = 0; e < ROUTE_E; e++) logits[e] = X1(t * ROUTE_E + e), load[e] = X3(list * ROUTE_E + e);
  for (int j = 0; j < ROUTE_K; j++) chosen[j] = X2(t * ROUTE_K + j), dweights[j] = X0(t * ROUTE_K + j);
  nxk_moe_weights_grad(&moe, logits, chosen, dweights, p, scores, back);
#if N_IN > 4
  const double factor = X4(0);
#else
  const double factor = 1;
#endif
  if (A_aux != 0 || A_z != 0)
    nxk_moe_losses(moe.score, logits, load, ROUTE_E, factor * A_aux, factor * A_z, p, back, sums);
  for (int e = 0; e < ROUTE_E; e++) SET_Y0(t * ROUTE_E + e, back[e]);
}
#endif

#ifdef IS_moe_imbalance
kernel void moe_imbalance(OPERANDS) {
  long e = get_global_id(0), n_experts = YN(0);
  double all = 0, own = 0;
  if (e >= n_experts) return;
  for (long i = 0; i < XN(0); i++) all += X0(i), own += i % n_experts == e ? X0(i) : 0;
  double value = (double)n_experts * own - all;
  SET_Y0(e, (float)(A_accumulate ? (double)Y0(e) + value : value));
}
#endif

#ifdef IS_moe_quantile
/* scratch: of each token, the greatest corrected logit that does not choose */
#define BOUNDS ((global float *)scratch)

kernel void quantile_bounds(OPERANDS) {
  const nxk_moe moe = {.n_experts = ROUTE_E, .groups = 1, .by_logits = true};
  long t = get_global_id(0);
  double logits[ROUTE_E], correction[ROUTE_E], values[ROUTE_E];
  int chosen[ROUTE_K + 1];
  if (t >= XN(0) / ROUTE_E) return;
  for (int e = 0; e < ROUTE_E; e++) logits[e] = X0(t * ROUTE_E + e), correction[e] = X1(e);
  nxk_moe_choosing(&moe, logits, correction, NULL, values);
  nxk_moe_choose(values, ROUTE_E, ROUTE_K + 1, chosen);
  BOUNDS[t] = (float)values[chosen[ROUTE_K]];
}

/* In the order of the numbers. */
static uint key_of(float x) {
  uint bits = as_uint(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* A group for each expert: bit by bit, the greatest number that enough margins reach. */
kernel void moe_quantile(OPERANDS) {
  local float room[LOCAL];
  long e = get_group_id(0), n = XN(0) / ROUTE_E;
  uint found = 0;
  for (int bit = 31; e < ROUTE_E && bit >= 0; bit--) {
    uint tried = found | 1u << bit;
    float above = 0;
    for (long t = get_local_id(0); t < n; t += LOCAL)
      above += key_of((float)X0(t * ROUTE_E + e) - BOUNDS[t]) >= tried;
    if ((long)group_sum(above, room) > n * ROUTE_K / ROUTE_E) found = tried;
  }
  double value = e < ROUTE_E ? (double)as_float(found >> 31 ? found & 0x7fffffffu : ~found) : 1;
  if (get_local_id(0) == 0) SET_Y0(e, A_accumulate ? Y0(e) + value : value);
}
#endif

#ifdef IS_moe_settle
kernel void moe_settle(OPERANDS) {
  double mean = 0, number = X1(YN(0));
  if (get_global_id(0) != 0 || !(number > 0)) return;
  for (int pass = 0; pass < 2; pass++)
    for (long e = 0; e < YN(0); e++) {
      double value = A_memory * (double)Y0(e) - (1 - A_memory) * X1(e) / number;
      if (pass == 0) mean += value / (double)YN(0);
      else SET_Y0(e, (float)(value - mean));
    }
}
#endif

#ifdef IS_moe_share
kernel void moe_share(OPERANDS) {
  long e = get_global_id(0);
  double all = 0;
  if (e >= YN(0)) return;
  for (long i = 0; i < XN(0); i++) all += X0(i);
  SET_Y0(e, all > 0 ? (float)(X0(e) / all) : 0);
}
#endif

#ifdef IS_moe_load
kernel void moe_load(OPERANDS) {
  long i = get_global_id(0);
  double all = 0, beside = 0;
  if (i >= YN(0)) return;
  for (long at = i % YDIM(0, 3); at < YN(0); at += YDIM(0, 3)) all += X0(at);
#if N_IN > 1
  beside = A_further * X1(i % YDIM(0, 3));
#endif
  SET_Y0(i, (float)(X0(i) + A_together * all + beside));
}
#endif

#ifdef IS_moe_index
/* An item for each expert of a rank; more rows than there are end the run (the host reads `status`). */
kernel void index_count(OPERANDS) {
  long i = get_global_id(0), n = 0;
  if (i >= YN(1)) return;
  for (long at = 0; at < XN(0); at++) n += X0(at) - A_expert_start == i && X0(at) >= 0;
  SET_Y1(i, n);
}

kernel void index_number(OPERANDS) {
  long i = get_global_id(0), first = i / A_experts * A_experts, row = 0, all = 0;
  if (i >= YN(1)) return;
  for (long e = first; e < first + A_experts; e++) {
    if (e < i) row += Y1(e);
    all += Y1(e);
  }
  if (all > A_rows) {
    atomic_max(status, (int)all);
    return;
  }
  row += i / A_experts * A_rows;
  for (long at = 0; at < XN(0); at++)
    if (X0(at) - A_expert_start == i && X0(at) >= 0) SET_Y0(at, row++);
}

kernel void index_others(OPERANDS) {
  long at = get_global_id(0);
  if (at >= XN(0)) return;
  long e = X0(at) - A_expert_start;
  if (X0(at) < 0 || e < 0 || e >= YN(1)) SET_Y0(at, -1);
}
#endif

/* ---- rows ---- */

#if defined IS_moe_permute || defined IS_moe_combine_grad
kernel void rows_clear(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, 0);
}
#endif

#ifdef IS_moe_permute
kernel void moe_permute(OPERANDS) {
  long i = get_global_id(0), width = XDIM(0, 3), at = i / width;
  if (i >= XN(1) * width) return;
  long row = nxk_moe_row(X1(at), YN(0) / width);
  if (row >= 0) SET_Y0(row * width + i % width, X0(at / XDIM(1, 3) * width + i % width));
}
#endif

#ifdef IS_moe_combine
kernel void moe_combine(OPERANDS) {
  long i = get_global_id(0), k = XDIM(1, 3), width = YDIM(0, 3);
  float sum = 0;
  if (i >= YN(0)) return;
  for (long at = i / width * k; at < (i / width + 1) * k; at++) {
    long row = nxk_moe_row(X1(at), XN(0) / width);
    if (row < 0) continue;
#if N_IN > 2
    sum += X2(at) * X0(row * width + i % width);
#else
    sum += X0(row * width + i % width);
#endif
  }
  SET_Y0(i, sum);
}
#endif

#ifdef IS_moe_combine_grad
kernel void moe_combine_grad(OPERANDS) {
  local float room[LOCAL];
  long at = get_group_id(0), width = XDIM(0, 3), row = nxk_moe_row(X2(at), XN(1) / width);
  float sum = 0;
  for (long h = get_local_id(0); row >= 0 && h < width; h += LOCAL) {
    float back = X0(at / XDIM(2, 3) * width + h);
    sum += back * X1(row * width + h);
    SET_Y0(row * width + h, X3(at) * back);
  }
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y1(at, sum);
}
#endif
