/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/lz4.h"

#include <string.h>

enum { MAGIC = 0x184D2204, HEADER_BYTES = 7, SHORTEST = 4, IN_TOKEN = 15 };
enum { WITH_DICTIONARY = 1, WITH_SIZE = 8, WITH_BLOCK_CHECKSUM = 16 };
static const uint32_t IS_STORED = UINT32_C(1) << 31;

/* Where it is read and written. */
typedef struct lz4 {
  const uint8_t *from, *end; /* of the block at hand */
  uint8_t *to;
  size_t n, room; /* written, of all blocks */
} lz4;

static uint32_t load(const uint8_t *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A length's bytes behind those 4 bits of it that a token has. */
static bool read_length(lz4 *l, size_t *n) {
  if (*n < IN_TOKEN) return true;
  for (uint8_t byte = 255; byte == 255; *n += byte) {
    if (l->from == l->end) return false;
    byte = *l->from++;
  }
  return true;
}

static bool copy_literals(lz4 *l, size_t n) {
  if (!read_length(l, &n) || n > (size_t)(l->end - l->from) || n > l->room - l->n) return false;
  if (n > 0) memcpy(l->to + l->n, l->from, n);
  l->from += n, l->n += n;
  return true;
}

/* What was written so far back, and may reach into what is written here. */
static bool copy_match(lz4 *l, size_t n) {
  if (l->end - l->from < 2) return false;
  size_t back = l->from[0] | (size_t)l->from[1] << 8;
  l->from += 2;
  if (!read_length(l, &n)) return false;
  n += SHORTEST;
  if (back == 0 || back > l->n || n > l->room - l->n) return false;
  for (uint8_t *at = l->to + l->n, *end = at + n; at < end; at++) *at = at[-(ptrdiff_t)back];
  l->n += n;
  return true;
}

static bool unpack_block(lz4 *l) {
  while (l->from < l->end) {
    uint8_t token = *l->from++;
    if (!copy_literals(l, token >> 4)) return false;
    if (l->from < l->end && !copy_match(l, token & IN_TOKEN)) return false;
  }
  return true;
}

bool nxd_lz4_unpack(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to) {
  if (n_from < HEADER_BYTES || load(from) != MAGIC) return false;
  uint8_t flags = from[4];
  size_t n_header = HEADER_BYTES + (flags & WITH_SIZE ? 8u : 0u);
  if (flags >> 6 != 1 || flags & WITH_DICTIONARY || n_from < n_header) return false;
  lz4 l = {.to = to, .room = n_to};
  size_t n_behind = flags & WITH_BLOCK_CHECKSUM ? 4 : 0;
  for (const uint8_t *at = from + n_header, *end = from + n_from;;) {
    if (end - at < 4) return false;
    uint32_t n = load(at) & ~IS_STORED, stored = load(at) & IS_STORED;
    at += 4;
    if (n == 0) return l.n == n_to;
    if (n + n_behind > (size_t)(end - at)) return false;
    l.from = at, l.end = at + n;
    if (stored ? n > l.room - l.n : !unpack_block(&l)) return false;
    if (stored) memcpy(to + l.n, at, n), l.n += n;
    at += n + n_behind;
  }
}
