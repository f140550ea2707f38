/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of tokenizer.json: tables of what its types are made of. */
#include "tokenizer/decode.h"
#include "tokenizer/open.h"
#include "tokenizer/memory.h"
#include "tokenizer/normalize_steps.h"
#include "tokenizer/open_steps.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <string.h>

/* Of all lists together. Splits call each other, and some steps make texts longer. */
enum { MOST_STEPS = 100 };

bool nxt_read_steps(nxt_reading *reading, const json_t *step, const nxt_step_kinds *kinds) {
  if (step == NULL || json_is_null(step)) return true;
  const char *type = nxt_json_string(step, "type", "");
  if (strcmp(type, "Sequence") == 0) {
    const json_t *inner = json_object_get(step, kinds->sequence), *each;
    size_t i;
    json_array_foreach(inner, i, each) if (!nxt_read_steps(reading, each, kinds)) return false;
    return true;
  }
  if (++reading->n_steps > MOST_STEPS) return nxt_refuse(reading, "has more than %d steps", MOST_STEPS);
  for (size_t i = 0; i < kinds->n; i++)
    if (strcmp(kinds->items[i].type, type) == 0) return kinds->items[i].read(reading, step);
  return nxt_refuse(reading, "the %s \"%.60s\" is not covered", kinds->what, type);
}

bool nxt_json_pattern(nxt_reading *reading, const json_t *step, nxt_pattern **pattern, nxt_text *text) {
  const json_t *given = json_object_get(step, "pattern"), *plain = json_object_get(given, "String");
  if (json_is_string(given)) plain = given;
  *text = nxt_json_text(plain != NULL ? plain : json_object_get(given, "Regex"));
  if (json_is_string(plain) && text->n > 0) return true;
  if (text->n == 0 || memchr(text->items, '\0', text->n) != NULL)
    return nxt_refuse(reading, "a %s has no pattern that is covered", nxt_json_string(step, "type", "step"));
  nxt_text_add(text, "", 1);
  nx_fault fault = {.text = ""};
  *pattern = nxt_pattern_open(text->items, NXT_ONIGURUMA, &fault);
  text->n--;
  return *pattern != NULL || nxt_refuse(reading, "%s", fault.text);
}

static bool read_byte_level(nxt_reading *reading, const json_t *step) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  if (nxt_json_flag(step, "add_prefix_space", true)) nxt_add_split(tokenizer)->run = nxt_split_prefix;
  if (nxt_json_flag(step, "use_regex", true)) {
    nxt_split *words = nxt_add_split(tokenizer);
    words->run = nxt_split_words;
    words->scanner = nxt_scan_gpt2;
  }
  nxt_add_split(tokenizer)->run = nxt_split_bytes;
  return true;
}

static const struct {
  const char *name;
  nxt_behaviour behaviour;
} behaviours[] = {{"Removed", NXT_REMOVED},
                  {"Isolated", NXT_ISOLATED},
                  {"MergedWithPrevious", NXT_MERGED_WITH_PREVIOUS},
                  {"MergedWithNext", NXT_MERGED_WITH_NEXT},
                  {"Contiguous", NXT_CONTIGUOUS}};

static bool take_behaviour(nxt_reading *reading, const json_t *step, nxt_split *split) {
  const char *name = nxt_json_string(step, "behavior", "Isolated");
  for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++)
    if (strcmp(behaviours[i].name, name) == 0) {
      split->behaviour = behaviours[i].behaviour;
      return true;
    }
  return nxt_refuse(reading, "the behaviour \"%.60s\" is not covered", name);
}

static bool read_split(nxt_reading *reading, const json_t *step) {
  nxt_split *split = nxt_add_split(reading->tokenizer);
  const char *regex = json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
  split->invert = nxt_json_flag(step, "invert", false);
  if (!take_behaviour(reading, step, split)) return false;
  split->scanner = regex != NULL ? nxt_scanner_find(regex) : NULL;
  /* Every place begins a word: what is not a match is nothing, and removing what is not one removes nothing.
   */
  bool all = split->behaviour == NXT_ISOLATED || (split->behaviour == NXT_REMOVED && split->invert);
  split->run = split->scanner != NULL && all ? nxt_split_words : nxt_split_matches;
  split->find = nxt_find_scanned;
  if (split->scanner != NULL) return true;
  if (!nxt_json_pattern(reading, step, &split->pattern, &split->text)) return false;
  split->find = split->pattern != NULL ? nxt_find_pattern : nxt_find_text;
  return true;
}

static nxt_split *add_finder(nxt_reading *reading, nxt_behaviour behaviour, uint16_t classes) {
  nxt_split *split = nxt_add_split(reading->tokenizer);
  split->run = nxt_split_matches;
  split->find = nxt_find_class;
  split->behaviour = behaviour;
  split->classes = classes;
  return split;
}

static bool read_whitespace(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_split *split = add_finder(reading, NXT_REMOVED, 0);
  split->find = nxt_find_word;
  split->invert = true;
  return true;
}

static bool read_whitespace_split(nxt_reading *reading, const json_t *step) {
  (void)step;
  add_finder(reading, NXT_REMOVED, NXT_SPACE);
  return true;
}

static bool read_punctuation(nxt_reading *reading, const json_t *step) {
  nxt_split *split = add_finder(reading, NXT_ISOLATED, 0);
  split->find = nxt_find_punctuation;
  return take_behaviour(reading, step, split);
}

static bool read_bert(nxt_reading *reading, const json_t *step) {
  (void)step;
  add_finder(reading, NXT_REMOVED, NXT_SPACE);
  add_finder(reading, NXT_ISOLATED, 0)->find = nxt_find_punctuation;
  return true;
}

static bool read_digits(nxt_reading *reading, const json_t *step) {
  bool each = nxt_json_flag(step, "individual_digits", false);
  add_finder(reading, each ? NXT_ISOLATED : NXT_CONTIGUOUS, NXT_NUMBER);
  return true;
}

static bool take_char(nxt_reading *reading, const json_t *step, const char *key, nxt_text *text) {
  *text = nxt_json_text(json_object_get(step, key));
  if (text->n > 0 && nxt_char_bytes(text->items[0]) == text->n) return true;
  return nxt_refuse(reading, "the %s of a %s is no character", key, nxt_json_string(step, "type", "step"));
}

static bool read_delimiter(nxt_reading *reading, const json_t *step) {
  nxt_split *split = add_finder(reading, NXT_REMOVED, 0);
  split->find = nxt_find_text;
  return take_char(reading, step, "delimiter", &split->text);
}

static bool read_fixed_length(nxt_reading *reading, const json_t *step) {
  const json_t *length = json_object_get(step, "length");
  json_int_t n = json_is_integer(length) ? json_integer_value(length) : 5;
  if (n < 1 || n > UINT32_MAX)
    return nxt_refuse(reading, "a FixedLength of %lld is not covered", (long long)n);
  nxt_split *split = nxt_add_split(reading->tokenizer);
  split->run = nxt_split_length;
  split->character = (uint32_t)n;
  return true;
}

/* Older files say add_prefix_space, newer ones prepend_scheme. */
static bool take_scheme(nxt_reading *reading, const json_t *step, bool *always, bool *first) {
  const char *scheme = nxt_json_string(step, "prepend_scheme", "always");
  *always = strcmp(scheme, "always") == 0;
  *first = strcmp(scheme, "first") == 0;
  if (!*always && !*first && strcmp(scheme, "never") != 0)
    return nxt_refuse(reading, "the prepend_scheme \"%.60s\" is not covered", scheme);
  if (!nxt_json_flag(step, "add_prefix_space", true)) *always = *first = false;
  return true;
}

/* A text that begins a word. */
static void add_word_begins(nxt_tokenizer *tokenizer, nxt_text begin) {
  nxt_split *words = nxt_add_split(tokenizer);
  words->run = nxt_split_matches;
  words->find = nxt_find_text;
  words->behaviour = NXT_MERGED_WITH_NEXT;
  words->text = begin;
}

/* Whether the first character of a text may stand behind another that was put before it: then two words begin
 * where the text does. */
static bool puts_before(const nxt_tokenizer *tokenizer) {
  for (uint32_t i = 0; i < tokenizer->n_normalizers; i++)
    if (tokenizer->normalizers[i].run == nxt_normalize_prepend ||
        tokenizer->normalizers[i].run == nxt_normalize_chinese)
      return true;
  return false;
}

static bool read_metaspace(nxt_reading *reading, const json_t *step) {
  bool later = reading->tokenizer->n_splits > 0;
  nxt_split *split = nxt_add_split(reading->tokenizer);
  split->run = nxt_split_metaspace;
  if (!take_char(reading, step, "replacement", &split->text)) return false;
  if (!take_scheme(reading, step, &split->prepend_always, &split->prepend_first)) return false;
  if (later && split->prepend_first && puts_before(reading->tokenizer))
    return nxt_refuse(
        reading, "a Metaspace with prepend_scheme first behind another pre_tokenizer is not covered where a "
                 "normalizer puts something before the text");
  if (nxt_json_flag(step, "split", true))
    add_word_begins(reading->tokenizer, nxt_json_text(json_object_get(step, "replacement")));
  return true;
}

bool nxt_read_splits(nxt_reading *reading, const json_t *step) {
  static const nxt_step_kind kinds[] = {
      {"ByteLevel", read_byte_level},
      {"Split", read_split},
      {"Metaspace", read_metaspace},
      {"Whitespace", read_whitespace},
      {"WhitespaceSplit", read_whitespace_split},
      {"Punctuation", read_punctuation},
      {"BertPreTokenizer", read_bert},
      {"Digits", read_digits},
      {"CharDelimiterSplit", read_delimiter},
      {"FixedLength", read_fixed_length},
  };
  static const nxt_step_kinds all = {"pre_tokenizer", "pretokenizers", kinds, sizeof kinds / sizeof *kinds};
  return nxt_read_steps(reading, step, &all);
}

static bool read_decode_bytes(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_add_decoder(reading->tokenizer)->run = nxt_decode_bytes;
  return true;
}

static bool read_decode_fallback(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_add_decoder(reading->tokenizer)->run = nxt_decode_fallback;
  return true;
}

static bool read_decode_fuse(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_add_decoder(reading->tokenizer)->run = nxt_decode_fuse;
  return true;
}

static bool read_decode_metaspace(nxt_reading *reading, const json_t *step) {
  nxt_decoder *decoder = nxt_add_decoder(reading->tokenizer);
  bool always, first;
  decoder->run = nxt_decode_metaspace;
  if (!take_char(reading, step, "replacement", &decoder->text)) return false;
  if (!take_scheme(reading, step, &always, &first)) return false;
  decoder->flag = always || first;
  return true;
}

static bool read_decode_wordpiece(nxt_reading *reading, const json_t *step) {
  nxt_decoder *decoder = nxt_add_decoder(reading->tokenizer);
  decoder->run = nxt_decode_wordpiece;
  decoder->text = nxt_json_text(json_object_get(step, "prefix"));
  decoder->flag = nxt_json_flag(step, "cleanup", true);
  return true;
}

static bool read_decode_suffix(nxt_reading *reading, const json_t *step) {
  nxt_decoder *decoder = nxt_add_decoder(reading->tokenizer);
  decoder->run = nxt_decode_suffix;
  decoder->text = nxt_json_text(json_object_get(step, "suffix"));
  return true;
}

static bool take_count(nxt_reading *reading, const json_t *step, const char *key, uint32_t *count) {
  json_int_t n = json_integer_value(json_object_get(step, key));
  if (n < 0 || n > UINT32_MAX) return nxt_refuse(reading, "a Strip has \"%s\" %lld", key, (long long)n);
  *count = (uint32_t)n;
  return true;
}

static bool read_decode_strip(nxt_reading *reading, const json_t *step) {
  nxt_decoder *decoder = nxt_add_decoder(reading->tokenizer);
  decoder->run = nxt_decode_strip;
  return take_char(reading, step, "content", &decoder->text) &&
         take_count(reading, step, "start", &decoder->start) &&
         take_count(reading, step, "stop", &decoder->stop);
}

static bool read_decode_replace(nxt_reading *reading, const json_t *step) {
  nxt_decoder *decoder = nxt_add_decoder(reading->tokenizer);
  decoder->run = nxt_decode_replace;
  decoder->content = nxt_json_text(json_object_get(step, "content"));
  return nxt_json_pattern(reading, step, &decoder->pattern, &decoder->text);
}

bool nxt_read_decoders(nxt_reading *reading, const json_t *step) {
  static const nxt_step_kind kinds[] = {
      {"ByteLevel", read_decode_bytes},     {"ByteFallback", read_decode_fallback},
      {"Fuse", read_decode_fuse},           {"Metaspace", read_decode_metaspace},
      {"WordPiece", read_decode_wordpiece}, {"BPEDecoder", read_decode_suffix},
      {"Strip", read_decode_strip},         {"Replace", read_decode_replace},
  };
  static const nxt_step_kinds all = {"decoder", "decoders", kinds, sizeof kinds / sizeof *kinds};
  reading->tokenizer->joined_by_blanks = step == NULL || json_is_null(step);
  return nxt_read_steps(reading, step, &all);
}
