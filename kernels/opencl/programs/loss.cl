/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a vocabulary that may be divided over ranks: a group for each token. */

static float4 capped(float4 x, float cap, float4 *slope) {
  *slope = 1;
  if (!(cap > 0)) return x;
  float4 t = tanh(x / cap);
  *slope = 1 - t * t;
  return cap * t;
}

#ifdef IS_ce_stats
/* The logits are read once: each lane of each item keeps the largest of its own, and the sum beside that. */
kernel void ce_stats(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), first = t * XDIM(0, 3), end = first + A_n_valid, label = X1(t) - A_row_start;
  float cap = (float)A_soft_cap;
  float4 slope, largest = -INFINITY, sum = 0, none = 0, one = 1;
  for (long i = first + RUN * (long)get_local_id(0); i < end; i += RUN * LOCAL) {
    int4 there = (int4)(0, 1, 2, 3) < (int)min(end - i, (long)RUN);
    float4 x = capped(X0_RUN(i, end), cap, &slope), top = (there && x > largest) ? x : largest;
    if (any(top > largest)) sum = (top > largest) ? sum * exp(largest - top) : sum;
    sum += there ? (x == top ? one : exp(x - top)) : none;
    largest = top;
  }
  float most = group_max(fmax(fmax(largest.x, largest.y), fmax(largest.z, largest.w)), room);
  sum = (sum == none) ? none : sum * exp(largest - most);
  float total = group_sum(sum.x + sum.y + sum.z + sum.w, room);
  if (get_local_id(0) != 0) return;
  bool here = label >= 0 && label < A_n_valid;
  SET_Y0(3 * t, most);
  SET_Y0(3 * t + 1, total);
  SET_Y0(3 * t + 2, here ? capped((float4)X0(first + label), cap, &slope).x : 0);
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
  double logarithm = (double)largest + log((double)sum);
  double loss = logarithm - (double)label + A_z * logarithm * logarithm;
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
  long t = get_group_id(0), width = XDIM(0, 3), first = t * width, end = first + width;
  long label = X1(t) - A_row_start;
  float cap = (float)A_soft_cap, slope = (float)A_scale, lse = X2(t);
#if N_IN > 3
  slope *= X3(t);
#endif
  for (long i = RUN * (long)get_local_id(0); i < width; i += RUN * LOCAL) {
    float4 bend, weight = exp(capped(X0_RUN(first + i, end), cap, &bend) - lse), none = 0;
    weight *= 1 + 2 * (float)A_z * lse;
    int4 column = (int4)(0, 1, 2, 3);
    weight = (column == (int)clamp(label - i, -1L, (long)RUN)) ? weight - 1 : weight;
    weight = (column < (int)clamp(A_n_valid - i, 0L, (long)RUN)) ? slope * bend * weight : none;
    SET_Y0_RUN(first + i, end, weight);
  }
}
#endif
