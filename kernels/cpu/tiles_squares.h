/* SPDX-License-Identifier: Apache-2.0 */
/* Squares of 32 rows or columns by 32 elements of k as AMX's tiles read them (tiles_pack.h), of bf16. */
#ifndef CPU_TILES_SQUARES_H
#define CPU_TILES_SQUARES_H

#include "kernels/cpu/product_pack.h"

enum { SQUARE = 32 /* rows or columns, and elements of k, of a step */, SQUARE_WORDS = SQUARE * SQUARE / 2 };

/* 32 stored rows of 64 bytes, or in fp32 of 128, to a step. */
typedef void (*step_pack)(const char *from, int64_t row_bytes, uint32_t *y);

/* 16 rows of 16 words, y_row words apart behind each other turned. Lanes are put together as they are loaded.
 */
static inline void turn(const char *x, int64_t x_bytes, uint32_t *y, int64_t y_row) {
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    __m512i r[4], t[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      const char *at = x + i * x_bytes + 16 * c;
      __m512i low = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at));
      low = _mm512_mask_broadcast_i32x4(low, 0x00F0,
                                        _mm_loadu_si128((const __m128i *)(const void *)(at + 4 * x_bytes)));
      low = _mm512_mask_broadcast_i32x4(low, 0x0F00,
                                        _mm_loadu_si128((const __m128i *)(const void *)(at + 8 * x_bytes)));
      r[i] = _mm512_mask_broadcast_i32x4(low, 0xF000,
                                         _mm_loadu_si128((const __m128i *)(const void *)(at + 12 * x_bytes)));
    }
    t[0] = _mm512_unpacklo_epi32(r[0], r[1]);
    t[1] = _mm512_unpackhi_epi32(r[0], r[1]);
    t[2] = _mm512_unpacklo_epi32(r[2], r[3]);
    t[3] = _mm512_unpackhi_epi32(r[2], r[3]);
    _mm512_storeu_si512(y + (4 * c + 0) * y_row, _mm512_unpacklo_epi64(t[0], t[2]));
    _mm512_storeu_si512(y + (4 * c + 1) * y_row, _mm512_unpackhi_epi64(t[0], t[2]));
    _mm512_storeu_si512(y + (4 * c + 2) * y_row, _mm512_unpacklo_epi64(t[1], t[3]));
    _mm512_storeu_si512(y + (4 * c + 3) * y_row, _mm512_unpackhi_epi64(t[1], t[3]));
  }
}

/* k lies along stored rows. */
static void rows_along(const char *from, int64_t row_bytes, uint32_t *y) {
  for (int row = 0; row < SQUARE; row++)
    _mm512_store_si512(y + row * LANES, _mm512_loadu_si512(from + row * row_bytes));
}

static void columns_along(const char *from, int64_t row_bytes, uint32_t *y) {
  turn(from, 2 * row_bytes, y, SQUARE);
  turn(from + row_bytes, 2 * row_bytes, y + LANES, SQUARE);
}

/* Stored rows are elements of k: a word of even columns and one of odd ones from two rows. */
static void columns_across(const char *from, int64_t row_bytes, uint32_t *y) {
  for (int row = 0; row < SQUARE; row += 2, y += SQUARE) {
    __m512i low = _mm512_loadu_si512(from + row * row_bytes),
            high = _mm512_loadu_si512(from + (row + 1) * row_bytes);
    _mm512_store_si512(y, _mm512_mask_blend_epi16(0xAAAAAAAA, low, _mm512_slli_epi32(high, 16)));
    _mm512_store_si512(y + LANES, _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(low, 16), high));
  }
}

static void rows_across(const char *from, int64_t row_bytes, uint32_t *y) {
  uint32_t words[SQUARE_WORDS] __attribute__((aligned(64)));
  columns_across(from, row_bytes, words);
  turn((const char *)words, 4 * SQUARE, y, 2 * LANES);
  turn((const char *)(words + LANES), 4 * SQUARE, y + LANES, 2 * LANES);
}

#endif
