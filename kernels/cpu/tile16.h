/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products of small tiles that lie in the caches, with fp32 sums: c[m,n] (+)= a[m,k] b[k,n], for one
 * thread.
 *
 * Both operands are pairs of neighbours along k in one 32-bit word: a[m, k/2] is a row-major bf16 matrix as
 * it lies in memory, b[k/2, n] holds b[2i, j] in the low and b[2i + 1, j] in the high half. m and n are
 * multiples of 32 and k too. AMX and AVX512_BF16 read the same layouts: CPU_AMX chooses. A thread that
 * multiplies with AMX does so between tile16_begin and tile16_end.
 *
 * k may run over pieces: the sum over pieces p of a_p b_p is added up without leaving the registers. */
#ifndef CPU_TILE16_H
#define CPU_TILE16_H

#include "kernels/cpu/transpose16.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct tile16_product {
  int64_t m, n, k2; /* k2 = k / 2 */
  const uint32_t *a;
  int64_t a_row; /* words */
  const uint32_t *b;
  int64_t b_row;
  float *c;
  int64_t c_row;
  bool accumulate;
  int64_t n_pieces, a_next, b_next; /* words from a piece to the next; k2 is of one; 0 pieces: 1 */
} tile16_product;

#ifdef CPU_AMX

/* Eight tiles of 16 rows of 64 bytes: 0-3 sums, 4-5 of a, 6-7 of b. */
typedef struct tile16_palette {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t n_rows[16];
} tile16_palette;

static inline void tile16_begin(void) {
  tile16_palette config = {.palette = 1};
  for (int tile = 0; tile < 8; tile++) {
    config.row_bytes[tile] = 64;
    config.n_rows[tile] = 16;
  }
  _tile_loadconfig(&config);
}

static inline void tile16_end(void) {
  _tile_release();
}

static inline void tile16_block(const tile16_product *p, int64_t i, int64_t j) {
  float *c = p->c + i * p->c_row + j;
  int c_bytes = (int)p->c_row * 4, a_bytes = (int)p->a_row * 4, b_bytes = (int)p->b_row * 4;
  __asm__ volatile("" ::: "memory"); /* gcc does not know what loads of tiles read */
  if (p->accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + 16, c_bytes);
    _tile_loadd(2, c + 16 * p->c_row, c_bytes);
    _tile_loadd(3, c + 16 * p->c_row + 16, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t piece = 0; piece < p->n_pieces; piece++)
    for (int64_t k = 0; k < p->k2; k += 16) {
      const uint32_t *a = p->a + piece * p->a_next + i * p->a_row + k;
      const uint32_t *b = p->b + piece * p->b_next + k * p->b_row + j;
      _tile_loadd(4, a, a_bytes);
      _tile_loadd(6, b, b_bytes);
      _tile_loadd(7, b + 16, b_bytes);
      _tile_loadd(5, a + 16 * p->a_row, a_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  _tile_stored(2, c + 16 * p->c_row, c_bytes);
  _tile_stored(3, c + 16 * p->c_row + 16, c_bytes);
}

enum { TILE16_TALL = 32 /* rows of a block */ };

#else

static inline void tile16_begin(void) {
}

static inline void tile16_end(void) {
}

enum { TILE16_ROWS = 8, TILE16_TALL = TILE16_ROWS };

static inline void tile16_block(const tile16_product *p, int64_t i, int64_t j) {
  __m512 sum[TILE16_ROWS][2];
  float *c = p->c + i * p->c_row + j;
#pragma GCC unroll 8
  for (int row = 0; row < TILE16_ROWS; row++) {
    sum[row][0] = p->accumulate ? _mm512_loadu_ps(c + row * p->c_row) : _mm512_setzero_ps();
    sum[row][1] = p->accumulate ? _mm512_loadu_ps(c + row * p->c_row + 16) : _mm512_setzero_ps();
  }
  for (int64_t piece = 0; piece < p->n_pieces; piece++) {
    const uint32_t *a = p->a + piece * p->a_next + i * p->a_row, *b = p->b + piece * p->b_next + j;
    for (int64_t k = 0; k < p->k2; k++) {
      __m512bh low = (__m512bh)_mm512_loadu_si512(b + k * p->b_row);
      __m512bh high = (__m512bh)_mm512_loadu_si512(b + k * p->b_row + 16);
#pragma GCC unroll 8
      for (int row = 0; row < TILE16_ROWS; row++) {
        __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[row * p->a_row + k]);
        sum[row][0] = _mm512_dpbf16_ps(sum[row][0], left, low);
        sum[row][1] = _mm512_dpbf16_ps(sum[row][1], left, high);
      }
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < TILE16_ROWS; row++) {
    _mm512_storeu_ps(c + row * p->c_row, sum[row][0]);
    _mm512_storeu_ps(c + row * p->c_row + 16, sum[row][1]);
  }
}

#endif

static inline void tile16_multiply(tile16_product p) {
  if (p.n_pieces == 0) p.n_pieces = 1;
  for (int64_t j = 0; j < p.n; j += 32)
    for (int64_t i = 0; i < p.m; i += TILE16_TALL) tile16_block(&p, i, j);
}

/* Low halves from one row, high halves from the other. */
static inline __m512i tile16_pair(__m256i low, __m256i high) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

#endif
