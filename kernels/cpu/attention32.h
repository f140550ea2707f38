/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of attention.c: rows of any type as rows of fp32, and tiles of them transposed. */
#ifndef CPU_ATTENTION32_H
#define CPU_ATTENTION32_H

#include "kernels/cpu/attention_square.h"

/* Rows of an operand: d elements, kept as `width` with zeros behind d. */
typedef struct row_form {
  const void *data;
  nx_dtype type;
  int64_t d, width;
} row_form;

/* Rows `stride` apart as fp32, side by side: in place where they are stored so. */
static inline const float *rows_read(row_form x, int64_t start, int64_t stride, int64_t n_rows, float *room) {
  if (x.type == NX_f32 && x.width == x.d && stride == x.d) return (const float *)x.data + start;
  for (int64_t i = 0; i < n_rows; i++) {
    vec_copy(room, NX_f32, i * x.width, x.data, x.type, start + i * stride, x.d);
    for (int64_t j = x.d; j < x.width; j++) room[i * x.width + j] = 0;
  }
  return room;
}

/* At most SIDE rows transposed to [width, SIDE]; zeros stand behind the last. */
static inline void rows_across(const float *rows, int64_t n, int64_t width, float *across) {
  if (n < SIDE) memset(across, 0, (size_t)(width * SIDE) * sizeof *across);
  for (int64_t j = 0; j < width; j++) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) across[j * SIDE + i] = rows[i * width + j];
  }
}

static inline void rows_scale(float *o, const float *factors, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    if (factors[i] == 1) continue;
#pragma omp simd
    for (int64_t j = 0; j < width; j++) o[i * width + j] *= factors[i];
  }
}

#endif
