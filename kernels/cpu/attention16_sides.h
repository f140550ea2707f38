/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of attention16.c and attention16_grad.c: tiles of SIDE rows of bf16 made into the left and right
 * sides that tile16.h reads.
 *
 * With w = d / 2 words in a row of d (of values d is e): *across* is the transpose as a right side [w, SIDE],
 * *paired* the rows as a right side [PAIRS, d], in whose words rows 16 apart stand, *transposed* the
 * transpose as a left side [d, PAIRS]. Rows lie where they are, or in a padded copy at the end of the
 * sequence. */
#ifndef CPU_ATTENTION16_SIDES_H
#define CPU_ATTENTION16_SIDES_H

#include "kernels/cpu/attention_square.h"
#include "kernels/cpu/tile16.h"

enum { PAIRS = SIDE / 2 };

/* A tile of bf16 rows as words. */
typedef struct word_rows {
  const uint32_t *words;
  int64_t row;
} word_rows;

/* SIDE rows of d, `stride` elements apart: in place, or padded where fewer than SIDE are left. */
static inline word_rows rows_of(const void *x, int64_t d, int64_t start, int64_t stride, int64_t n_rows,
                                uint32_t *room) {
  const uint16_t *from = (const uint16_t *)x + start;
  if (n_rows == SIDE) return (word_rows){(const uint32_t *)(const void *)from, stride / 2};
  for (int64_t i = 0; i < n_rows; i++)
    memcpy(room + i * (d / 2), from + i * stride, (size_t)d * sizeof *from);
  memset(room + n_rows * (d / 2), 0, (size_t)((SIDE - n_rows) * d) * sizeof *from);
  return (word_rows){room, d / 2};
}

/* [SIDE, w] to [w, SIDE]: the transposed rows as a right side. */
static inline void rows_across(int64_t d, word_rows x, uint32_t *y) {
  for (int64_t i = 0; i < SIDE; i += 16)
    for (int64_t j = 0; j < d / 2; j += 16)
      tile16_transpose(x.words + i * x.row + j, x.row, y + j * SIDE + i, SIDE);
}

/* The rows in pairs, [PAIRS, d], as a right side: a row and the sixteenth behind it. */
static inline void rows_paired(int64_t d, word_rows x, uint32_t *y) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t pair = 0; pair < PAIRS; pair++) {
    const uint32_t *low = x.words + (pair + pair / 16 * 16) * x.row, *high = low + 16 * x.row;
    for (int64_t j = 0; j < d; j += 32) {
      __m512i one = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(low + j / 2));
      __m512i other = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(high + j / 2));
      _mm512_storeu_si512(y + pair * d + j, _mm512_unpacklo_epi16(one, other));
      _mm512_storeu_si512(y + pair * d + j + 16, _mm512_unpackhi_epi16(one, other));
    }
  }
}

/* The transposed rows, [d, SIDE] of bf16: as a left side. `room` is [w, SIDE]. */
static inline void rows_transposed(int64_t d, word_rows x, uint32_t *room, uint32_t *y) {
  rows_across(d, x, room);
  for (int64_t j = 0; j < d / 2; j++)
    for (int64_t i = 0; i < SIDE; i += 16) {
      __m512i words = _mm512_loadu_si512(room + j * SIDE + i);
      _mm256_storeu_si256((void *)(y + 2 * j * PAIRS + i / 2), _mm512_cvtepi32_epi16(words));
      _mm256_storeu_si256((void *)(y + (2 * j + 1) * PAIRS + i / 2),
                          _mm512_cvtepi32_epi16(_mm512_srli_epi32(words, 16)));
    }
}

/* [n_rows, n_columns] to [n_columns, n_rows]. */
static inline void square_turn(const float *x, int64_t n_rows, int64_t n_columns, float *y) {
  for (int64_t i = 0; i < n_rows; i += 16)
    for (int64_t j = 0; j < n_columns; j += 16)
      tile16_transpose((const uint32_t *)(const void *)(x + i * n_columns + j), n_columns,
                       (uint32_t *)(void *)(y + j * n_rows + i), n_rows);
}

/* 16 elements as a type. */
static inline void store16(void *y, nx_dtype type, int64_t at, __m512 x) {
  if (type == NX_f32) _mm512_storeu_ps((float *)y + at, x);
  else _mm256_storeu_si256((void *)((uint16_t *)y + at), (__m256i)_mm512_cvtneps_pbh(x));
}

/* Row `query` of [d, SIDE] times its factor becomes row `query` of y; n queries, y_row elements apart. */
static inline void across_store(int64_t d, const float *across, const float *factors, int64_t n, void *y,
                                nx_dtype type, int64_t start, int64_t y_row) {
  float block[16 * 16] __attribute__((aligned(64)));
  for (int64_t i = 0; i < n; i += 16)
    for (int64_t j = 0; j < d; j += 16) {
      tile16_transpose((const uint32_t *)(const void *)(across + j * SIDE + i), SIDE,
                       (uint32_t *)(void *)block, 16);
      for (int64_t row = 0; row < 16 && i + row < n; row++) {
        __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(block + row * 16), _mm512_set1_ps(factors[i + row]));
        store16(y, type, start + (i + row) * y_row + j, scaled);
      }
    }
}

/* fp32 rows times a factor to either type, n elements, a multiple of 32. */
static inline void rows_store(const float *x, float factor, void *y, nx_dtype type, int64_t start,
                              int64_t n) {
  const __m512 by = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < n; i += 32) {
    __m512 low = _mm512_mul_ps(_mm512_loadu_ps(x + i), by),
           high = _mm512_mul_ps(_mm512_loadu_ps(x + i + 16), by);
    if (type == NX_bf16) {
      _mm512_storeu_si512((uint16_t *)y + start + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    } else {
      _mm512_storeu_ps((float *)y + start + i, low);
      _mm512_storeu_ps((float *)y + start + i + 16, high);
    }
  }
}

/* The sums of 16 vectors, each of its elements. */
static inline __m512 vectors_sums(const __m512 *x) {
  float rows[16 * 16] __attribute__((aligned(64))), turned[16 * 16] __attribute__((aligned(64)));
  __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) _mm512_store_ps(rows + 16 * i, x[i]);
  tile16_transpose((const uint32_t *)(const void *)rows, 16, (uint32_t *)(void *)turned, 16);
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) sum[i % 2] = _mm512_add_ps(sum[i % 2], _mm512_load_ps(turned + 16 * i));
  return _mm512_add_ps(sum[0], sum[1]);
}

/* Whether this form computes it. */
static inline bool attention16_fits(const nxk_kernel *kernel, bool backward) {
  attention_shape s = attention_shape_of(kernel, backward);
  return attention_types(kernel, backward, true) && s.d % 32 == 0 && s.e % 32 == 0;
}

#endif
