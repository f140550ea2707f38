/* SPDX-License-Identifier: Apache-2.0 */
/* The merging of a word's symbols: the pair of the lowest rank first, of equal ones the leftmost. */
#ifndef NXT_BPE_MERGE_H
#define NXT_BPE_MERGE_H

#include "tokenizer/encoder.h"

static inline uint64_t nxt_pair_key(uint32_t left, uint32_t right) {
  return (uint64_t)left << 32 | right;
}

/* The pair's slot, or the free one where it would go. */
static inline nxt_pair *nxt_pair_slot(const nxt_bpe *bpe, uint32_t left, uint32_t right) {
  uint64_t key = nxt_pair_key(left, right), hash = key * 0x9e3779b97f4a7c15u;
  uint64_t mask = bpe->n_slots - 1, slot = (hash ^ hash >> 32) & mask;
  while (bpe->pairs[slot].key != key && bpe->pairs[slot].key != UINT64_MAX) slot = (slot + 1) & mask;
  return &bpe->pairs[slot];
}

/* Room in the encoder for a word of as many symbols. */
void nxt_symbols_reserve(nxt_encoder *encoder, size_t n);
/* Merges the encoder's first n symbols, of which the ids are set, and adds what is left of them. */
void nxt_merge(nxt_encoder *encoder, size_t n, nxt_ids *ids);

#endif
