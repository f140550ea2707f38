/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_sum.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORD_BYTES = 8, CHUNK_BYTES = 1 << 20, N_LIMBS = 3, LIMB_BITS = 21, LANES = 4 };

static const uint64_t PRIME = (UINT64_C(1) << 61) - 1;
static const uint64_t BASES[NXR_SUM_NUMBERS] = {UINT64_C(0x1C6A9E3D0B7F5217), UINT64_C(0x0E5B38D1F4A2C96B)};

/* Equal to x modulo the prime, and less than 2^61 + 8. */
static uint64_t fold(uint64_t x) {
  return (x & PRIME) + (x >> 61);
}

static uint64_t reduce(uint64_t x) {
  x = fold(x);
  return x >= PRIME ? x - PRIME : x;
}

static uint64_t multiply(uint64_t x, uint64_t y) {
  unsigned __int128 product = (unsigned __int128)x * y;
  return reduce((uint64_t)(product & PRIME) + (uint64_t)(product >> 61));
}

static uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = multiply(base, base))
    if (exponent & 1) result = multiply(result, base);
  return result;
}

static uint64_t word_at(const uint8_t *bytes, uint64_t index) {
  uint64_t word;
  memcpy(&word, bytes + index * WORD_BYTES, WORD_BYTES);
  return fold(word);
}

/* x y + z for x < 2^62, y < 2^61 and z < 2^62, less than 2^62. */
static uint64_t multiply_add(uint64_t x, uint64_t y, uint64_t z) {
  unsigned __int128 product = (unsigned __int128)x * y;
  return fold(((uint64_t)product & PRIME) + (uint64_t)(product >> 61) + z);
}

/* Words of which all bytes are there, from the last to the first. A step needs the result of the step before,
 * so that LANES polynomials go side by side, of every LANES-th word each. */
static void add_words(nxr_sum *sum, const uint8_t *bytes, uint64_t n_words, uint64_t index) {
  uint64_t lanes[NXR_SUM_NUMBERS][LANES] = {{0}}, steps[NXR_SUM_NUMBERS], n_steps = n_words / LANES;
  for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++) steps[j] = power(BASES[j], LANES);
  for (uint64_t lane = 0; lane < n_words % LANES; lane++)
    for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++) lanes[j][lane] = word_at(bytes, n_steps * LANES + lane);
  for (uint64_t i = n_steps; i-- > 0;)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint64_t word = word_at(bytes, i * LANES + lane);
      for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++)
        lanes[j][lane] = multiply_add(lanes[j][lane], steps[j], word);
    }
  for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++) {
    uint64_t total = 0;
    for (uint32_t lane = LANES; lane-- > 0;) total = multiply_add(total, BASES[j], lanes[j][lane]);
    sum->at[j] = reduce(multiply_add(total, power(BASES[j], index), sum->at[j]));
  }
}

/* A few bytes of one word. */
static void add_part(nxr_sum *sum, const uint8_t *bytes, uint64_t n_bytes, uint64_t offset) {
  uint8_t word[WORD_BYTES] = {0};
  memcpy(word + offset % WORD_BYTES, bytes, n_bytes);
  add_words(sum, word, 1, offset / WORD_BYTES);
}

void nxr_sum_add(nxr_sum *sum, const void *from, uint64_t n_bytes, uint64_t offset) {
  const uint8_t *bytes = from;
  uint64_t before = (WORD_BYTES - offset % WORD_BYTES) % WORD_BYTES;
  if (before > n_bytes) before = n_bytes;
  if (before > 0) add_part(sum, bytes, before, offset);
  bytes += before, offset += before, n_bytes -= before;
  uint64_t n_words = n_bytes / WORD_BYTES, rest = n_bytes % WORD_BYTES;
  if (n_words > 0) add_words(sum, bytes, n_words, offset / WORD_BYTES);
  if (rest > 0) add_part(sum, bytes + n_bytes - rest, rest, offset + n_bytes - rest);
}

/* In limbs, whose sums over all ranks a double holds exactly. */
static void combine_some(nxr_world *world, nxr_sum *sums, uint32_t n) {
  double limbs[NXR_SUM_MOST][NXR_SUM_NUMBERS][N_LIMBS] = {0};
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++)
      for (uint32_t k = 0; k < N_LIMBS; k++)
        limbs[i][j][k] = (double)(sums[i].at[j] >> (k * LIMB_BITS) & ((1u << LIMB_BITS) - 1));
  nxr_world_sum(world, &limbs[0][0][0], n * sizeof *limbs / sizeof(double));
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < NXR_SUM_NUMBERS; j++) {
      sums[i].at[j] = 0;
      for (uint32_t k = 0; k < N_LIMBS; k++)
        sums[i].at[j] = reduce(sums[i].at[j] +
                               multiply((uint64_t)limbs[i][j][k], UINT64_C(1) << (k * LIMB_BITS)));
    }
}

void nxr_sum_combine(nxr_world *world, nxr_sum *sums, uint32_t n) {
  for (uint32_t i = 0; i < n; i += NXR_SUM_MOST)
    combine_some(world, sums + i, n - i < NXR_SUM_MOST ? n - i : NXR_SUM_MOST);
}

bool nxr_sum_equal(const nxr_sum *one, const nxr_sum *other) {
  return memcmp(one, other, sizeof *one) == 0;
}

void nxr_sum_text(const nxr_sum *sum, char text[NXR_SUM_TEXT_BYTES]) {
  snprintf(text, NXR_SUM_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, sum->at[0], sum->at[1]);
}

bool nxr_sum_parse(const char *text, nxr_sum *sum) {
  char again[NXR_SUM_TEXT_BYTES];
  if (text == NULL || sscanf(text, "%16" SCNx64 "%16" SCNx64, &sum->at[0], &sum->at[1]) != NXR_SUM_NUMBERS)
    return false;
  nxr_sum_text(sum, again);
  return strcmp(again, text) == 0;
}

static bool add_file_part(int file, uint64_t first, uint64_t end, nxr_sum *sum) {
  uint8_t *chunk = malloc(CHUNK_BYTES);
  bool good = chunk != NULL;
  while (good && first < end) {
    nxr_world_beat();
    uint64_t wanted = end - first < CHUNK_BYTES ? end - first : CHUNK_BYTES;
    ssize_t n = pread(file, chunk, wanted, (off_t)first);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (n == 0) errno = EIO; /* it has become shorter */
    if (good) nxr_sum_add(sum, chunk, (uint64_t)n, first), first += (uint64_t)n;
  }
  free(chunk);
  return good;
}

bool nxr_sum_file(const char *path, uint32_t index, uint32_t n, nxr_sum *sum, uint64_t *n_bytes,
                  nxr_fault *fault) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe nothing is awaited */
  bool good = file >= 0 && fstat(file, &status) == 0;
  if (good) {
    *n_bytes = (uint64_t)status.st_size;
    uint64_t part = (*n_bytes / n + WORD_BYTES) / WORD_BYTES * WORD_BYTES, first = part * index;
    uint64_t end = index + 1 == n || first + part > *n_bytes ? *n_bytes : first + part;
    good = first >= end || add_file_part(file, first, end, sum);
  }
  if (!good) nxr_fault_set(fault, "cannot read %s: %s", path, strerror(errno));
  if (file >= 0) close(file);
  return good;
}
