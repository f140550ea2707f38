/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16: the upper half of a binary32, as every backend converts to and from it.
 *
 * Rounding is to nearest, ties to even. A binary32 denormal becomes a zero of its sign (what VCVTNEPS2BF16
 * does), so there are no bf16 denormals. A NaN stays a NaN and becomes quiet. Conversions do not depend on
 * MXCSR. */
#ifndef NX_BF16_H
#define NX_BF16_H

#include "schema/round_odd.h"

#include <stdint.h>
#include <string.h>

static inline float nx_bf16_to_float(uint16_t word) {
  uint32_t bits = (word & 0x7F80) ? (uint32_t)word << 16 : (uint32_t)(word & 0x8000) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint16_t nx_bf16_from_bits(uint32_t bits) {
  uint32_t exponent = bits & UINT32_C(0x7F800000);
  if (exponent == 0) return (uint16_t)(bits >> 16 & 0x8000);
  if (exponent == UINT32_C(0x7F800000) && (bits & UINT32_C(0x007FFFFF)))
    return (uint16_t)(bits >> 16 | 0x0040);
  return (uint16_t)((bits + UINT32_C(0x7FFF) + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t nx_bf16_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return nx_bf16_from_bits(bits);
}

/* One rounding, not two. */
static inline uint16_t nx_bf16_from_double(double value) {
  return nx_bf16_from_bits(nx_round_odd_bits(value));
}

#endif
