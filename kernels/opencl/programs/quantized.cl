/* SPDX-License-Identifier: Apache-2.0 */
/* What quantized weights stand for, with noise where it is asked for; and numbers rounded to fp8. */
#pragma OPENCL FP_CONTRACT OFF /* noise has the bits of every other backend */
#define fabsf(x) fabs((float)(x))
#define copysignf(x, y) copysign((float)(x), (float)(y))
#define ldexpf(x, n) ldexp((float)(x), (int)(n))
#define frexpf(x, n) frexp((float)(x), n)
#define nearbyintf(x) rint((float)(x))
#include "schema/philox.h"
#ifdef NO_FP64
#define nx_normal(word) NAN /* noise is refused there */
#else
#include "schema/normal.h"
#endif
#include "schema/fp8.h"

/* Of a row of the table, which the headers below name: it is not in memory of the item's own. */
static float round_by_row(nx_fp8_row format, float x) {
  return nx_fp8_round(&format, x);
}
#define nx_fp8_round(format, x) round_by_row(*(format), x)
#include "schema/nvfp4.h"
#include "schema/mxfp4.h"
#include "schema/nf4.h"
#include "schema/quantized.h"

#ifdef A_noise
#if N_IN > 2
#define NOISE(i, scale, half_step) \
  (A_noise > 0 ? (float)A_noise * (half_step) * (scale) * \
                     nx_quantization_noise(call.seed, (uint)A_tensor_id, (ulong)(A_first + (i)), X2(0)) \
               : 0)
#else
#define NOISE(i, scale, half_step) 0
#endif
#define SET_NUMBER(i, value, scale, half_step) SET_Y0(i, (value) * (scale) + NOISE(i, scale, half_step))
#endif

/* Two codes in a byte, and a scale for each block. */
#if defined IS_dequantize_nf4
#define CODE(byte, i) nx_nf4_values[(i) % 2 ? (byte) & 15 : (byte) >> 4]
#define SCALE(i) X1((i) / NX_NF4_BLOCK)
#define HALF_STEP nx_nf4_noise
#elif defined IS_dequantize_nvfp4 || defined IS_dequantize_mxfp4
#define CODE(byte, i) nx_e2m1_values[(i) % 2 ? (byte) >> 4 : (byte) & 15]
#define HALF_STEP nx_e2m1_noise
#ifdef IS_dequantize_nvfp4
#define SCALE(i) X1((i) / NX_NVFP4_BLOCK)
#else
#define SCALE(i) nx_e8m0_decode(X1((i) / NX_MXFP4_BLOCK))
#endif
#endif

#ifdef CODE
kernel void dequantize_codes(OPERANDS) {
  long i = get_global_id(0);
  if (i >= YN(0)) return;
  int byte = X0(i / 2);
  float scale = SCALE(i);
  SET_NUMBER(i, CODE(byte, i), scale, HALF_STEP);
}
#endif

#ifdef IS_dequantize_fp8
kernel void dequantize_fp8(OPERANDS) {
  long i = get_global_id(0), columns = YDIM(0, 3), rows = YDIM(0, 2);
  if (i >= YN(0)) return;
  long matrix = i / columns / rows, row = i / columns % rows, column = i % columns;
  float scale = X1((matrix * XDIM(1, 2) + row / NX_FP8_TILE) * XDIM(1, 3) + column / NX_FP8_TILE);
  SET_NUMBER(i, nx_e4m3_decode(X0(i)), scale, nx_e4m3_noise);
}
#endif

#ifdef IS_fp8_amax
/* scratch: the greatest of each block; a NaN is the greatest */
static float greatest(float own, local float *room) {
  float most = group_max(isnan(own) ? 0 : own, room);
  return group_max(isnan(own) ? 1 : 0, room) > 0 ? NAN : most;
}

static float greater(float a, float b) {
  return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

kernel void fp8_amax(OPERANDS) {
  local float room[LOCAL];
  long first = get_group_id(0) * (long)NORM_BLOCK, n = XN(0);
  float most = 0;
  for (long i = first + get_local_id(0); i < n && i < first + NORM_BLOCK; i += LOCAL)
    most = greater(most, fabs(X0(i)));
  most = greatest(most, room);
  if (get_local_id(0) == 0) ((global float *)scratch)[get_group_id(0)] = most;
}

kernel void fp8_amax_total(OPERANDS) {
  local float room[LOCAL];
  long n_blocks = (XN(0) + NORM_BLOCK - 1) / NORM_BLOCK;
  float most = 0;
  for (long i = get_local_id(0); i < n_blocks; i += LOCAL)
    most = greater(most, ((global const float *)scratch)[i]);
  most = greatest(most, room);
  if (get_local_id(0) == 0) SET_Y0(0, most);
}
#endif

#ifdef IS_fp8_round
#if N_IN > 1
kernel void fp8_round(OPERANDS) {
  const nx_fp8_row format = nx_fp8_rows[A_format];
  long i = get_global_id(0);
  float most = 0;
  if (i >= YN(0)) return;
  for (long at = 0; at < XN(1); at++) most = X1(at) > most ? X1(at) : most;
  nx_fp8_scale scale = nx_fp8_scale_of(A_scaling, &format, most, (int)A_margin);
  SET_Y0(i, nx_fp8_apply(&format, &scale, X0(i)));
}
#else
/* A group for each box that shares a scale. */
kernel void fp8_round(OPERANDS) {
  local float room[LOCAL];
  const nx_fp8_row format = nx_fp8_rows[A_format];
  long columns = XDIM(0, 3), rows = XN(0) / columns;
  long n_across = (columns + A_block_columns - 1) / A_block_columns;
  long row = get_group_id(0) / n_across * A_block_rows, column = get_group_id(0) % n_across * A_block_columns;
  long height = min(A_block_rows, rows - row), width = min(A_block_columns, columns - column);
  float most = 0;
  for (long at = get_local_id(0); at < height * width; at += LOCAL)
    most = fmax(most, fabs(X0((row + at / width) * columns + column + at % width)));
  most = group_max(most, room);
  nx_fp8_scale scale = nx_fp8_scale_of(A_scaling, &format, most, (int)A_margin);
  for (long at = get_local_id(0); at < height * width; at += LOCAL) {
    long i = (row + at / width) * columns + column + at % width;
    SET_Y0(i, nx_fp8_apply(&format, &scale, X0(i)));
  }
}
#endif
#endif

#ifdef IS_fp8_history
kernel void fp8_history(OPERANDS) {
  float most = 0;
  if (get_global_id(0) != 0) return;
  for (long i = A_entry; i < XN(1); i += XDIM(1, 3))
    if (!(X1(i) <= most)) most = isnan(most) ? most : X1(i);
  if (most == 0 || !isfinite(most)) return;
  for (long i = YN(0) - 1; i > 0; i--) SET_Y0(i, Y0(i - 1));
  SET_Y0(0, most);
}
#endif
