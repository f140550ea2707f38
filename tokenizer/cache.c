/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/cache.h"

#include "tokenizer/memory.h"
#include "tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>

void nxt_cache_close(nxt_cache *cache) {
  free(cache->slots);
  free(cache->bytes.items);
  free(cache->ids.items);
}

nxt_cached *nxt_cache_find(nxt_cache *cache, const char *word, size_t n_bytes) {
  if (cache->slots == NULL) {
    cache->slots = nxt_new(NXT_CACHE_SLOTS, sizeof *cache->slots);
    nxt_ids_reserve(&cache->ids, 1);
  }
  uint32_t hash = nxt_hash(word, n_bytes);
  for (uint32_t i = hash;; i++) {
    nxt_cached *slot = &cache->slots[i & (NXT_CACHE_SLOTS - 1)];
    if (slot->n_bytes == 0) {
      slot->hash = hash;
      return slot;
    }
    if (slot->hash == hash && slot->n_bytes == n_bytes &&
        memcmp(cache->bytes.items + slot->begin, word, n_bytes) == 0)
      return slot;
  }
}

static void begin_anew(nxt_cache *cache) {
  memset(cache->slots, 0, NXT_CACHE_SLOTS * sizeof *cache->slots);
  cache->n_used = 0;
  cache->bytes.n = cache->ids.n = 0;
}

void nxt_cache_add(nxt_cache *cache, nxt_cached *slot, const char *word, size_t n_bytes, const uint32_t *ids,
                   size_t n_ids) {
  if (cache->n_used == NXT_CACHE_SLOTS / 2) {
    begin_anew(cache);
    slot = nxt_cache_find(cache, word, n_bytes);
  }
  slot->begin = (uint32_t)cache->bytes.n;
  slot->n_bytes = (uint16_t)n_bytes;
  slot->n_ids = (uint16_t)n_ids;
  nxt_text_add(&cache->bytes, word, n_bytes);
  slot->ids = n_ids == 1 ? ids[0] : (uint32_t)cache->ids.n;
  for (size_t i = 0; n_ids != 1 && i < n_ids; i++) nxt_ids_add(&cache->ids, ids[i]);
  cache->n_used++;
}
