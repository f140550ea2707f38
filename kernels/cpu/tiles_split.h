/* SPDX-License-Identifier: Apache-2.0 */
/* fp32 for tiles that multiply bf16: a number is the sum of three, each the nearest to what those before it
 * leave. They hold its 24 bits: the sum is exact but for parts that are smaller than a normal number. What is
 * infinite, or as near to it as half a bf16, becomes no number, and what is none stays so.
 *
 * A step (tiles_pack.h) has three squares, one for each of the three. */
#ifndef CPU_TILES_SPLIT_H
#define CPU_TILES_SPLIT_H

#include "kernels/cpu/tiles_squares.h"

enum { SPLIT = 3 };

/* The upper half is a bf16, the lower is zero; what is left of x. */
static inline __attribute__((always_inline)) __m512i upper_take(__m512 *x) {
  __m512i bits = _mm512_castps_si512(*x),
          near = _mm512_and_si512(_mm512_add_epi32(bits, _mm512_set1_epi32(0x8000)),
                                  _mm512_set1_epi32((int)0xFFFF0000));
  *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(near));
  return near;
}

/* Neighbours along k to a word each of three squares, y_next words apart. */
static inline __attribute__((always_inline)) void split_pair(__m512 low, __m512 high, uint32_t *y,
                                                             int64_t y_next) {
#pragma GCC unroll 3
  for (int part = 0; part < SPLIT; part++) {
    bool last = part == SPLIT - 1; /* has no more bits, but may be no number, which must stay one */
    __m512i l = last ? _mm512_castps_si512(low) : upper_take(&low),
            h = last ? _mm512_castps_si512(high) : upper_take(&high);
    _mm512_store_si512(y + part * y_next, _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(l, 16), h));
  }
}

static inline __m512i every_second(int first) {
  return _mm512_add_epi32(_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                          _mm512_set1_epi32(first));
}

/* k lies along stored rows. */
static inline void split_along(const char *from, uint32_t *y, int64_t y_next) {
  __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + 64);
  split_pair(_mm512_permutex2var_ps(low, every_second(0), high),
             _mm512_permutex2var_ps(low, every_second(1), high), y, y_next);
}

static void wide_rows_along(const char *from, int64_t row_bytes, uint32_t *y) {
  for (int row = 0; row < SQUARE; row++) split_along(from + row * row_bytes, y + row * LANES, SQUARE_WORDS);
}

static void wide_columns_along(const char *from, int64_t row_bytes, uint32_t *y) {
  uint32_t words[SPLIT * SQUARE_WORDS] __attribute__((aligned(64)));
  wide_rows_along(from, row_bytes, words);
  for (int part = 0; part < SPLIT; part++)
    columns_along((const char *)(words + part * SQUARE_WORDS), 64, y + part * SQUARE_WORDS);
}

/* Stored rows are elements of k. */
static void wide_columns_across(const char *from, int64_t row_bytes, uint32_t *y) {
  for (int row = 0; row < SQUARE; row += 2, y += SQUARE) {
    __m512 columns[2][2]; /* [row of the pair][odd] */
    for (int i = 0; i < 2; i++) {
      const char *at = from + (row + i) * row_bytes;
      __m512 low = _mm512_loadu_ps(at), high = _mm512_loadu_ps(at + 64);
      columns[i][0] = _mm512_permutex2var_ps(low, every_second(0), high);
      columns[i][1] = _mm512_permutex2var_ps(low, every_second(1), high);
    }
    split_pair(columns[0][0], columns[1][0], y, SQUARE_WORDS);
    split_pair(columns[0][1], columns[1][1], y + LANES, SQUARE_WORDS);
  }
}

static void wide_rows_across(const char *from, int64_t row_bytes, uint32_t *y) {
  uint32_t words[SPLIT * SQUARE_WORDS] __attribute__((aligned(64)));
  wide_columns_across(from, row_bytes, words);
  for (int part = 0; part < SPLIT; part++, y += SQUARE_WORDS) {
    const uint32_t *square = words + part * SQUARE_WORDS;
    turn((const char *)square, 4 * SQUARE, y, 2 * LANES);
    turn((const char *)(square + LANES), 4 * SQUARE, y + LANES, 2 * LANES);
  }
}

#endif
