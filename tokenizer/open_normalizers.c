/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers of tokenizer.json. */
#include "tokenizer/base64.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalize_forms.h"
#include "tokenizer/normalize_steps.h"
#include "tokenizer/open_steps.h"

#include <stdlib.h>

static bool add_form(nxt_reading *reading, unsigned options) {
  nxt_normalizer *step = nxt_add_normalizer(reading->tokenizer);
  step->run = nxt_normalize_form;
  step->options = options;
  return true;
}

static bool add_map(nxt_reading *reading, uint32_t (*map)(uint32_t c)) {
  nxt_normalizer *step = nxt_add_normalizer(reading->tokenizer);
  step->run = nxt_normalize_chars;
  step->map = map;
  return true;
}

static bool read_nfc(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_form(reading, NXT_COMPOSE);
}

static bool read_nfd(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_form(reading, 0);
}

static bool read_nfkc(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_form(reading, NXT_COMPOSE | NXT_COMPATIBILITY);
}

static bool read_nfkd(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_form(reading, NXT_COMPATIBILITY);
}

static bool read_lowercase(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_add_normalizer(reading->tokenizer)->run = nxt_normalize_lowercase;
  return true;
}

static bool read_strip_accents(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_map(reading, nxt_map_no_marks);
}

static bool read_nmt(nxt_reading *reading, const json_t *step) {
  (void)step;
  return add_map(reading, nxt_map_nmt);
}

static bool read_byte_level(nxt_reading *reading, const json_t *step) {
  (void)step;
  nxt_add_normalizer(reading->tokenizer)->run = nxt_normalize_bytes;
  return true;
}

static bool read_bert(nxt_reading *reading, const json_t *step) {
  bool lowercase = nxt_json_flag(step, "lowercase", true);
  if (nxt_json_flag(step, "clean_text", true)) add_map(reading, nxt_map_clean);
  if (nxt_json_flag(step, "handle_chinese_chars", true))
    nxt_add_normalizer(reading->tokenizer)->run = nxt_normalize_chinese;
  if (nxt_json_flag(step, "strip_accents", lowercase)) {
    add_form(reading, 0);
    add_map(reading, nxt_map_no_accents);
  }
  return !lowercase || read_lowercase(reading, step);
}

static bool read_strip(nxt_reading *reading, const json_t *step) {
  nxt_normalizer *strip = nxt_add_normalizer(reading->tokenizer);
  strip->run = nxt_normalize_strip;
  strip->options = (nxt_json_flag(step, "strip_left", true) ? NXT_STRIP_LEFT : 0) |
                   (nxt_json_flag(step, "strip_right", true) ? NXT_STRIP_RIGHT : 0);
  return true;
}

static bool read_replace(nxt_reading *reading, const json_t *step) {
  nxt_normalizer *replace = nxt_add_normalizer(reading->tokenizer);
  replace->run = nxt_normalize_replace;
  replace->content = nxt_json_text(json_object_get(step, "content"));
  return nxt_json_pattern(reading, step, &replace->pattern, &replace->text);
}

static bool read_prepend(nxt_reading *reading, const json_t *step) {
  nxt_normalizer *prepend = nxt_add_normalizer(reading->tokenizer);
  prepend->run = nxt_normalize_prepend;
  prepend->content = nxt_json_text(json_object_get(step, "prepend"));
  return true;
}

static bool read_precompiled(nxt_reading *reading, const json_t *step) {
  const json_t *map = json_object_get(step, "precompiled_charsmap");
  nxt_text bytes = {0};
  bool good = nxt_base64(json_string_value(map), json_string_length(map), &bytes);
  nxt_normalizer *precompiled = nxt_add_normalizer(reading->tokenizer);
  precompiled->run = nxt_normalize_precompiled;
  precompiled->charsmap = good ? nxt_charsmap_open(bytes.items, bytes.n) : NULL;
  free(bytes.items);
  return precompiled->charsmap != NULL || nxt_refuse(reading, "the precompiled_charsmap is broken");
}

bool nxt_read_normalizers(nxt_reading *reading, const json_t *step) {
  static const nxt_step_kind kinds[] = {
      {"NFC", read_nfc},
      {"NFD", read_nfd},
      {"NFKC", read_nfkc},
      {"NFKD", read_nfkd},
      {"Lowercase", read_lowercase},
      {"StripAccents", read_strip_accents},
      {"Strip", read_strip},
      {"Replace", read_replace},
      {"Prepend", read_prepend},
      {"Precompiled", read_precompiled},
      {"Nmt", read_nmt},
      {"BertNormalizer", read_bert},
      {"ByteLevel", read_byte_level},
  };
  static const nxt_step_kinds all = {"normalizer", "normalizers", kinds, sizeof kinds / sizeof *kinds};
  return nxt_read_steps(reading, step, &all);
}
