/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

#include <string.h>

int nxt_find_pattern(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     size_t from, size_t match[2]) {
  return nxt_pattern_find(step->pattern, encoder->matcher, text, n_bytes, from, match[1], match,
                          encoder->fault);
}

int nxt_find_text(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                  size_t match[2]) {
  (void)encoder;
  const char *found = memmem(text + from, n_bytes - from, step->text.items, step->text.n);
  if (found == NULL) return 0;
  match[0] = (size_t)(found - text);
  match[1] = match[0] + step->text.n;
  return 1;
}

/* The first character of `classes`, or of the signs of ASCII that Unicode counts as symbols. */
static int find_char(const char *text, size_t n_bytes, size_t from, uint16_t classes, uint16_t ascii_classes,
                     size_t match[2]) {
  for (const char *at = text + from, *end = text + n_bytes; at < end;) {
    const char *begin = at;
    uint32_t c = nxt_next_char(&at);
    if ((nxt_classes[c] & (c < 0x80 ? ascii_classes : classes)) == 0) continue;
    match[0] = (size_t)(begin - text);
    match[1] = (size_t)(at - text);
    return 1;
  }
  return 0;
}

int nxt_find_class(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                   size_t match[2]) {
  (void)encoder;
  return find_char(text, n_bytes, from, step->classes, step->classes, match);
}

int nxt_find_punctuation(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                         size_t from, size_t match[2]) {
  (void)encoder, (void)step;
  return find_char(text, n_bytes, from, NXT_OLD_PUNCTUATION, NXT_PUNCTUATION | NXT_SYMBOL, match);
}

int nxt_find_word(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
                  size_t match[2]) {
  (void)encoder, (void)step;
  const char *at = text + from, *end = text + n_bytes;
  while (at < end && (nxt_class_at(at) & NXT_SPACE) != 0) at += nxt_char_bytes(*at);
  if (at == end) return 0;
  match[0] = (size_t)(at - text);
  uint16_t of = NXT_WORD | NXT_SPACE, here = nxt_class_at(at) & of;
  while (at < end && (nxt_class_at(at) & of) == here) at += nxt_char_bytes(*at);
  match[1] = (size_t)(at - text);
  return 1;
}

int nxt_find_scanned(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     size_t from, size_t match[2]) {
  (void)encoder;
  if (from == n_bytes) return 0;
  match[0] = from;
  match[1] = (size_t)(step->scanner(text + from, text + n_bytes) - text);
  return 1;
}
