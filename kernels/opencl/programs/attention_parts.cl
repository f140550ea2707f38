/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over some keys joined with that over others, and sinks: an item for each element of o. */

/* Of element i of o[B,S,n d]: where its row of lse[B,n,S] is. */
#define ROW_OF(i, lse_dims_1, lse_dims_2, width) \
  long n_heads = lse_dims_1, n_tokens = lse_dims_2, d = (width) / n_heads, token = (i) / (width); \
  long head = (i) % (width) / d; \
  long row = (token / n_tokens * n_heads + head) * n_tokens + token % n_tokens

#ifdef IS_attention_merge
kernel void attention_merge(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  ROW_OF(i, YDIM(1, 2), YDIM(1, 3), YDIM(0, 3));
  float left = X1(row), right = X3(row), largest = fmax(left, right);
  bool empty = isinf(largest);
  float x = empty ? 0 : exp(left - largest), y = empty ? 0 : exp(right - largest), sum = x + y;
  SET_Y0(i, empty ? 0 : (x * X0(i) + y * X2(i)) / sum);
  if (i % d == 0) SET_Y1(row, largest + log(sum));
}
#endif

#ifdef IS_attention_sink
/* Outputs may lie where inputs do: lse changes when all of its row has been read. */
kernel void attention_sink(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  ROW_OF(i, XDIM(1, 2), XDIM(1, 3), YDIM(0, 3));
  float read = X1(row), sink = X2(A_first + head), largest = fmax(read, sink);
  float all = largest + log(exp(read - largest) + exp(sink - largest));
  SET_Y0(i, X0(i) * exp(read - all));
}

kernel void attention_sink_lse(OPERANDS) {
  long row = get_global_id(0);
  if (row >= YN(1)) return;
  long head = row / XDIM(1, 3) % XDIM(1, 2);
  float read = X1(row), sink = X2(A_first + head), largest = fmax(read, sink);
  SET_Y1(row, largest + log(exp(read - largest) + exp(sink - largest)));
}
#endif

#ifdef IS_attention_sink_grad
kernel void attention_sink_grad(OPERANDS) {
  local float room[LOCAL];
  long at = get_group_id(0), n_heads = XDIM(2, 2), n_tokens = XDIM(2, 3), d = XDIM(1, 3) / n_heads;
  long head = at - A_first, n_rows = XDIM(2, 1) * n_tokens;
  float sum = 0, sink = X3(at);
  for (long token = get_local_id(0); head >= 0 && head < n_heads && token < n_rows; token += LOCAL) {
    long first = (token * n_heads + head) * d;
    long row = (token / n_tokens * n_heads + head) * n_tokens + token % n_tokens;
    float inner = 0;
    for (long f = first; f < first + d; f++) inner += X0(f) * X1(f);
    sum -= exp(sink - X2(row)) * inner;
  }
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y0(at, A_accumulate ? Y0(at) + sum : sum);
}
#endif
