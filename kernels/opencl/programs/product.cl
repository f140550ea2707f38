/* SPDX-License-Identifier: Apache-2.0 */
/* Around a product that a library makes in fp32. In scratch stand those of a, b and y that are not fp32 in
 * memory, one behind the other; y also where there is a bias. */
#define SCRATCH_A ((global float *)scratch)
#define SCRATCH_B (SCRATCH_A + (WIDE_A ? XN(0) : 0))
#define SCRATCH_Y (SCRATCH_B + (WIDE_B ? XN(1) : 0))

kernel void widen_a(OPERANDS) {
  long i = get_global_id(0);
  if (i < XN(0)) SCRATCH_A[i] = X0(i);
}

kernel void widen_b(OPERANDS) {
  long i = get_global_id(0);
  if (i < XN(1)) SCRATCH_B[i] = X1(i);
}

kernel void narrow(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  float sum = SCRATCH_Y[i];
#if N_IN > 2
  sum += X2(i % YDIM(0, 3));
#endif
  SET_Y0(i, A_accumulate ? Y0(i) + sum : sum);
}
