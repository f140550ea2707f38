/* SPDX-License-Identifier: Apache-2.0 */
/* A double as binary32 bits, rounded to odd: these keep what a second rounding, to a narrower type, must
 * know, so that both together round once. */
#ifndef NX_ROUND_ODD_H
#define NX_ROUND_ODD_H

#include <stdint.h>
#include <string.h>

static inline uint32_t nx_round_odd_bits(double value) {
  float near = (float)value;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if ((double)near != value && value == value) {
    double size = value < 0 ? -value : value, near_size = near < 0 ? -(double)near : (double)near;
    if (near_size > size) bits--;
    bits |= 1;
  }
  return bits;
}

#endif
