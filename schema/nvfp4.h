/* SPDX-License-Identifier: Apache-2.0 */
/* NVFP4: elements of 4 bits (e2m1) in blocks of 16 that share a scale, which is a float of 8 bits (e4m3)
 * times one number of the whole tensor. Two elements make a byte, the first in its low half. Scales are kept
 * as the product. */
#ifndef NX_NVFP4_H
#define NX_NVFP4_H

#include "schema/fp8.h"

#include <math.h>
#include <stdint.h>

enum { NX_NVFP4_BLOCK = 16 };

static const float nx_e2m1_values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/* The nearest value; of two that are equally near the larger, as the quantizers of checkpoints have it. */
static inline uint8_t nx_e2m1_encode(float x) {
  static const float borders[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  float size = fabsf(x);
  uint8_t code = 0;
  while (code < 7 && size >= borders[code]) code++;
  return x < 0 ? code | 8 : code;
}

static inline float nx_nvfp4_absmax(const float *x) {
  float most = 1e-12f;
  for (int i = 0; i < NX_NVFP4_BLOCK; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  return most;
}

/* The scale of a block whose tensor has elements up to `most`. */
static inline float nx_nvfp4_scale(const float *x, float most) {
  most = most > 1e-12f ? most : 1e-12f;
  float relative = nx_fp8_round(&nx_fp8_rows[NX_FP8_E4M3], nx_nvfp4_absmax(x) / most * 448.0f);
  return relative * (most * (1.0f / 6.0f) / 448.0f);
}

/* n elements, whole blocks, to n / 2 bytes. */
static inline void nx_nvfp4_encode(const float *x, int64_t n, uint8_t *codes) {
  for (int64_t block = 0; block < n; block += NX_NVFP4_BLOCK) {
    float factor = 6.0f / nx_nvfp4_absmax(x + block);
    for (int64_t i = block; i < block + NX_NVFP4_BLOCK; i += 2)
      codes[i / 2] = (uint8_t)(nx_e2m1_encode(x[i + 1] * factor) << 4 | nx_e2m1_encode(x[i] * factor));
  }
}

#endif
