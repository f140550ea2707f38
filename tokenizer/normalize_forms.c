/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize_forms.h"

#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { FEW = 32 };

static int32_t *reserve_chars(nxt_encoder *encoder, size_t n) {
  if (encoder->char_room < n) {
    encoder->char_room = 2 * n;
    encoder->chars = nxt_resize(encoder->chars, encoder->char_room, sizeof *encoder->chars);
  }
  return encoder->chars;
}

/* The order among marks; of characters that are younger than the forms none. */
static uint32_t class_of(int32_t c) {
  return nxt_classes[c] & NXT_COMPATIBLE ? (uint32_t)utf8proc_get_property(c)->combining_class : 0;
}

static void sort_few(int32_t *marks, size_t n) {
  for (size_t i = 1; i < n; i++) {
    int32_t mark = marks[i];
    size_t at = i;
    for (; at > 0 && class_of(marks[at - 1]) > class_of(mark); at--) marks[at] = marks[at - 1];
    marks[at] = mark;
  }
}

/* A run of marks is as long as whoever wrote the text wants: no time that grows with its square. */
static void sort_many(int32_t *marks, size_t n) {
  int32_t *sorted = nxt_new(n, sizeof *sorted);
  size_t begins[257] = {0};
  for (size_t i = 0; i < n; i++) begins[class_of(marks[i]) + 1]++;
  for (size_t i = 0; i < 256; i++) begins[i + 1] += begins[i];
  for (size_t i = 0; i < n; i++) sorted[begins[class_of(marks[i])]++] = marks[i];
  memcpy(marks, sorted, n * sizeof *marks);
  free(sorted);
}

/* Marks that follow one another stand in the order of their classes, equal ones as they came. */
static void order_marks(int32_t *chars, size_t n) {
  for (size_t begin = 0, end; begin < n; begin = end + 1) {
    for (end = begin; end < n && class_of(chars[end]) != 0;) end++;
    if (end - begin > 1) (end - begin > FEW ? sort_many : sort_few)(chars + begin, end - begin);
  }
}

static void add_form(nxt_encoder *encoder, const char *at, const char *end, unsigned options, nxt_text *to) {
  enum { LONGEST = 18 }; /* of a character's decomposition */
  utf8proc_option_t wanted = UTF8PROC_STABLE | ((options & NXT_COMPATIBILITY) ? UTF8PROC_COMPAT : 0);
  int32_t *chars = reserve_chars(encoder, LONGEST * (size_t)(end - at));
  size_t n = 0;
  for (int last = 0; at < end;) {
    int32_t c = (int32_t)nxt_next_char(&at);
    if (nxt_classes[c] & NXT_COMPATIBLE)
      n += (size_t)utf8proc_decompose_char(c, chars + n, LONGEST, wanted | UTF8PROC_DECOMPOSE, &last);
    else
      chars[n++] = c;
  }
  order_marks(chars, n);
  if (options & NXT_COMPOSE)
    n = (size_t)utf8proc_normalize_utf32(chars, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  for (size_t i = 0; i < n; i++) nxt_text_add_char(to, (uint32_t)chars[i]);
}

bool nxt_normalize_form(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                        nxt_text *to) {
  uint16_t changing = (step->options & NXT_COMPATIBILITY) ? NXT_COMPATIBLE : NXT_CANONICAL;
  const char *end = from->items + from->n, *done = from->items;
  for (const char *at = done, *last = done; at < end; last = at, at += nxt_char_bytes(*at)) {
    if ((uint8_t)*at < 0x80 || (nxt_class_at(at) & changing) == 0) continue;
    const char *stop = at;
    while (stop < end && (nxt_class_at(stop) & changing) != 0) stop += nxt_char_bytes(*stop);
    at = last; /* marks may join with what stands before them */
    nxt_text_add(to, done, (size_t)(at - done));
    add_form(encoder, at, stop, step->options, to);
    done = at = stop;
    if (at == end) break;
  }
  nxt_text_add(to, done, (size_t)(end - done));
  return true;
}
