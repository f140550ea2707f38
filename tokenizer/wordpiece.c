/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/wordpiece.h"

#include "schema/plan_check.h"
#include "tokenizer/encoder.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

static bool add_unknown(nxt_encoder *encoder, nxt_ids *ids) {
  if (encoder->tokenizer->unknown == NXT_NONE)
    return nx_fault_set(encoder->fault, 0, "the tokenizer has no token for what is unknown");
  nxt_ids_add(ids, encoder->tokenizer->unknown);
  return true;
}

bool nxt_wordlevel_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids) {
  uint32_t id = nxt_vocabulary_id(&encoder->tokenizer->vocabulary, text, n_bytes);
  if (id == NXT_NONE) return add_unknown(encoder, ids);
  nxt_ids_add(ids, id);
  return true;
}

static bool is_too_long(const char *text, size_t n_bytes, uint32_t most) {
  size_t n = 0;
  for (const char *at = text, *end = text + n_bytes; at < end; at += nxt_char_bytes(*at))
    if (++n > most) return true;
  return false;
}

/* A word of which any part is unknown is unknown. */
bool nxt_wordpiece_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  size_t n_before = ids->n;
  if (is_too_long(text, n_bytes, tokenizer->max_word_chars)) return add_unknown(encoder, ids);
  for (size_t at = 0; at < n_bytes;) {
    uint32_t id, node = at == 0 ? 0 : tokenizer->inner_pieces;
    bool may_be = at == 0 || tokenizer->has_inner_pieces;
    size_t n = may_be ? nxt_trie_longest_from(&tokenizer->trie, node, text + at, text + n_bytes, &id) : 0;
    if (n == 0) {
      ids->n = n_before;
      return add_unknown(encoder, ids);
    }
    nxt_ids_add(ids, id);
    at += n;
  }
  return true;
}
