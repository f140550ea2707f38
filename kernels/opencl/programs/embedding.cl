/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by token or by position. In a gradient a group takes the row of a token that no token
 * before it has, and adds all of its tokens in ascending order: a row is rounded once, and no two groups
 * write the same one. */

#ifdef IS_embedding
kernel void embedding(OPERANDS) {
  long i = get_global_id(0), h = XDIM(1, 3);
  if (i >= YN(0)) return;
  long row = X0(i / h) - A_row_start;
  SET_Y0(i, row >= 0 && row < XDIM(1, 2) ? (float)A_scale * X1(row * h + i % h) : 0);
}
#endif

/* Where the positions of a window of S tokens stand in sequences of S_all. */
#define PLACE(t, n_tokens, n_all) ((t) / (n_tokens) * (n_all) + A_seq_start + (t) % (n_tokens))

#ifdef IS_position_add
kernel void position_add(OPERANDS) {
  long i = get_global_id(0), h = XDIM(1, 3);
  if (i >= YN(0)) return;
  long row = X2(PLACE(i / h, XDIM(0, 2), XDIM(2, 3)));
  SET_Y0(i, X0(i) + (row >= 0 && row < XDIM(1, 2) ? X1(row * h + i % h) : 0));
}
#endif

#ifdef IS_sinusoid_add
#include "kernels/opencl/programs/turns.cl"

kernel void sinusoid_add(OPERANDS) {
  long i = get_global_id(0), h = XDIM(0, 3), at = i % h;
  if (i >= YN(0)) return;
  float2 turned = cosine_sine((ulong)(long)X1(PLACE(i / h, XDIM(0, 2), XDIM(1, 3))) * TURN(at % (h / 2)));
  SET_Y0(i, X0(i) + (at < h / 2 ? turned.y : turned.x));
}
#endif

#if defined IS_embedding_grad || defined IS_position_grad
#ifdef IS_embedding_grad
#define ROW(t) (X0(t) - A_row_start)
#define GRADIENT(i) X1(i)
#define N_TOKENS XN(0)
#define SCALE ((float)A_scale)
#else
#define ROW(t) X1(PLACE(t, XDIM(0, 2), XDIM(1, 3)))
#define GRADIENT(i) X0(i)
#define N_TOKENS (XN(0) / XDIM(0, 3))
#define SCALE 1
#endif

/* LOCAL tokens at a time are asked whether they have the row; an item adds up PASS columns. */
#define PASS 8
kernel void table_grad(OPERANDS) {
  local float room[LOCAL];
  local uchar has_row[LOCAL];
  long first = get_group_id(0), h = YDIM(0, 3), row = ROW(first), n_tokens = N_TOKENS, item = get_local_id(0);
  float before = row < 0 || row >= YDIM(0, 2);
  for (long t = item; t < first; t += LOCAL)
    if (ROW(t) == row) before = 1;
  if (group_max(before, room) > 0) return;
  for (long column = item; column < item + h; column += PASS * LOCAL) {
    float sums[PASS] = {0};
    for (long from = first; from < n_tokens; from += LOCAL) {
      barrier(CLK_LOCAL_MEM_FENCE);
      has_row[item] = from + item < n_tokens && ROW(from + item) == row;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (long t = 0; t < LOCAL; t++)
        for (int i = 0; has_row[t] && i < PASS; i++)
          if (column + i * LOCAL < h) sums[i] += SCALE * GRADIENT((from + t) * h + column + i * LOCAL);
    }
    for (int i = 0; i < PASS; i++) {
      long at = row * h + column + i * LOCAL;
      if (column + i * LOCAL < h) SET_Y0(at, Y0(at) + sums[i]);
    }
  }
}
#endif
