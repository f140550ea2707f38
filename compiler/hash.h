/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NXC_HASH_H
#define NXC_HASH_H

#include <stdint.h>

/* A hash with one more part: each of its bits comes of many, the low ones too. */
static inline uint64_t nxc_hash_mixed(uint64_t hash, uint64_t part) {
  hash = (hash ^ part) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

#endif
