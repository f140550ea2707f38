/* SPDX-License-Identifier: Apache-2.0 */
/* Squares of words transposed in registers, for whatever has AVX-512. */
#ifndef CPU_TRANSPOSE16_H
#define CPU_TRANSPOSE16_H

#include <immintrin.h>
#include <stdint.h>

/* 16 x 16 words; rows of x are x_row words apart, those of y y_row. */
static inline void tile16_transpose(const uint32_t *x, int64_t x_row, uint32_t *y, int64_t y_row) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(x + i * x_row);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  /* r[4 i + j] holds, in each 128-bit lane l, column 4 l + j of rows 4 i to 4 i + 3. */
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    __m512i even01 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
            odd01 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xDD);
    __m512i even23 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    __m512i odd23 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xDD);
    _mm512_storeu_si512(y + j * y_row, _mm512_shuffle_i32x4(even01, even23, 0x88));
    _mm512_storeu_si512(y + (8 + j) * y_row, _mm512_shuffle_i32x4(even01, even23, 0xDD));
    _mm512_storeu_si512(y + (4 + j) * y_row, _mm512_shuffle_i32x4(odd01, odd23, 0x88));
    _mm512_storeu_si512(y + (12 + j) * y_row, _mm512_shuffle_i32x4(odd01, odd23, 0xDD));
  }
}

#endif
