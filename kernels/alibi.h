/* SPDX-License-Identifier: Apache-2.0 */
/* ALiBi (arXiv:2108.12409): how much a head takes from a score for each place between query and key. Heads
 * beyond the largest power of two below their number take every other slope of twice as many heads. */
#ifndef NXK_ALIBI_H
#define NXK_ALIBI_H

#include <math.h>
#include <stdint.h>

static inline double nxk_alibi_slope(int64_t n_heads, int64_t head) {
  int64_t whole = 1;
  while (2 * whole <= n_heads) whole *= 2;
  if (head < whole) return pow(2, -8 * (double)(head + 1) / (double)whole);
  return pow(2, -4 * (double)(2 * (head - whole) + 1) / (double)whole);
}

#endif
