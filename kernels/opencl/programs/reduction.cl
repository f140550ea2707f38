/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of columns and of squares, and what a step is scaled and timed by. */
#include "schema/segment.h"

#ifdef IS_bias_grad
#include "kernels/opencl/programs/columns.cl"

kernel void bias_grad(OPERANDS) {
  long n = YN(0);
  COLUMN_PLACE(n, XN(0) / n)
  float sum = 0;
  if (i >= n) return;
  for (long row = begin; row < end; row++) sum += X0(row * n + i);
  ((global float *)scratch)[block * n + i] = sum;
}

kernel void bias_total(OPERANDS) {
  long i = get_global_id(0), n = YN(0);
  if (i >= n) return;
  float sum = column_total((global const float *)scratch, i, n, XN(0) / n);
  SET_Y0(i, A_accumulate ? Y0(i) + sum : sum);
}
#endif

#if defined IS_norm_sq || defined IS_count_zeros
#ifdef IS_norm_sq
#define TERM(i) ((double)X0(i) * (double)X0(i))
#else
#define TERM(i) (X0(i) == 0)
#endif
/* Weight 0 reads nothing: a NaN of a copy that another rank owns is counted there. */
#define BLOCKED (A_weight != 0 ? XN(0) : 0)
#include "kernels/opencl/programs/blocks.cl"

kernel void block_total(OPERANDS) {
  local double room[LOCAL];
  double sum = blocks_total((global const double *)scratch, BLOCKED, room) * (double)A_weight;
  if (get_local_id(0) == 0) SET_Y0(0, A_accumulate ? Y0(0) + sum : sum);
}
#endif

#ifdef IS_block_squares
kernel void block_squares(OPERANDS) {
  local double room[LOCAL];
  long block = XN(0) / YN(0), first = get_group_id(0) * block;
  double sum = 0;
  for (long i = get_local_id(0); i < block; i += LOCAL) sum += (double)X0(first + i) * (double)X0(first + i);
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y0(get_group_id(0), sum);
}
#endif

#ifdef IS_blocks_sum
kernel void blocks_sum(OPERANDS) {
  local double room[LOCAL];
  double sum = 0;
  for (long i = get_local_id(0); A_weight != 0 && i < XN(0); i += LOCAL) sum += X0(i);
  sum = group_sum(sum, room) * (double)A_weight;
  if (get_local_id(0) == 0) SET_Y0(0, A_accumulate ? Y0(0) + sum : sum);
}
#endif

#ifdef IS_clip_scale
kernel void clip_scale(OPERANDS) {
  double sum = 0, factor = 1;
  if (get_global_id(0) != 0) return;
  for (long i = 0; i < XN(0); i++) sum += X0(i);
#if N_IN > 1
  factor = X1(0);
#endif
  double root = sqrt(sum) / factor, ratio = A_clip < DBL_MAX ? A_clip / (root + 1e-6) : 1;
  if (A_maximize) factor = -factor;
  SET_Y0(0, root);
  SET_Y1(0, isfinite(root) || A_goes_on ? (ratio < 1 ? ratio : 1) / factor : (double)NAN);
}
#endif

#ifdef IS_segment
kernel void segment(OPERANDS) {
  const nx_segment of = {A_kind,   A_first,    A_every,   A_origin, A_span,
                         A_from,   A_to,       A_exponent, A_towards, A_least};
  double before = 0;
  if (get_global_id(0) != 0) return;
#if N_IN > 1
  before = X1(0);
#endif
  SET_Y0(0, X0(0) < of.first ? before : nx_segment_at(&of, X0(0)));
}
#endif
