/* SPDX-License-Identifier: Apache-2.0 */
/* MXFP4 (OCP Microscaling Formats, 2023): elements of 4 bits (e2m1) in blocks of 32 that share a power of
 * two, which is stored as its exponent + 127 (e8m0; 255 is no number). Two elements make a byte, the first in
 * its low half. */
#ifndef NX_MXFP4_H
#define NX_MXFP4_H

#include "schema/nvfp4.h"

enum { NX_MXFP4_BLOCK = 32 };

static inline float nx_e8m0_decode(uint8_t code) {
  return code == 255 ? NAN : ldexpf(1, code - 127);
}

/* The scale of a block: the greatest power of two in it, over that of the greatest element, 4. */
static inline uint8_t nx_mxfp4_scale(const float *x) {
  float most = 0;
  int exponent;
  for (int i = 0; i < NX_MXFP4_BLOCK; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  if (!(most > 0)) return 0;
  (void)frexpf(most, &exponent); /* most is in [2^(exponent - 1), 2^exponent) */
  exponent += 127 - 3;
  return (uint8_t)(exponent < 0 ? 0 : exponent > 254 ? 254 : exponent);
}

/* The nearest value, of two the one whose code is even. */
static inline uint8_t nx_mxfp4_code(float x) {
  static const float borders[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  float size = fabsf(x);
  uint8_t code = 0;
  while (code < 7 && (size > borders[code] || (size == borders[code] && code % 2 == 1))) code++;
  return signbit(x) ? code | 8 : code;
}

/* n elements, whole blocks, to n / 2 bytes. */
static inline void nx_mxfp4_encode(const float *x, int64_t n, uint8_t *codes) {
  for (int64_t block = 0; block < n; block += NX_MXFP4_BLOCK) {
    float scale = nx_e8m0_decode(nx_mxfp4_scale(x + block));
    for (int64_t i = block; i < block + NX_MXFP4_BLOCK; i += 2)
      codes[i / 2] = (uint8_t)(nx_mxfp4_code(x[i + 1] / scale) << 4 | nx_mxfp4_code(x[i] / scale));
  }
}

#endif
