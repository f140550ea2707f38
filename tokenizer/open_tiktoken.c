/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open_tiktoken.h"

#include "tokenizer/added.h"
#include "tokenizer/base64.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decode.h"
#include "tokenizer/memory.h"
#include "tokenizer/open_models.h"
#include "tokenizer/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Special tokens of which the file says nothing, by the number of its ranks. */
typedef struct unsaid {
  const char *name, *pattern;
  uint32_t n_ranks, first;
  const char *texts[24];
  uint32_t n_texts;
  const char *fill;
  uint32_t fill_first, n_fill;
} unsaid;

#define SPECIAL(...) {__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)
static const unsaid known[] = {
#define TIKTOKEN(name, n_ranks, pattern, first, specials, fill, fill_first, n_fill)                          \
  {#name, pattern, n_ranks, first, specials, fill, fill_first, n_fill},
#include "tokenizer/tiktoken.def"
#undef TIKTOKEN
};

/* A line: the token's characters and its rank. */
typedef struct line {
  const char *token, *end;
  size_t n_chars;
  uint32_t rank;
} line;

static bool take_line(const char *at, const char *end, line *l) {
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  l->end = stop != NULL ? stop + 1 : end;
  if (stop == NULL) stop = end;
  if (stop > at && stop[-1] == '\r') stop--;
  const char *blank = memchr(at, ' ', (size_t)(stop - at));
  if (blank == NULL || stop - blank < 2 || stop - blank > 9) return false;
  l->token = at;
  l->n_chars = (size_t)(blank - at);
  l->rank = 0;
  for (const char *digit = blank + 1; digit < stop; digit++) {
    if (*digit < '0' || *digit > '9') return false;
    l->rank = 10 * l->rank + (uint32_t)(*digit - '0');
  }
  return l->rank <= NXT_MAX_ID;
}

bool nxt_is_tiktoken(const nxt_text *text) {
  nxt_text bytes = {0};
  line l;
  bool is = text->n > 0 && take_line(text->items, text->items + text->n, &l) &&
            nxt_base64(l.token, l.n_chars, &bytes);
  free(bytes.items);
  return is;
}

static bool add_rank(nxt_reading *reading, const char *token, size_t n_chars, uint32_t id) {
  nxt_text bytes = {0};
  bool good = nxt_base64(token, n_chars, &bytes);
  if (good) nxt_vocabulary_add(&reading->tokenizer->vocabulary, bytes.items, bytes.n, id);
  free(bytes.items);
  return good || nxt_refuse(reading, "the token of id %u is not base64", id);
}

/* Words by a name or a pattern; what it does not match is left out, as tiktoken does. */
static bool add_words(nxt_reading *reading, const char *pattern) {
  nxt_split *words = nxt_add_split(reading->tokenizer);
  nx_fault fault = {.text = ""};
  words->run = nxt_split_words;
  words->scanner = nxt_scanner_named(pattern);
  if (words->scanner == NULL) words->scanner = nxt_scanner_find(pattern);
  if (words->scanner != NULL) return true;
  words->run = nxt_split_matches;
  words->find = nxt_find_pattern;
  words->behaviour = NXT_REMOVED;
  words->invert = true;
  words->pattern = nxt_pattern_open(pattern, NXT_RUST, &fault);
  return words->pattern != NULL || nxt_refuse(reading, "%s", fault.text);
}

/* The model, when all ranks are there: tokens in the order of their ids. */
static bool finish_ranks(nxt_reading *reading, const char *pattern) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_bpe *bpe = &tokenizer->bpe;
  for (unsigned byte = 0; byte < 256; byte++) {
    char text = (char)byte;
    bpe->bytes[byte] = nxt_vocabulary_id(&tokenizer->vocabulary, &text, 1);
    if (bpe->bytes[byte] == NXT_NONE) return nxt_refuse(reading, "has no rank for the byte %u", byte);
  }
  uint32_t *ranks = nxt_new(tokenizer->vocabulary.n_ids, sizeof *ranks);
  for (uint32_t id = 0; id < tokenizer->vocabulary.n_ids; id++) ranks[id] = id;
  bool done = nxt_bpe_of_tokens(reading, ranks);
  free(ranks);
  bpe->of_bytes = true;
  bpe->whole = &tokenizer->vocabulary;
  tokenizer->word = nxt_bpe_word;
  tokenizer->caches = true;
  nxt_add_decoder(tokenizer)->run = nxt_decode_utf8;
  return done && add_words(reading, pattern);
}

static void add_special(nxt_tokenizer *tokenizer, const char *text, uint32_t id, bool hidden) {
  nxt_added_put(&tokenizer->added, text, strlen(text),
                (nxt_added){.id = id, .special = true, .hidden = hidden});
}

static void add_unsaid(nxt_tokenizer *tokenizer, const unsaid *what) {
  char text[64];
  for (uint32_t i = 0; i < what->n_texts; i++)
    if (what->texts[i] != NULL) add_special(tokenizer, what->texts[i], what->first + i, false);
  for (uint32_t i = 0; i < what->n_fill; i++) {
    snprintf(text, sizeof text, what->fill, what->fill_first + i);
    add_special(tokenizer, text, what->first + what->n_texts + i, false);
  }
  tokenizer->roles[NXT_EOS] = nxt_vocabulary_id(&tokenizer->added.names, "<|endoftext|>", 13);
}

bool nxt_open_tiktoken(nxt_reading *reading, const nxt_text *text) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  line l;
  for (const char *at = text->items, *end = at + text->n; at < end; at = l.end) {
    if (*at == '\n' || *at == '\r') {
      l.end = at + 1;
      continue;
    }
    if (!take_line(at, end, &l)) return nxt_refuse(reading, "the line after id %d is no token and its rank",
                                                   (int)tokenizer->vocabulary.n_ids - 1);
    if (!add_rank(reading, l.token, l.n_chars, l.rank)) return false;
  }
  const nxt_unsaid *said = reading->unsaid;
  if (said != NULL && said->pattern != NULL) {
    for (uint32_t i = 0, n = tokenizer->vocabulary.n_ids; said->special != NULL && said->special[i] != NULL;
         i++)
      add_special(tokenizer, said->special[i], n + i, false);
    return finish_ranks(reading, said->pattern);
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].n_ranks == tokenizer->vocabulary.n_entries) {
      add_unsaid(tokenizer, &known[i]);
      return finish_ranks(reading, known[i].pattern);
    }
  return nxt_refuse(reading,
                    "has %u ranks, as no vocabulary of tiktoken that is known: its pattern and special "
                    "tokens stand in no file; give its tokenizer.json",
                    tokenizer->vocabulary.n_entries);
}

static void take_roles(nxt_tokenizer *tokenizer) {
  static const struct {
    const char *text;
    nxt_role role;
  } roles[] = {{"<s>", NXT_BOS}, {"</s>", NXT_EOS}, {"<pad>", NXT_PAD}, {"<unk>", NXT_UNK}};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    tokenizer->roles[roles[i].role] =
        nxt_vocabulary_id(&tokenizer->added.names, roles[i].text, strlen(roles[i].text));
}

/* Special tokens of versions that do not list them, then <SPECIAL_n>. */
static const char *const tekken_special[] = {"<unk>",
                                             "<s>",
                                             "</s>",
                                             "[INST]",
                                             "[/INST]",
                                             "[AVAILABLE_TOOLS]",
                                             "[/AVAILABLE_TOOLS]",
                                             "[TOOL_RESULTS]",
                                             "[/TOOL_RESULTS]",
                                             "[TOOL_CALLS]",
                                             "[IMG]",
                                             "<pad>",
                                             "[IMG_BREAK]",
                                             "[IMG_END]",
                                             "[PREFIX]",
                                             "[MIDDLE]",
                                             "[SUFFIX]",
                                             "[SYSTEM_PROMPT]",
                                             "[/SYSTEM_PROMPT]",
                                             "[TOOL_CONTENT]"};

static void add_tekken_special(nxt_tokenizer *tokenizer, const json_t *list, uint32_t n_special) {
  const uint32_t n_known = sizeof tekken_special / sizeof *tekken_special;
  for (uint32_t id = 0; id < n_special; id++) {
    char text[32];
    const char *said = nxt_json_string(json_array_get(list, id), "token_str", NULL);
    snprintf(text, sizeof text, "<SPECIAL_%u>", id);
    if (said == NULL && list == NULL && id < n_known) said = tekken_special[id];
    add_special(tokenizer, said != NULL ? said : text, id, true);
  }
  take_roles(tokenizer);
}

bool nxt_open_tekken(nxt_reading *reading, const json_t *root) {
  const json_t *config = json_object_get(root, "config"), *vocab = json_object_get(root, "vocab"), *token;
  const char *pattern = nxt_json_string(config, "pattern", "");
  json_int_t n_ids = json_integer_value(json_object_get(config, "default_vocab_size"));
  json_int_t n_special = json_integer_value(json_object_get(config, "default_num_special_tokens"));
  size_t i;
  if (n_special < 0 || n_ids < n_special || n_ids > NXT_MAX_ID)
    return nxt_refuse(
        reading,
        "config has default_num_special_tokens %lld of default_vocab_size %lld: these are to be "
        "0 to %u",
        (long long)n_special, (long long)n_ids, NXT_MAX_ID);
  add_tekken_special(reading->tokenizer, json_object_get(root, "special_tokens"), (uint32_t)n_special);
  json_array_foreach(vocab, i, token) {
    const json_t *bytes = json_object_get(token, "token_bytes"), *rank = json_object_get(token, "rank");
    if (!json_is_string(bytes) || !json_is_integer(rank) || json_integer_value(rank) < 0)
      return nxt_refuse(reading, "the token %zu has no bytes or no rank", i);
    if (json_integer_value(rank) >= n_ids - n_special) continue;
    uint32_t id = (uint32_t)(json_integer_value(rank) + n_special);
    if (!add_rank(reading, json_string_value(bytes), json_string_length(bytes), id)) return false;
  }
  return finish_ranks(reading, pattern);
}

bool nxt_open_rank_list(nxt_reading *reading, const json_t *list) {
  static const char *const megatron_special[] = {"<unk>", "<s>",   "</s>",  "<mask>",
                                                 "<pad>", "<cls>", "<sep>", NULL};
  nxt_unsaid said = reading->unsaid != NULL ? *reading->unsaid : (nxt_unsaid){0};
  if (said.pattern == NULL) said.pattern = "v2";
  if (said.special == NULL) said.special = megatron_special;
  if (said.n_special == 0) said.n_special = 1000;
  if (said.n_ids == 0) said.n_ids = 1 << 17;
  if (said.n_ids > NXT_MAX_ID || said.n_special > said.n_ids)
    return nxt_refuse(reading,
                      "of %u token ids %u are kept for special tokens: say how many are "
                      "(run.tokenizer_special_ids, --special-ids)",
                      said.n_ids, said.n_special);
  const char *const *special = said.special;
  for (uint32_t id = 0; id < said.n_special; id++) {
    char text[32];
    snprintf(text, sizeof text, "<SPECIAL_%u>", id);
    add_special(reading->tokenizer, *special != NULL ? *special++ : text, id, false);
  }
  take_roles(reading->tokenizer);
  const json_t *token;
  size_t rank;
  json_array_foreach(list, rank, token) {
    const json_t *bytes = json_object_get(token, "token_bytes");
    if (rank >= said.n_ids - said.n_special) break;
    if (!json_is_string(bytes) || json_integer_value(json_object_get(token, "rank")) != (json_int_t)rank)
      return nxt_refuse(reading, "the token %zu has no bytes, or another rank", rank);
    if (!add_rank(reading, json_string_value(bytes), json_string_length(bytes),
                  said.n_special + (uint32_t)rank))
      return false;
  }
  return finish_ranks(reading, said.pattern);
}
