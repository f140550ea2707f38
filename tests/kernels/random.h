/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs of tests: the same for the same name, on every machine. splitmix64 and Box-Muller. */
#ifndef TESTS_KERNELS_RANDOM_H
#define TESTS_KERNELS_RANDOM_H

#include <math.h>
#include <stdint.h>

typedef struct random_state {
  uint64_t at;
} random_state;

static inline random_state random_seed(const char *name) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
  return (random_state){hash};
}

/* In [0, 1). */
static inline double random_uniform(random_state *state) {
  uint64_t x = state->at += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static inline double random_normal(random_state *state) {
  double radius = sqrt(-2 * log(1 - random_uniform(state)));
  return radius * cos(2 * 3.14159265358979323846 * random_uniform(state));
}

#endif
