/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives sum: sources one after another, in fp32 (fp64 for f64), rounded once. X0 is a source, Y0
 * the sum; scratch has what is summed so far. No product may be joined with a sum here. */
#pragma OPENCL FP_CONTRACT OFF

#ifdef WIDE
typedef double partial;
#else
typedef float partial;
#endif

kernel void sum_first(OPERANDS) {
  long i = get_global_id(0);
  if (i < XN(0)) ((global partial *)scratch)[i] = X0(i);
}

kernel void sum_next(OPERANDS) {
  long i = get_global_id(0);
  if (i < XN(0)) ((global partial *)scratch)[i] += X0(i);
}

kernel void sum_last(OPERANDS) {
  long i = get_global_id(0);
  if (i < YN(0)) SET_Y0(i, ((global const partial *)scratch)[i]);
}
