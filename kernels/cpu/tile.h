/* SPDX-License-Identifier: Apache-2.0 */
/* fp32 products of small tiles that lie in the caches: c[m,n] (+)= a[m,k] b[k,n], for one thread.
 *
 * `a` has any strides (so it may be read transposed), rows of b and c are contiguous, and n is a multiple of
 * TILE_LANES. Accumulators stay in registers over the whole of k. */
#ifndef CPU_TILE_H
#define CPU_TILE_H

#include "schema/inlined.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __AVX512F__
enum { TILE_LANES = 16, TILE_ROWS = 8, TILE_VECTORS = 2 };
#else
enum { TILE_LANES = 8, TILE_ROWS = 4, TILE_VECTORS = 2 };
#endif

typedef float tile_vector __attribute__((vector_size(TILE_LANES * 4)));
typedef float tile_loose __attribute__((vector_size(TILE_LANES * 4), aligned(4), may_alias));

typedef struct tile_product {
  int64_t m, n, k;
  const float *a;
  int64_t a_row, a_k; /* strides of a along m and k */
  const float *b;
  int64_t b_row;
  float *c;
  int64_t c_row;
  bool accumulate;
} tile_product;

INLINED void tile_block(const tile_product *p, int64_t i, int64_t j, const int n_rows, const int n_vectors) {
  tile_vector sum[TILE_ROWS][TILE_VECTORS];
  const float *a = p->a + i * p->a_row, *b = p->b + j;
  float *c = p->c + i * p->c_row + j;
#pragma GCC unroll 8
  for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++)
      sum[row][v] = p->accumulate ? *(const tile_loose *)(c + row * p->c_row + v * TILE_LANES)
                                  : (tile_loose){0};
  for (int64_t k = 0; k < p->k; k++) {
    tile_vector right[TILE_VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) right[v] = *(const tile_loose *)(b + k * p->b_row + v * TILE_LANES);
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
      float left = a[row * p->a_row + k * p->a_k];
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++) sum[row][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) *(tile_loose *)(c + row * p->c_row + v * TILE_LANES) = sum[row][v];
}

INLINED void tile_columns(const tile_product *p, int64_t j, const int n_vectors) {
  int64_t i = 0;
  for (; i + TILE_ROWS <= p->m; i += TILE_ROWS) tile_block(p, i, j, TILE_ROWS, n_vectors);
  for (; i < p->m; i++) tile_block(p, i, j, 1, n_vectors);
}

/* A function of its own: among the registers of a caller its loop would keep strides in memory. */
static __attribute__((noinline)) void tile_multiply(tile_product p) {
  int64_t j = 0;
  for (; j + TILE_VECTORS * TILE_LANES <= p.n; j += TILE_VECTORS * TILE_LANES)
    tile_columns(&p, j, TILE_VECTORS);
  for (; j < p.n; j += TILE_LANES) tile_columns(&p, j, 1);
}

#endif
