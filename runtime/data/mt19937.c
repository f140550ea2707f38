/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/mt19937.h"

#include <stdbool.h>

enum { N = NXR_MT19937_WORDS, M = 397 };

void nxr_mt19937_seed(nxr_mt19937 *random, uint32_t seed) {
  random->at = N;
  for (uint32_t i = 0; i < N; i++) {
    random->words[i] = seed;
    seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + i + 1;
  }
}

static uint32_t twist(uint32_t one, uint32_t next) {
  uint32_t mixed = (one & UINT32_C(0x80000000)) | (next & UINT32_C(0x7fffffff));
  return mixed >> 1 ^ (mixed & 1 ? UINT32_C(0x9908b0df) : 0);
}

static uint32_t next(nxr_mt19937 *random) {
  uint32_t *words = random->words;
  if (random->at == N) {
    for (uint32_t i = 0; i < N; i++) words[i] = words[(i + M) % N] ^ twist(words[i], words[(i + 1) % N]);
    random->at = 0;
  }
  uint32_t word = words[random->at++];
  word ^= word >> 11;
  word ^= word << 7 & UINT32_C(0x9d2c5680);
  word ^= word << 15 & UINT32_C(0xefc60000);
  return word ^ word >> 18;
}

/* A number up to `most`: drawn below the next power of two until one is small enough. */
static uint64_t draw_up_to(nxr_mt19937 *random, uint64_t most) {
  uint64_t mask = most, value;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  do {
    value = next(random);
    if (most > UINT32_MAX) value = value << 32 | next(random);
    value &= mask;
  } while (value > most);
  return value;
}

void nxr_mt19937_shuffle(nxr_mt19937 *random, uint64_t *items, uint64_t n) {
  for (uint64_t i = n; i-- > 1;) {
    uint64_t j = draw_up_to(random, i), item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}

/* One of `n` numbers; of many PyTorch draws twice. */
static uint64_t draw_of(nxr_mt19937 *random, uint64_t n, bool many) {
  uint64_t value = next(random);
  if (many) value = value << 32 | next(random);
  return value % n;
}

void nxr_mt19937_permute(nxr_mt19937 *random, uint64_t *items, uint64_t n) {
  bool many = n >= UINT32_MAX / 20;
  for (uint64_t i = 0; i < n; i++) items[i] = i;
  for (uint64_t i = 0; i + 1 < n; i++) {
    uint64_t j = i + draw_of(random, n - i, many), item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}
