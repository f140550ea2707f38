/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of many, one after the other, in pairs: a binary counter of sums under way. */
#if TYPE_X0 == NX_f64
typedef double summed;
#else
typedef float summed;
#endif

#ifdef IS_pairs_begin
kernel void pairs_begin(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, i < XN(0) ? X0(i) : 0);
  if (i == 0) SET_Y1(0, 1);
}
#endif

#ifdef IS_pairs_add
kernel void pairs_add(OPERANDS) {
  long i = get_global_id(0), n = XN(2), n_levels = XN(0) / n, level = 0;
  if (i >= n) return;
  summed sum = X2(i);
  for (; level + 1 < n_levels && X1(0) >> level & 1; level++) sum = X0(level * n + i) + sum;
  SET_Y0(level * n + i, sum);
}

kernel void pairs_count(OPERANDS) {
  if (get_global_id(0) == 0 && X1(0) < INT_MAX) SET_Y1(0, X1(0) + 1);
}
#endif

#ifdef IS_pairs_sum
kernel void pairs_sum(OPERANDS) {
  long i = get_global_id(0), n = XN(0), n_levels = XN(1) / n;
  if (i >= n) return;
  summed sum = X0(i);
  for (long level = 0; level < n_levels && level < 32; level++)
    if (X2(0) >> level & 1) sum = X1(level * n + i) + sum;
  SET_Y0(i, sum);
}
#endif
