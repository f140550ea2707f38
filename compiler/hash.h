/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NXC_HASH_H
#define NXC_HASH_H

#include <stddef.h>
#include <stdint.h>

/* A hash with one more part: each of its bits comes of many, the low ones too. */
static inline uint64_t nxc_hash_mixed(uint64_t hash, uint64_t part) {
  hash = (hash ^ part) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

/* FNV-1a, its low bits mixed with high ones. */
static inline uint64_t nxc_hash_bytes(const char *bytes, size_t n_bytes) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
  return hash ^ hash >> 29;
}

#endif
