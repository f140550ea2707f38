/* SPDX-License-Identifier: Apache-2.0 */
/* Models of tokenizer.json. */
#include "tokenizer/open_models.h"

#include "tokenizer/bpe.h"
#include "tokenizer/memory.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void make_trie(nxt_tokenizer *tokenizer) {
  const nxt_vocabulary *vocabulary = &tokenizer->vocabulary;
  nxt_key *keys = nxt_new(vocabulary->n_entries, sizeof *keys);
  size_t n = 0;
  for (uint32_t i = 0; i < vocabulary->n_entries; i++) {
    const nxt_entry *entry = &vocabulary->entries[i];
    if (entry->n_bytes > 0)
      keys[n++] = (nxt_key){vocabulary->texts.items + entry->begin, entry->n_bytes, entry->id};
  }
  nxt_trie_build(&tokenizer->trie, keys, n);
  free(keys);
}

/* Where the pieces lie in the trie that do not begin a word. */
static void find_inner_pieces(nxt_tokenizer *tokenizer, const char *prefix, size_t n_prefix) {
  tokenizer->has_inner_pieces = true;
  for (size_t i = 0; i < n_prefix && tokenizer->has_inner_pieces; i++) {
    tokenizer->inner_pieces = nxt_trie_next(&tokenizer->trie, tokenizer->inner_pieces, prefix[i]);
    tokenizer->has_inner_pieces = tokenizer->inner_pieces != 0;
  }
}

static bool read_wordpiece(nxt_reading *reading, const json_t *model) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
  const json_t *most = json_object_get(model, "max_input_chars_per_word");
  json_int_t n = json_is_integer(most) ? json_integer_value(most) : 100;
  tokenizer->word = nxt_wordpiece_word;
  tokenizer->caches = true;
  tokenizer->max_word_chars = n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
  if (!nxt_read_vocab(reading, json_object_get(model, "vocab")) || !nxt_read_unknown(reading, model))
    return false;
  make_trie(tokenizer);
  if (json_is_string(prefix))
    find_inner_pieces(tokenizer, json_string_value(prefix), json_string_length(prefix));
  else
    find_inner_pieces(tokenizer, "##", 2);
  return true;
}

static bool read_wordlevel(nxt_reading *reading, const json_t *model) {
  reading->tokenizer->word = nxt_wordlevel_word;
  return nxt_read_vocab(reading, json_object_get(model, "vocab")) && nxt_read_unknown(reading, model);
}

/* [["text", score], ...]: ids are places in the list. */
static bool add_pieces(nxt_reading *reading, const json_t *vocab, nxt_unigram *unigram) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  const json_t *piece;
  size_t id;
  double least = INFINITY;
  unigram->scores = nxt_new(json_array_size(vocab), sizeof *unigram->scores);
  json_array_foreach(vocab, id, piece) {
    const json_t *text = json_array_get(piece, 0), *score = json_array_get(piece, 1);
    if (!json_is_string(text) || !json_is_number(score) || id > NXT_MAX_ID)
      return nxt_refuse(reading, "the piece %zu is no text and score", id);
    nxt_vocabulary_add(&tokenizer->vocabulary, json_string_value(text), json_string_length(text),
                       (uint32_t)id);
    unigram->scores[id] = json_number_value(score);
    least = fmin(least, unigram->scores[id]);
  }
  unigram->unknown_score = least - 10;
  return true;
}

static bool read_unigram(nxt_reading *reading, const json_t *model) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  const json_t *unknown = json_object_get(model, "unk_id");
  tokenizer->word = nxt_unigram_word;
  tokenizer->caches = true;
  if (!add_pieces(reading, json_object_get(model, "vocab"), &tokenizer->unigram)) return false;
  make_trie(tokenizer);
  if (nxt_json_flag(model, "byte_fallback", false))
    tokenizer->unigram.has_fallback = nxt_fallback_ids(&tokenizer->vocabulary, tokenizer->unigram.bytes);
  if (!json_is_integer(unknown)) return true;
  if (json_integer_value(unknown) < 0 || json_integer_value(unknown) >= tokenizer->vocabulary.n_ids)
    return nxt_refuse(reading, "unk_id is not in the vocabulary");
  tokenizer->unknown = tokenizer->roles[NXT_UNK] = (uint32_t)json_integer_value(unknown);
  return true;
}

/* Files from before models had a type. */
static const char *type_of(const json_t *model) {
  if (json_object_get(model, "merges") != NULL) return "BPE";
  return json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
}

bool nxt_read_model(nxt_reading *reading, const json_t *model) {
  static const nxt_step_kind kinds[] = {{"BPE", nxt_read_bpe},
                                        {"Unigram", read_unigram},
                                        {"WordPiece", read_wordpiece},
                                        {"WordLevel", read_wordlevel}};
  const char *type = nxt_json_string(model, "type", type_of(model));
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].type, type) == 0) return kinds[i].read(reading, model);
  return nxt_refuse(reading, "the model \"%.60s\" is not covered", type);
}
