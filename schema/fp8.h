/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 8 bits (OCP 8-bit Floating Point, 2023): e4m3, whose largest number is 448 and which has no
 * infinity, and e5m2. Rounding is to the nearest, ties to even; what is too large becomes the largest number.
 * A NaN stays one. No function branches, so that loops over them become vector code.
 *
 * A product reads numbers that were scaled, rounded and scaled back. Scales follow the greatest magnitude
 * `most` of what shares them; zero, or what is no number, scales by 1. */
#ifndef NX_FP8_H
#define NX_FP8_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum nx_fp8_format { NX_FP8_E4M3, NX_FP8_E5M2, NX_N_FP8_FORMATS } nx_fp8_format;

typedef struct nx_fp8_row {
  float most;
  float least;   /* the least normal number */
  float magic;   /* adding it rounds what is smaller to a multiple of the least number */
  uint32_t bits; /* of a float's mantissa that the format has not */
} nx_fp8_row;

static const nx_fp8_row nx_fp8_rows[NX_N_FP8_FORMATS] = {
    [NX_FP8_E4M3] = {448, 0x1p-6f, 1.5f * 0x1p14f, 20}, [NX_FP8_E5M2] = {57344, 0x1p-14f, 1.5f * 0x1p7f, 21}};

/* The number of the format that stands for x. */
static inline float nx_fp8_round(const nx_fp8_row *format, float x) {
  float size = fabsf(x), normal, small;
  uint32_t bits;
  size = size > format->most ? format->most : size;
  memcpy(&bits, &size, sizeof bits);
  bits += (UINT32_C(1) << (format->bits - 1)) - 1 + (bits >> format->bits & 1);
  bits &= ~((UINT32_C(1) << format->bits) - 1);
  memcpy(&normal, &bits, sizeof normal);
  small = (size + format->magic) - format->magic;
  return copysignf(size < format->least ? small : normal, x);
}

static inline float nx_e4m3_decode(uint8_t code) {
  int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 127) == 127) return NAN;
  float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
  return code & 128 ? -size : size;
}

/* Of a number of the format. */
static inline uint8_t nx_e4m3_encode(float x) {
  uint8_t sign = signbit(x) ? 128 : 0;
  int exponent;
  if (isnan(x)) return sign | 127;
  float size = fabsf(x);
  if (size < 0x1p-6f) return sign | (uint8_t)(size * 512);
  float fraction = frexpf(size, &exponent); /* in [1/2, 1) */
  return sign | (uint8_t)((exponent + 6) << 3 | ((int)(fraction * 16) & 7));
}

/* How a scale follows the greatest magnitude. */
typedef enum nx_fp8_scaling {
  NX_FP8_SCALE_TENSOR, /* the format's largest number over it, over 2^margin (Transformer Engine) */
  NX_FP8_SCALE_POWER,  /* the same, down to a power of two */
  NX_FP8_SCALE_MX,     /* the same, as the format of microscaling has it: of e8m0 */
  NX_FP8_SCALE_DIVIDE, /* it over the format's largest number divides */
  NX_N_FP8_SCALINGS
} nx_fp8_scaling;

/* x is multiplied with `up` (0: divided by `down`), rounded, and multiplied with `down`. */
typedef struct nx_fp8_scale {
  float up, down;
} nx_fp8_scale;

static inline float nx_fp8_apply(const nx_fp8_row *format, const nx_fp8_scale *scale, float x) {
  return nx_fp8_round(format, scale->up > 0 ? x * scale->up : x / scale->down) * scale->down;
}

static inline nx_fp8_scale nx_fp8_scale_of(nx_fp8_scaling scaling, const nx_fp8_row *format, float most,
                                           int margin) {
  bool usable = most > 0 && most <= FLT_MAX;
  uint32_t bits;
  if (scaling == NX_FP8_SCALE_DIVIDE) {
    float down = most / format->most;
    return (nx_fp8_scale){0, down > 1e-12f ? down : 1e-12f};
  }
  if (!usable) return (nx_fp8_scale){1, 1};
  if (scaling == NX_FP8_SCALE_MX) {
    float wanted = most * (1.0f / format->most);
    memcpy(&bits, &wanted, sizeof bits);
    int exponent = (int)(bits >> 23);
    uint32_t mantissa = bits & UINT32_C(0x7FFFFF);
    if (mantissa > 0 && exponent != 254 && !(exponent == 0 && mantissa <= UINT32_C(0x400000))) exponent++;
    return (nx_fp8_scale){ldexpf(1, 127 - exponent), ldexpf(1, exponent - 127)};
  }
  float up = ldexpf(format->most / most, -margin);
  if (up > FLT_MAX) up = FLT_MAX;
  if (scaling == NX_FP8_SCALE_POWER) {
    memcpy(&bits, &up, sizeof bits);
    bits &= UINT32_C(0xFF800000);
    memcpy(&up, &bits, sizeof up);
  }
  return (nx_fp8_scale){up, 1 / up};
}

#endif
