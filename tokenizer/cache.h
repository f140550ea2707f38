/* SPDX-License-Identifier: Apache-2.0 */
/* Words and their ids. Text repeats its words: nine of ten are found here. When it is full it begins anew. */
#ifndef NXT_CACHE_H
#define NXT_CACHE_H

#include "tokenizer/tokenizer.h"

enum { NXT_CACHED_BYTES = 64, NXT_CACHE_SLOTS = 1 << 17 }; /* longer words are not kept */

typedef struct nxt_cached {
  uint32_t hash;
  uint32_t begin; /* of its bytes in `bytes` */
  uint32_t ids;   /* the id, or where they begin in `ids` */
  uint16_t n_bytes, n_ids; /* n_bytes 0: the slot is free */
} nxt_cached;

typedef struct nxt_cache {
  nxt_cached *slots;
  uint32_t n_used;
  nxt_text bytes;
  nxt_ids ids;
} nxt_cache;

void nxt_cache_close(nxt_cache *cache);
/* The word's slot, or a free one that nxt_cache_add may fill. */
nxt_cached *nxt_cache_find(nxt_cache *cache, const char *word, size_t n_bytes);
static inline const uint32_t *nxt_cached_ids(const nxt_cache *cache, const nxt_cached *cached) {
  return cached->n_ids == 1 ? &cached->ids : cache->ids.items + cached->ids;
}
void nxt_cache_add(nxt_cache *cache, nxt_cached *slot, const char *word, size_t n_bytes, const uint32_t *ids,
                   size_t n_ids);

#endif
