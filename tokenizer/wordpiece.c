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

/* Bytes of the longest piece that the text from `begin` on starts with. */
static size_t longest_piece(nxt_encoder *encoder, const char *text, size_t begin, size_t n_bytes, uint32_t *id) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  const char *at = text + begin, *end = text + n_bytes;
  nxt_text *part = &encoder->part;
  part->n = 0;
  if (begin > 0) nxt_text_add(part, tokenizer->word_prefix.items, tokenizer->word_prefix.n);
  size_t n_prefix = part->n;
  nxt_text_add(part, at, (size_t)(end - at));
  for (; end > at; nxt_last_char(&end)) {
    *id = nxt_vocabulary_id(&tokenizer->vocabulary, part->items, n_prefix + (size_t)(end - at));
    if (*id != NXT_NONE) return (size_t)(end - at);
  }
  return 0;
}

/* A word of which any part is unknown is unknown. */
bool nxt_wordpiece_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids) {
  size_t n_before = ids->n;
  if (is_too_long(text, n_bytes, encoder->tokenizer->max_word_chars)) return add_unknown(encoder, ids);
  for (size_t at = 0; at < n_bytes;) {
    uint32_t id;
    size_t n = longest_piece(encoder, text, at, n_bytes, &id);
    if (n == 0) {
      ids->n = n_before;
      return add_unknown(encoder, ids);
    }
    nxt_ids_add(ids, id);
    at += n;
  }
  return true;
}
