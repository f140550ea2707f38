/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread encodes and decodes with. */
#ifndef NXT_ENCODER_H
#define NXT_ENCODER_H

#include "tokenizer/cache.h"
#include "tokenizer/parts.h"

/* Texts, one after another. */
typedef struct nxt_pieces {
  nxt_text text;
  nxt_ids ends;
} nxt_pieces;

/* A symbol of a word that pairs are merged in. */
typedef struct nxt_symbol {
  uint32_t id;
  uint32_t rank, merged; /* of the pair that it makes with the next one; rank NXT_NONE: they do not merge */
  uint32_t previous, next; /* of a long word */
} nxt_symbol;

/* A pair of a long word that waits for its turn. */
typedef struct nxt_waiting {
  uint32_t rank, at, merged;
} nxt_waiting;

/* How the best way to a place of a text ends. */
typedef struct nxt_best {
  double score;
  uint32_t id, begin; /* NXT_NONE: no way leads here */
} nxt_best;

struct nxt_encoder {
  const nxt_tokenizer *tokenizer;
  nxt_matcher *matcher;
  nxt_ids *ids; /* where they go */
  nx_fault *fault;
  unsigned flags;
  nxt_text repaired, forms[2], part;
  bool start_removed; /* a normalizer left out what its text begins with: no part of it is the first then */
  size_t most_form; /* bytes of a normal form, beyond which no step goes on */
  nxt_text *scratch; /* a buffer for each step that changes texts */
  nxt_cache cache;
  nxt_ids word;
  nxt_symbol *symbols;
  nxt_waiting *heap;
  nxt_best *best;
  size_t symbol_room, heap_room, best_room;
  nxt_pieces pieces[2];
  nxt_ids decoded; /* of the pieces, as the first decoder sees them */
  int32_t *chars;
  size_t char_room;
};

/* Hands a text to the next step. */
static inline bool nxt_hand_on(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                               bool first) {
  return n_bytes == 0 || step[1].run(encoder, step + 1, text, n_bytes, first);
}

#endif
