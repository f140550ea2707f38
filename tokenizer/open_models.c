/* SPDX-License-Identifier: Apache-2.0 */
/* Models of tokenizer.json. */
#include "tokenizer/bpe.h"
#include "tokenizer/memory.h"
#include "tokenizer/open.h"
#include "tokenizer/open_models.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

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

/* The two texts of a merge: ["a", "b"], or "a b". */
typedef struct merge {
  const char *left, *right;
  size_t n_left, n_right;
} merge;

static bool cut_merge(const char *text, size_t n_bytes, merge *m) {
  const char *blank = memchr(text, ' ', n_bytes);
  if (blank == NULL) return false;
  *m = (merge){text, blank + 1, (size_t)(blank - text), n_bytes - (size_t)(blank + 1 - text)};
  return memchr(m->right, ' ', m->n_right) == NULL;
}

static bool take_merge(const json_t *pair, merge *m) {
  if (json_is_string(pair)) return cut_merge(json_string_value(pair), json_string_length(pair), m);
  const json_t *left = json_array_get(pair, 0), *right = json_array_get(pair, 1);
  if (!json_is_string(left) || !json_is_string(right) || json_array_size(pair) != 2) return false;
  *m = (merge){json_string_value(left), json_string_value(right), json_string_length(left), json_string_length(right)};
  return true;
}

static bool add_merge(nxt_reading *reading, const merge *m, uint32_t rank, nxt_text *joined) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  size_t n_prefix = tokenizer->bpe.prefix.n;
  uint32_t left = nxt_vocabulary_id(&tokenizer->vocabulary, m->left, m->n_left);
  uint32_t right = nxt_vocabulary_id(&tokenizer->vocabulary, m->right, m->n_right), id = NXT_NONE;
  joined->n = 0;
  nxt_text_add(joined, m->left, m->n_left);
  if (m->n_right >= n_prefix) {
    nxt_text_add(joined, m->right + n_prefix, m->n_right - n_prefix);
    id = nxt_vocabulary_id(&tokenizer->vocabulary, joined->items, joined->n);
  }
  if (left == NXT_NONE || right == NXT_NONE || id == NXT_NONE)
    return nxt_refuse(reading, "the merge %u of \"%.*s\" and \"%.*s\" is not in the vocabulary", rank,
                      (int)(m->n_left > 60 ? 60 : m->n_left), m->left, (int)(m->n_right > 60 ? 60 : m->n_right),
                      m->right);
  nxt_bpe_add(&tokenizer->bpe, left, right, rank, id);
  return true;
}

bool nxt_read_merges(nxt_reading *reading, const json_t *merges) {
  nxt_text joined = {0};
  const json_t *pair;
  size_t i;
  uint32_t rank = 0;
  bool done = true;
  nxt_bpe_begin(&reading->tokenizer->bpe, json_array_size(merges));
  json_array_foreach(merges, i, pair) {
    merge m;
    if (json_is_string(pair) && strncmp(json_string_value(pair), "#version", 8) == 0) continue;
    done = take_merge(pair, &m) ? add_merge(reading, &m, rank++, &joined)
                                : nxt_refuse(reading, "the merge %zu is no pair of tokens", i);
    if (!done) break;
  }
  free(joined.items);
  return done;
}

/* The bytes' ids, where a vocabulary's characters stand for bytes. */
static void take_bytes(nxt_tokenizer *tokenizer) {
  nxt_bpe *bpe = &tokenizer->bpe;
  nxt_text bytes = {0};
  for (unsigned byte = 0; byte < 256; byte++) {
    bytes.n = 0;
    nxt_text_add_char(&bytes, nxt_byte_char((uint8_t)byte));
    bpe->bytes[byte] = nxt_vocabulary_id(&tokenizer->vocabulary, bytes.items, bytes.n);
  }
  for (uint32_t i = 0; bpe->takes_whole && i < tokenizer->vocabulary.n_entries; i++) {
    const nxt_entry *entry = &tokenizer->vocabulary.entries[i];
    bytes.n = 0;
    if (nxt_bytes_of(tokenizer->vocabulary.texts.items + entry->begin, entry->n_bytes, &bytes))
      nxt_vocabulary_add(&bpe->whole, bytes.items, bytes.n, entry->id);
  }
  free(bytes.items);
}

void nxt_bpe_of_bytes(nxt_tokenizer *tokenizer) {
  const nxt_split *last = tokenizer->n_splits > 0 ? &tokenizer->splits[tokenizer->n_splits - 1] : NULL;
  nxt_bpe *bpe = &tokenizer->bpe;
  if (last == NULL || last->run != nxt_split_bytes || tokenizer->word != nxt_bpe_word) return;
  if (bpe->prefix.n > 0 || bpe->suffix.n > 0 || bpe->has_fallback) return;
  tokenizer->n_splits--;
  bpe->of_bytes = true;
  take_bytes(tokenizer);
}

static bool read_unknown(nxt_reading *reading, const json_t *model) {
  const json_t *unknown = json_object_get(model, "unk_token");
  nxt_tokenizer *tokenizer = reading->tokenizer;
  if (!json_is_string(unknown)) return true;
  tokenizer->unknown =
      nxt_vocabulary_id(&tokenizer->vocabulary, json_string_value(unknown), json_string_length(unknown));
  tokenizer->needs_unknown = true;
  tokenizer->roles[NXT_UNK] = tokenizer->unknown;
  return true;
}

static bool read_bpe(nxt_reading *reading, const json_t *model) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_bpe *bpe = &tokenizer->bpe;
  const json_t *dropout = json_object_get(model, "dropout");
  if (json_is_number(dropout) && json_number_value(dropout) != 0)
    return nxt_refuse(reading, "dropout %g of the model's merges is not covered: its ids are drawn by chance",
                      json_number_value(dropout));
  bpe->prefix = nxt_json_text(json_object_get(model, "continuing_subword_prefix"));
  bpe->suffix = nxt_json_text(json_object_get(model, "end_of_word_suffix"));
  bpe->fuse_unknown = nxt_json_flag(model, "fuse_unk", false);
  bpe->takes_whole = nxt_json_flag(model, "ignore_merges", false);
  bpe->has_fallback = nxt_json_flag(model, "byte_fallback", false);
  tokenizer->word = nxt_bpe_word;
  tokenizer->caches = true;
  if (!nxt_read_vocab(reading, json_object_get(model, "vocab")) || !read_unknown(reading, model)) return false;
  if (bpe->has_fallback) nxt_fallback_ids(&tokenizer->vocabulary, bpe->bytes);
  return nxt_read_merges(reading, json_object_get(model, "merges"));
}

bool nxt_read_model(nxt_reading *reading, const json_t *model) {
  static const nxt_step_kind kinds[] = {{"BPE", read_bpe}};
  /* Files from before models had a type. */
  const char *type = nxt_json_string(model, "type", json_object_get(model, "merges") != NULL ? "BPE" : "WordPiece");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].type, type) == 0) return kinds[i].read(reading, model);
  return nxt_refuse(reading, "the model \"%.60s\" is not covered", type);
}
