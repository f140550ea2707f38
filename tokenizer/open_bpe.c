/* SPDX-License-Identifier: Apache-2.0 */
/* Models of pairs, from the several ways in which files say what merges. */
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decode.h"
#include "tokenizer/memory.h"
#include "tokenizer/files.h"
#include "tokenizer/normalize_sentencepiece.h"
#include "tokenizer/open_models.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  *m = (merge){json_string_value(left), json_string_value(right), json_string_length(left),
               json_string_length(right)};
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
                      (int)(m->n_left > 60 ? 60 : m->n_left), m->left,
                      (int)(m->n_right > 60 ? 60 : m->n_right), m->right);
  nxt_bpe_add(&tokenizer->bpe, left, right, rank, id);
  return true;
}

/* Pairs of tokens, the first to merge first; the vocabulary is there. */
static bool read_merges(nxt_reading *reading, const json_t *merges) {
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
  for (uint32_t i = 0; bpe->whole != NULL && i < tokenizer->vocabulary.n_entries; i++) {
    const nxt_entry *entry = &tokenizer->vocabulary.entries[i];
    bytes.n = 0;
    if (nxt_bytes_of(tokenizer->vocabulary.texts.items + entry->begin, entry->n_bytes, &bytes))
      nxt_vocabulary_add(&bpe->by_bytes, bytes.items, bytes.n, entry->id);
  }
  if (bpe->whole != NULL) bpe->whole = &bpe->by_bytes;
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

bool nxt_read_bpe(nxt_reading *reading, const json_t *model) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_bpe *bpe = &tokenizer->bpe;
  const json_t *dropout = json_object_get(model, "dropout");
  if (json_is_number(dropout) && json_number_value(dropout) != 0)
    return nxt_refuse(reading, "dropout %g of the model's merges is not covered: its ids are drawn by chance",
                      json_number_value(dropout));
  bpe->prefix = nxt_json_text(json_object_get(model, "continuing_subword_prefix"));
  bpe->suffix = nxt_json_text(json_object_get(model, "end_of_word_suffix"));
  bpe->fuse_unknown = nxt_json_flag(model, "fuse_unk", false);
  if (nxt_json_flag(model, "ignore_merges", false)) bpe->whole = &tokenizer->vocabulary;
  bpe->has_fallback = nxt_json_flag(model, "byte_fallback", false);
  tokenizer->word = nxt_bpe_word;
  tokenizer->caches = true;
  if (!nxt_read_vocab(reading, json_object_get(model, "vocab")) || !nxt_read_unknown(reading, model))
    return false;
  if (bpe->has_fallback) nxt_fallback_ids(&tokenizer->vocabulary, bpe->bytes);
  return read_merges(reading, json_object_get(model, "merges"));
}

/* A token longer than any that was ever trained would take time that grows with its square. */
enum { LONGEST_TOKEN = 1024 };

/* Adds the pairs of a token, or only counts them. */
static size_t cut_token(nxt_tokenizer *tokenizer, const nxt_entry *entry, const uint32_t *ranks, bool adds) {
  const nxt_vocabulary *vocabulary = &tokenizer->vocabulary;
  const char *text = vocabulary->texts.items + entry->begin;
  size_t n = 0;
  for (size_t i = 1; i < entry->n_bytes; i++) {
    uint32_t left = nxt_vocabulary_id(vocabulary, text, i);
    if (left == NXT_NONE || ranks[left] == NXT_NONE) continue;
    uint32_t right = nxt_vocabulary_id(vocabulary, text + i, entry->n_bytes - i);
    if (right == NXT_NONE || ranks[right] == NXT_NONE) continue;
    if (adds) nxt_bpe_add(&tokenizer->bpe, left, right, ranks[entry->id], entry->id);
    n++;
  }
  return n;
}

bool nxt_bpe_of_tokens(nxt_reading *reading, const uint32_t *ranks) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  const nxt_vocabulary *vocabulary = &tokenizer->vocabulary;
  size_t n = 0;
  for (int adds = 0; adds < 2; adds++) {
    for (uint32_t i = 0; i < vocabulary->n_entries; i++) {
      const nxt_entry *entry = &vocabulary->entries[i];
      if (ranks[entry->id] == NXT_NONE) continue;
      if (entry->n_bytes > LONGEST_TOKEN)
        return nxt_refuse(reading, "the token %u has %u bytes; at most %d are covered", entry->id,
                          entry->n_bytes, LONGEST_TOKEN);
      n += cut_token(tokenizer, entry, ranks, adds);
    }
    if (!adds) nxt_bpe_begin(&tokenizer->bpe, n);
  }
  return true;
}

/* No token has the blank's sign behind another character: no pair merges there, and a blank begins a word. */
static bool begins_words(const nxt_vocabulary *vocabulary, const char *blank, size_t n_blank) {
  for (uint32_t i = 0; i < vocabulary->n_entries; i++) {
    const nxt_entry *entry = &vocabulary->entries[i];
    const char *text = vocabulary->texts.items + entry->begin, *end = text + entry->n_bytes, *at = text;
    while (end - at >= (ptrdiff_t)n_blank && memcmp(at, blank, n_blank) == 0) at += n_blank;
    if (memmem(at, (size_t)(end - at), blank, n_blank) != NULL) return false;
  }
  return true;
}

void nxt_add_blank_split(nxt_tokenizer *tokenizer) {
  const nxt_bpe *bpe = &tokenizer->bpe;
  size_t n_blank = strlen(NXT_BLANK);
  if (tokenizer->word != nxt_bpe_word || bpe->of_bytes || bpe->prefix.n > 0 || bpe->suffix.n > 0) return;
  if (nxt_vocabulary_id(&tokenizer->vocabulary, NXT_BLANK, n_blank) == NXT_NONE) return;
  if (!begins_words(&tokenizer->vocabulary, NXT_BLANK, n_blank)) return;
  nxt_split *split = nxt_add_split(tokenizer);
  split->run = nxt_split_before;
  split->text = nxt_text_of(NXT_BLANK, n_blank);
}

static bool read_merge_lines(nxt_reading *reading, const nxt_text *text) {
  nxt_text joined = {0};
  uint32_t rank = 0;
  bool done = true;
  size_t n_lines = 0;
  for (size_t i = 0; i < text->n; i++) n_lines += text->items[i] == '\n';
  nxt_bpe_begin(&reading->tokenizer->bpe, n_lines + 1);
  for (const char *at = text->items, *end = at + text->n, *stop; done && at < end; at = stop + 1) {
    merge m;
    stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    size_t n = (size_t)(stop - at) - (stop > at && stop[-1] == '\r');
    if (n == 0 || (n >= 8 && memcmp(at, "#version", 8) == 0)) continue;
    done = cut_merge(at, n, &m) ? add_merge(reading, &m, rank++, &joined)
                                : nxt_refuse(reading, "the merge %u is no pair of tokens", rank);
  }
  free(joined.items);
  return done;
}

/* The token that GPT-2's own program takes out of texts. */
static bool add_end_of_text(nxt_tokenizer *tokenizer) {
  static const char text[] = "<|endoftext|>";
  uint32_t id = nxt_vocabulary_id(&tokenizer->vocabulary, text, strlen(text));
  if (id == NXT_NONE) return true;
  nxt_added_put(&tokenizer->added, text, strlen(text), (nxt_added){.id = id, .special = true});
  tokenizer->roles[NXT_BOS] = tokenizer->roles[NXT_EOS] = id;
  return true;
}

bool nxt_open_vocab_json(nxt_reading *reading, const json_t *vocab) {
  char path[4096];
  nxt_merges_of(reading->path, reading->unsaid, path, sizeof path);
  nxt_reading beside = {.tokenizer = reading->tokenizer, .path = path, .fault = reading->fault};
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_text text = {0};
  tokenizer->word = nxt_bpe_word;
  tokenizer->caches = true;
  bool done =
      nxt_read_vocab(reading, vocab) && nxt_read_file(&beside, &text) && read_merge_lines(&beside, &text);
  free(text.items);
  if (!done) return false;
  nxt_split *words = nxt_add_split(tokenizer);
  words->run = nxt_split_words;
  words->scanner = nxt_scan_gpt2;
  nxt_add_split(tokenizer)->run = nxt_split_bytes;
  nxt_add_decoder(tokenizer)->run = nxt_decode_bytes;
  nxt_bpe_of_bytes(tokenizer);
  reading->adds_tokens = true;
  return add_end_of_text(tokenizer);
}
