/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which numpy.sum adds up what lies side by side: eight sums beside each other, halves of what
 * is longer than 128. Weights of blends are divided by it, and the last bit may decide which source is next.
 * Source: numpy/_core/src/umath/loops_utils.h.src, pairwise_sum. */
#ifndef NX_PAIRWISE_SUM_H
#define NX_PAIRWISE_SUM_H

#include <stdint.h>

static inline double nx_pairwise_sum(const double *x, uint32_t n) {
  double sums[8] = {0}, sum = 0;
  uint32_t half = n / 2 - n / 2 % 8, i = 0;
  if (n > 128) return nx_pairwise_sum(x, half) + nx_pairwise_sum(x + half, n - half);
  for (; n >= 8 && i < n - n % 8; i++) sums[i % 8] += x[i];
  if (n >= 8) sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < n; i++) sum += x[i];
  return sum;
}

#endif
