/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a vocabulary that may be divided over ranks: a group for each token. */

static float capped(float x, float cap, float *slope) {
  float t = cap > 0 ? tanh(x / cap) : 0;
  *slope = 1 - t * t;
  return cap > 0 ? cap * t : x;
}

#ifdef IS_ce_stats
kernel void ce_stats(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), width = XDIM(0, 3), label = X1(t) - A_row_start;
  float cap = (float)A_soft_cap, slope, largest = -INFINITY, sum = 0;
  for (long i = get_local_id(0); i < A_n_valid; i += LOCAL)
    largest = fmax(largest, capped(X0(t * width + i), cap, &slope));
  largest = group_max(largest, room);
  for (long i = get_local_id(0); i < A_n_valid; i += LOCAL)
    sum += exp(capped(X0(t * width + i), cap, &slope) - largest);
  sum = group_sum(sum, room);
  if (get_local_id(0) != 0) return;
  bool here = label >= 0 && label < A_n_valid;
  SET_Y0(3 * t, largest);
  SET_Y0(3 * t + 1, sum);
  SET_Y0(3 * t + 2, here ? capped(X0(t * width + label), cap, &slope) : 0);
}
#endif

#ifdef IS_ce_loss
/* scratch: the loss of each token */
kernel void ce_loss(OPERANDS) {
  long t = get_global_id(0), n_tokens = YN(0), n_shards = XN(0) / 3 / n_tokens;
  float largest = -INFINITY, sum = 0, label = 0;
  if (t >= n_tokens) return;
  for (long shard = 0; shard < n_shards; shard++) largest = fmax(largest, X0((shard * n_tokens + t) * 3));
  for (long shard = 0; shard < n_shards; shard++) {
    long at = (shard * n_tokens + t) * 3;
    sum += X0(at + 1) * exp(X0(at) - largest);
    label += X0(at + 2);
  }
  double logarithm = (double)largest + log((double)sum), loss = logarithm - (double)label;
  SET_Y0(t, logarithm);
#if N_IN > 1
  loss *= (double)X1(t);
#endif
  ((global double *)scratch)[t] = loss;
}

kernel void ce_loss_total(OPERANDS) {
  local double room[LOCAL];
  double sum = 0;
  for (long t = get_local_id(0); t < YN(0); t += LOCAL) sum += ((global const double *)scratch)[t];
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y1(0, A_accumulate ? Y1(0) + sum : sum);
}
#endif

#ifdef IS_ce_grad
kernel void ce_grad(OPERANDS) {
  long i = get_global_id(0), width = XDIM(0, 3), t = i / width, column = i % width;
  if (i >= YN(0)) return;
  float bend, weight = exp(capped(X0(i), (float)A_soft_cap, &bend) - X2(t)), slope = (float)A_scale;
#if N_IN > 3
  slope *= X3(t);
#endif
  bool label = X1(t) - A_row_start == column;
  SET_Y0(i, column < A_n_valid ? slope * bend * (label ? weight - 1 : weight) : 0);
}
#endif
