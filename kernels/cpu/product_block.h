/* SPDX-License-Identifier: Apache-2.0 */
/* What product.c hands to the loop of a target (product_vectors.h, product_tiles.h): a block of rows by one
 * of columns, over one of k. The loop has said its WIDTH. */
#ifndef CPU_PRODUCT_BLOCK_H
#define CPU_PRODUCT_BLOCK_H

#include "kernels/cpu/product.h"
#include "kernels/cpu/product_pack.h"

/* Numbers in rows of the loop's WIDTH columns, the next WIDTH of them `panel` elements apart. */
typedef struct place {
  char *data; /* NULL: none */
  int64_t stride, panel;
  bool narrow; /* bf16 */
} place;

typedef struct product_thread {
  const cpu_gemm_form *form;
  product_side a, b;
  place c, bias;
  uint32_t *a_panels, *b_panels;
  float *tiles; /* sums of a panel of columns */
  bool streams; /* c is more than caches keep, and its lines are whole */
  int64_t end;  /* of its columns */
} product_thread;

typedef struct block {
  const product_thread *thread;
  int64_t i, j, k, n_k; /* where it begins in c and along k */
  int64_t n_words, n_rows, n_columns;
  bool first, last; /* of those along k */
  place c, bias;
  place kept; /* sums until the last, if c does not hold them */
} block;

/* `column` is a multiple of WIDTH. */
static inline place place_at(place p, int64_t row, int64_t column) {
  if (p.data) p.data += (row * p.stride + column / WIDTH * p.panel) * (p.narrow ? 2 : 4);
  return p;
}

static inline __attribute__((always_inline)) __m512 read_lanes(const place *p, int64_t row, int v,
                                                               __mmask16 there) {
  const char *at = p->data + (row * p->stride + v * LANES) * (p->narrow ? 2 : 4);
  if (!p->narrow) return _mm512_maskz_loadu_ps(there, at);
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, at)), 16));
}

static inline __attribute__((always_inline)) void write_lanes(const place *p, int64_t row, int v,
                                                              __mmask16 there, __m512 x) {
  char *at = p->data + (row * p->stride + v * LANES) * (p->narrow ? 2 : 4);
  if (p->narrow) _mm256_mask_storeu_epi16(at, there, (__m256i)_mm512_cvtneps_pbh(x));
  else _mm512_mask_storeu_ps(at, there, x);
}

#endif
