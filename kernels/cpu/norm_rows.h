/* SPDX-License-Identifier: Apache-2.0 */
/* What norms and their gradients share: gains widened for all rows, and memory that is asked for ahead. */
#ifndef CPU_NORM_ROWS_H
#define CPU_NORM_ROWS_H

#include "kernels/cpu/lanes.h"

enum { ROW_ROOM = 8192 /* elements of a row that is widened once for all its passes */ };

typedef float row_room[ROW_ROOM] __attribute__((aligned(64)));

typedef struct norm_sums {
  double plain, square;
} norm_sums;

/* Memory is asked for ahead of what is read, and for what will be written while its row is read: a core that
 * waits for a row's sums does not look that far by itself. Asked for at once, it comes later. */
enum { READ_AHEAD = 2048 /* bytes */ };

INLINED void ask_ahead(const void *x, const nx_dtype type, int64_t i) {
  ask_at(x, type, i + READ_AHEAD / (type == NX_f32 ? 4 : 2));
}

/* Gains or biases: stored, or widened for all rows, with what is added to each. */
typedef struct norm_vector {
  const void *x;
  nx_dtype type;
  float plus;
} norm_vector;

static const float *vector_widen(const norm_vector *v, int64_t j, int64_t n, float *y) {
  vec_copy(y, NX_f32, 0, v->x, v->type, j, n);
  if (v->plus != 0) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += v->plus;
  }
  return y;
}

static norm_vector vector_open(const void *x, nx_dtype type, float plus, int64_t n, float *room) {
  norm_vector stored = {x, type, plus};
  return x && n <= ROW_ROOM ? (norm_vector){vector_widen(&stored, 0, n, room), NX_f32, 0} : stored;
}

static inline const float *vector_read(const norm_vector *v, int64_t j, int64_t n, float *buffer) {
  return v->type == NX_f32 && v->plus == 0 ? (const float *)v->x + j : vector_widen(v, j, n, buffer);
}

#endif
