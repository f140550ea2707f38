/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/pieces.h"

#include <stdlib.h>

typedef unsigned __int128 wide;

enum { POOL = 4, STATE = 8 /* words */ };

static uint32_t fold(uint32_t x) {
  return x ^ x >> 16;
}

static uint32_t hash(uint32_t value, uint32_t *factor) {
  value ^= *factor;
  *factor *= UINT32_C(0x931e8875);
  return fold(value * *factor);
}

static uint32_t mix(uint32_t x, uint32_t y) {
  return fold(UINT32_C(0xca01f9dd) * x - UINT32_C(0x4973f715) * y);
}

/* numpy's SeedSequence of a number: 256 bits. */
static void spread(uint64_t seed, uint32_t state[STATE]) {
  const uint32_t words[POOL] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t pool[POOL], factor = UINT32_C(0x43b0d7e5);
  for (int i = 0; i < POOL; i++) pool[i] = hash(words[i], &factor);
  for (int from = 0; from < POOL; from++)
    for (int to = 0; to < POOL; to++)
      if (from != to) pool[to] = mix(pool[to], hash(pool[from], &factor));
  factor = UINT32_C(0x8b51f9dd);
  for (int i = 0; i < STATE; i++) {
    uint32_t value = pool[i % POOL] ^ factor;
    factor *= UINT32_C(0x58f38ded);
    state[i] = fold(value * factor);
  }
}

static wide joined(const uint32_t *words) {
  return (wide)words[1] << 96 | (wide)words[0] << 64 | (wide)words[3] << 32 | words[2];
}

static void advance(nxd_pcg64 *random) {
  const wide factor = (wide)UINT64_C(0x2360ed051fc65da4) << 64 | UINT64_C(0x4385df649fccf645);
  random->state = random->state * factor + random->step;
}

nxd_pcg64 nxd_pcg64_of(uint64_t seed) {
  uint32_t state[STATE];
  spread(seed, state);
  nxd_pcg64 random = {.step = joined(state + POOL) << 1 | 1};
  advance(&random);
  random.state += joined(state);
  advance(&random);
  return random;
}

uint64_t nxd_pcg64_next(nxd_pcg64 *random) {
  advance(random);
  uint64_t x = (uint64_t)(random->state >> 64) ^ (uint64_t)random->state;
  uint32_t turn = (uint32_t)(random->state >> 122);
  return x >> turn | x << (-turn & 63);
}

/* The lower half of a number first. */
static uint32_t next_half(nxd_pcg64 *random) {
  random->has_half = !random->has_half;
  if (!random->has_half) return random->half;
  uint64_t both = nxd_pcg64_next(random);
  random->half = (uint32_t)(both >> 32);
  return (uint32_t)both;
}

/* From 0 to `most`: numbers of as many bits, the first that is none too great. */
static uint64_t below_or_at(nxd_pcg64 *random, uint64_t most) {
  uint64_t mask = most, value;
  for (int bits = 1; bits < 64; bits *= 2) mask |= mask >> bits;
  do value = (most <= UINT32_MAX ? next_half(random) : nxd_pcg64_next(random)) & mask;
  while (value > most);
  return value;
}

void nxd_permutation(nxd_pcg64 *random, uint64_t *order, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) order[i] = i;
  for (uint64_t i = n; i-- > 1;) {
    uint64_t other = below_or_at(random, i), held = order[i];
    order[i] = order[other];
    order[other] = held;
  }
}

uint64_t nxd_piece_span(uint32_t n_pieces, uint32_t which, uint64_t all, uint64_t *first) {
  uint64_t share = all / n_pieces, longer = all % n_pieces;
  *first = share * which + (which < longer ? which : longer);
  return share + (which < longer);
}

uint8_t *nxd_piece_choose(const nxd_piece *piece, uint64_t n) {
  uint64_t *order = malloc((n + 1) * sizeof *order);
  uint8_t *chosen = calloc(n + 1, 1);
  if (order && chosen) {
    nxd_pcg64 random = nxd_pcg64_of(piece->seed);
    uint64_t first, n_chosen = nxd_piece_span(piece->n, piece->which, n, &first);
    nxd_permutation(&random, order, n);
    for (uint64_t i = first; i < first + n_chosen; i++) chosen[order[i]] = 1;
  } else {
    free(chosen);
    chosen = NULL;
  }
  free(order);
  return chosen;
}
