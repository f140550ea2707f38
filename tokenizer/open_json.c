/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json: its parts in the order in which they need each other. */
#include "tokenizer/added.h"
#include "tokenizer/open_models.h"

#include <string.h>

/* The first id that an added token gets which the model does not know. */
static uint32_t next_id(const nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->vocabulary.n_entries, after_added = tokenizer->added.names.n_ids;
  return after_added > n ? after_added : n;
}

/* The model's vocabulary says which id it has, or the order in which they stand. */
bool nxt_add_token(nxt_reading *reading, const json_t *token) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  const json_t *content = json_object_get(token, "content");
  if (!json_is_string(content)) return nxt_refuse(reading, "an added token has no content");
  const char *text = json_string_value(content);
  size_t n_bytes = json_string_length(content);
  bool special = nxt_json_flag(token, "special", false);
  nxt_added added = {
      .special = special,
      .single_word = nxt_json_flag(token, "single_word", false),
      .strip_left = nxt_json_flag(token, "lstrip", false),
      .strip_right = nxt_json_flag(token, "rstrip", false),
      .normalized = nxt_json_flag(token, "normalized", !special),
  };
  if (n_bytes == 0) return true;
  if (!nxt_find(tokenizer, text, n_bytes, &added.id)) added.id = next_id(tokenizer);
  if (added.id > NXT_MAX_ID) return nxt_refuse(reading, "has more than %d ids", NXT_MAX_ID);
  nxt_added_put(&tokenizer->added, text, n_bytes, added);
  return true;
}

static bool read_added(nxt_reading *reading, const json_t *tokens) {
  size_t i;
  const json_t *token;
  json_array_foreach(tokens, i, token) if (!nxt_add_token(reading, token)) return false;
  return true;
}

/* Cutting texts off and filling them up are the training's business. */
static bool refuse_settings(nxt_reading *reading, const json_t *root) {
  const char *version = nxt_json_string(root, "version", "1.0");
  if (strcmp(version, "1.0") != 0) return nxt_refuse(reading, "version \"%.40s\" is not covered", version);
  return true;
}

bool nxt_open_tokenizer_json(nxt_reading *reading, const json_t *root) {
  const json_t *model = json_object_get(root, "model");
  if (!json_is_object(model)) return nxt_refuse(reading, "has a \"model\" that is none");
  if (!refuse_settings(reading, root) || !nxt_read_model(reading, model) ||
      !nxt_read_normalizers(reading, json_object_get(root, "normalizer")) ||
      !nxt_read_splits(reading, json_object_get(root, "pre_tokenizer")))
    return false;
  nxt_bpe_of_bytes(reading->tokenizer);
  reading->adds_tokens = true;
  return read_added(reading, json_object_get(root, "added_tokens")) &&
         nxt_read_processors(reading, json_object_get(root, "post_processor")) &&
         nxt_read_decoders(reading, json_object_get(root, "decoder"));
}
