/* SPDX-License-Identifier: Apache-2.0 */
/* What models of tokenizer.json have in common: their words, and the one for what is none. */
#include "tokenizer/open_models.h"


bool nxt_read_vocab(nxt_reading *reading, const json_t *vocab) {
  const char *text;
  size_t n_bytes;
  json_t *id;
  if (!json_is_object(vocab)) return nxt_refuse(reading, "has no vocabulary");
  json_object_keylen_foreach((json_t *)vocab, text, n_bytes, id) {
    json_int_t n = json_is_integer(id) ? json_integer_value(id) : -1;
    if (n < 0 || n > NXT_MAX_ID)
      return nxt_refuse(reading, "the token \"%.60s\" has no id between 0 and %d", text, NXT_MAX_ID);
    nxt_vocabulary_add(&reading->tokenizer->vocabulary, text, n_bytes, (uint32_t)n);
  }
  return true;
}

bool nxt_read_unknown(nxt_reading *reading, const json_t *model) {
  const json_t *unknown = json_object_get(model, "unk_token");
  nxt_tokenizer *tokenizer = reading->tokenizer;
  if (!json_is_string(unknown)) return true;
  tokenizer->unknown =
      nxt_vocabulary_id(&tokenizer->vocabulary, json_string_value(unknown), json_string_length(unknown));
  tokenizer->needs_unknown = true;
  tokenizer->roles[NXT_UNK] = tokenizer->unknown;
  return true;
}
