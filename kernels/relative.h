/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket of a distance between query and key, as T5 has it: the first half of the buckets is for the
 * distances 0, 1, ..., the others grow by a factor up to max_distance. In single precision, as PyTorch
 * computes it. */
#ifndef NXK_RELATIVE_H
#define NXK_RELATIVE_H

#include <math.h>
#include <stdint.h>

static inline int64_t nxk_relative_bucket(int64_t distance, int64_t n_buckets, int64_t max_distance) {
  int64_t exact = n_buckets / 2;
  if (distance < exact) return distance;
  float all = (float)log((double)max_distance / (double)exact);
  float of_all = logf((float)distance / (float)exact) / all * (float)(n_buckets - exact);
  int64_t bucket = exact + (int64_t)of_all;
  return bucket < n_buckets ? bucket : n_buckets - 1;
}

#endif
