/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 754 binary16, as every backend converts to and from it.
 *
 * Rounding is to nearest, ties to even; what is too large becomes an infinity. Denormals are kept (as
 * VCVTPS2PH and VCVTPH2PS do), for gradients live there. A NaN stays a NaN and becomes quiet. Conversions do
 * not depend on MXCSR. */
#ifndef NX_F16_H
#define NX_F16_H

#include "schema/round_odd.h"

#include <stdint.h>
#include <string.h>

static inline float nx_f16_to_float(uint16_t word) {
  uint32_t sign = (uint32_t)(word & 0x8000) << 16, exponent = word >> 10 & 31, fraction = word & 0x3FF;
  if (exponent == 0) {
    float size = (float)fraction * 0x1p-24f;
    return sign ? -size : size;
  }
  uint32_t quiet = exponent == 31 && fraction ? UINT32_C(0x00400000) : 0;
  uint32_t bits =
      sign | (exponent == 31 ? UINT32_C(0x7F800000) : (exponent + 112) << 23) | fraction << 13 | quiet;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The last `n` bits of `bits` are rounded away. */
static inline uint32_t nx_f16_round(uint32_t bits, uint32_t n) {
  return (bits + (UINT32_C(1) << (n - 1)) - 1 + (bits >> n & 1)) >> n;
}

static inline uint16_t nx_f16_from_bits(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000, size = bits & UINT32_C(0x7FFFFFFF), exponent = size >> 23;
  if (size > UINT32_C(0x7F800000)) return (uint16_t)(sign | 0x7E00 | (size >> 13 & 0x3FF));
  if (size >= UINT32_C(0x477FF000)) return (uint16_t)(sign | 0x7C00); /* 65520 and more */
  if (exponent >= 113) return (uint16_t)(sign | nx_f16_round(size - (UINT32_C(112) << 23), 13));
  if (exponent < 102) return (uint16_t)sign; /* below half of the least denormal */
  uint32_t fraction = (size & UINT32_C(0x007FFFFF)) | UINT32_C(0x00800000);
  return (uint16_t)(sign | nx_f16_round(fraction, 126 - exponent));
}

static inline uint16_t nx_f16_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return nx_f16_from_bits(bits);
}

/* One rounding, not two. */
static inline uint16_t nx_f16_from_double(double value) {
  return nx_f16_from_bits(nx_round_odd_bits(value));
}

#endif
