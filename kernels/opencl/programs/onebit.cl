/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed reductions of 1-bit Adam: signs in bits and their error. A vector with its error is kept in
 * the place of the error until its size is known. What is packed is computed in fp64: a sign is no number
 * with a tolerance. */
#define SIGN(bits, i) ((bits) >> ((i) % 8) & 1 ? 1 : -1)

#ifndef IS_onebit_apply
#define SKIPPED isnan(X3(0))

kernel void onebit_vector(OPERANDS) {
  long i = get_global_id(0), n = YN(0);
  if (i >= n || SKIPPED) return;
#ifdef IS_onebit_pack
  double factor = (1 - A_beta1) * (double)A_workers * X3(0);
  SET_Y0(i, A_beta1 * (double)X0(i) + factor * (double)X1(i) + (double)X2(i));
#else
  double sum = 0;
  for (long worker = 0; worker < XN(1); worker++)
    sum += (double)X1(worker) * SIGN(X0((worker * n + i) / 8), worker * n + i);
  SET_Y0(i, sum / (double)XN(1) + (double)X2(i));
#endif
}

#define BLOCKED YN(0)
#define TERM(i) ((double)Y0(i) * (double)Y0(i))
#include "kernels/opencl/programs/blocks.cl"

kernel void onebit_size(OPERANDS) {
  local double room[LOCAL];
  double sum = blocks_total((global const double *)scratch, BLOCKED, room);
  if (get_local_id(0) == 0) SET_Y2(0, SKIPPED ? 0 : sqrt(sum / (double)YN(0)));
}

/* An item for each byte. */
kernel void onebit_bits(OPERANDS) {
  long at = get_global_id(0);
  uint byte = 0;
  float size = Y2(0);
  if (at >= YN(1)) return;
  for (int bit = 0; bit < 8 && !SKIPPED; bit++) {
    float x = Y0(8 * at + bit);
    byte |= (uint)(x >= 0) << bit;
    SET_Y0(8 * at + bit, x - (x >= 0 ? size : -size));
  }
  SET_Y1(at, byte);
}
#else

kernel void onebit_apply(OPERANDS) {
  long i = get_global_id(0), n = YN(0), part = n / XN(4);
  if (i >= n || isnan(X7(0))) return;
  float second = X2(i), first = second == 0 ? 0 : SIGN(X3(i / 8), i) * X4(i / part);
  float rate = (float)X5(0), kept = (float)(1 - X5(0) * X6(0));
  SET_Y1(i, first);
  SET_Y0(i, X0(i) * kept - rate * (first / (sqrt(second) + (float)A_epsilon)));
#if N_OUT > 2
  SET_Y2(i, Y0(i));
#endif
}
#endif
