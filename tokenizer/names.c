/* SPDX-License-Identifier: Apache-2.0 */
/* What the ids of a tokenizer stand for. */
#include "tokenizer/added.h"
#include "tokenizer/tokenizer.h"

uint32_t nxt_n_ids(const nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->vocabulary.n_ids, n_added = tokenizer->added.names.n_ids;
  return n > n_added ? n : n_added;
}

bool nxt_find(const nxt_tokenizer *tokenizer, const char *text, size_t n_bytes, uint32_t *id) {
  *id = nxt_vocabulary_id(&tokenizer->added.names, text, n_bytes);
  if (*id == NXT_NONE) *id = nxt_vocabulary_id(&tokenizer->vocabulary, text, n_bytes);
  return *id != NXT_NONE;
}

const char *nxt_token(const nxt_tokenizer *tokenizer, uint32_t id, size_t *n_bytes) {
  const char *text = nxt_vocabulary_text(&tokenizer->added.names, id, n_bytes);
  return text != NULL ? text : nxt_vocabulary_text(&tokenizer->vocabulary, id, n_bytes);
}

bool nxt_is_special(const nxt_tokenizer *tokenizer, uint32_t id) {
  const nxt_added *added = nxt_added_find(&tokenizer->added, id);
  if (tokenizer->types != NULL && id < tokenizer->vocabulary.n_ids)
    return tokenizer->types[id] == NXT_PIECE_CONTROL;
  return added != NULL && added->special;
}
