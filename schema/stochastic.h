/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic rounding to bf16: up or down, with the odds that keep the mean.
 *
 * What decides is drawn for the number itself: its bits, the gradient that changed it, the step that stores
 * it, and what it is (0 a parameter, from 1 on its states). So it does not depend on where the number lies:
 * every mesh that makes the same number rounds it alike. Without the gradient all weights of a norm, which
 * begin as 1 and take a first step of one length, would be rounded by one draw. Of a copy of what is kept in
 * fp32 it is left out (0), so that a checkpoint's parameter becomes the same bf16 again; there no rounding
 * adds to another. A number that bf16 has stays as it is. */
#ifndef NX_STOCHASTIC_H
#define NX_STOCHASTIC_H

#include "schema/bf16.h"
#include "schema/philox.h"

/* Away from the keys of dropout, which are numbers of tensors. */
#define NX_ROUNDING_KEY UINT32_C(0x80000000)

static inline uint32_t nx_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint32_t nx_stochastic_word(uint64_t seed, uint64_t step, uint32_t what, uint32_t bits,
                                          uint32_t gradient) {
  return nx_philox_draw(seed, NX_ROUNDING_KEY + what, bits, (uint32_t)step, (uint32_t)(step >> 32), gradient)
      .word[0];
}

/* With 16 bits of `word`. Infinities, NaN and what is below the least normal number become as in bf16.h. */
static inline uint16_t nx_bf16_stochastic(uint32_t bits, uint32_t word) {
  uint32_t exponent = bits & UINT32_C(0x7F800000), moved = (bits + (word & 0xFFFF)) >> 16;
  return exponent == 0 || exponent == UINT32_C(0x7F800000) ? nx_bf16_from_bits(bits) : (uint16_t)moved;
}

static inline uint16_t nx_bf16_from_drawn(float value, uint64_t seed, uint64_t step, uint32_t what,
                                          float gradient) {
  uint32_t bits = nx_float_bits(value);
  return nx_bf16_stochastic(bits, nx_stochastic_word(seed, step, what, bits, nx_float_bits(gradient)));
}

#endif
