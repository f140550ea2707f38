/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and their ids. A text has one id; of an id that two texts have, the later one is its text. */
#ifndef NXT_VOCABULARY_H
#define NXT_VOCABULARY_H

#include "tokenizer/tokenizer.h"

enum { NXT_MAX_ID = (1 << 24) - 1, NXT_NONE = UINT32_MAX };

typedef struct nxt_entry {
  uint32_t begin; /* of its text in `texts` */
  uint32_t n_bytes, id, hash;
} nxt_entry;

typedef struct nxt_vocabulary {
  nxt_text texts;
  nxt_entry *entries;
  uint32_t n_entries, entry_room;
  uint32_t *slots; /* indices of entries by their hashes; a power of two of them */
  uint32_t n_slots;
  uint32_t *by_id; /* the entry of an id, or NXT_NONE */
  uint32_t n_ids, id_room;
} nxt_vocabulary;

void nxt_vocabulary_close(nxt_vocabulary *vocabulary);
/* A text that is there already gets the id. */
void nxt_vocabulary_add(nxt_vocabulary *vocabulary, const char *text, size_t n_bytes, uint32_t id);
/* NXT_NONE: it is not there. */
uint32_t nxt_vocabulary_id(const nxt_vocabulary *vocabulary, const char *text, size_t n_bytes);
/* NULL: the id has none. */
const char *nxt_vocabulary_text(const nxt_vocabulary *vocabulary, uint32_t id, size_t *n_bytes);

uint32_t nxt_hash(const char *bytes, size_t n_bytes);

#endif
