/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize_steps.h"

#include "tokenizer/bpe.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>
#include <utf8proc.h>

bool nxt_normalize_chars(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to) {
  for (const char *at = from->items, *end = at + from->n; at < end;) {
    uint32_t c = step->map(nxt_next_char(&at));
    if (c != NXT_NONE) nxt_text_add_char(to, c);
    else if (to->n == 0) encoder->start_removed = true;
  }
  return true;
}

uint32_t nxt_map_clean(uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return ' ';
  if (c == 0 || c == NXT_REPLACEMENT || (nxt_classes[c] & NXT_CONTROL)) return NXT_NONE;
  return nxt_classes[c] & NXT_SPACE ? ' ' : c;
}

uint32_t nxt_map_nmt(uint32_t c) {
  if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f)
    return NXT_NONE;
  if (c == 9 || c == 0xa || c == 0xc || c == 0xd || (c >= 0x200b && c <= 0x200f)) return ' ';
  bool blank =
      c == 0x1680 || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == NXT_REPLACEMENT;
  return blank ? ' ' : c;
}

uint32_t nxt_map_no_marks(uint32_t c) {
  return nxt_classes[c] & NXT_OLD_MARK ? NXT_NONE : c;
}

uint32_t nxt_map_no_accents(uint32_t c) {
  return nxt_classes[c] & NXT_OLD_NONSPACING ? NXT_NONE : c;
}

bool nxt_normalize_lowercase(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                             nxt_text *to) {
  enum { DOTTED_I = 0x130, DOT_ABOVE = 0x307 }; /* the one letter that becomes two */
  (void)encoder, (void)step;
  for (const char *at = from->items, *end = at + from->n; at < end;) {
    uint32_t c = nxt_next_char(&at);
    nxt_text_add_char(to, c == DOTTED_I ? 'i' : nxt_lower_char(c));
    if (c == DOTTED_I) nxt_text_add_char(to, DOT_ABOVE);
  }
  return true;
}

static bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

bool nxt_normalize_chinese(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to) {
  (void)encoder, (void)step;
  for (const char *at = from->items, *end = at + from->n; at < end;) {
    uint32_t c = nxt_next_char(&at);
    if (is_chinese(c)) nxt_text_add(to, " ", 1);
    nxt_text_add_char(to, c);
    if (is_chinese(c)) nxt_text_add(to, " ", 1);
  }
  return true;
}

bool nxt_normalize_strip(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to) {
  const char *at = from->items, *end = at + from->n;
  while ((step->options & NXT_STRIP_LEFT) && at < end && (nxt_class_at(at) & NXT_SPACE))
    at += nxt_char_bytes(*at);
  if (at > from->items) encoder->start_removed = true;
  while ((step->options & NXT_STRIP_RIGHT) && end > at) {
    const char *before = end;
    if ((nxt_classes[nxt_last_char(&before)] & NXT_SPACE) == 0) break;
    end = before;
  }
  nxt_text_add(to, at, (size_t)(end - at));
  return true;
}

static int find_next(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *text, size_t from,
                     size_t match[2]) {
  if (step->pattern != NULL)
    return nxt_pattern_find(step->pattern, encoder->matcher, text->items, text->n, from, match[1], match,
                            encoder->fault);
  const char *found = memmem(text->items + from, text->n - from, step->text.items, step->text.n);
  if (found == NULL) return 0;
  match[0] = (size_t)(found - text->items);
  match[1] = match[0] + step->text.n;
  return 1;
}

bool nxt_normalize_replace(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to) {
  size_t done = 0, match[2] = {0, SIZE_MAX};
  int found = 0;
  while (to->n <= encoder->most_form && (found = find_next(encoder, step, from, done, match)) == 1) {
    bool more = match[0] == 0 && match[1] > nxt_char_bytes(*from->items); /* than the first character */
    nxt_text_add(to, from->items + done, match[0] - done);
    nxt_text_add(to, step->content.items, step->content.n);
    done = match[1];
    if (more || (to->n == 0 && done > 0)) encoder->start_removed = true;
  }
  nxt_text_add(to, from->items + done, from->n - done);
  return found >= 0;
}

bool nxt_normalize_prepend(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                           nxt_text *to) {
  (void)encoder;
  if (from->n > 0) nxt_text_add(to, step->content.items, step->content.n);
  nxt_text_add(to, from->items, from->n);
  return true;
}

bool nxt_normalize_bytes(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                         nxt_text *to) {
  (void)encoder, (void)step;
  for (size_t i = 0; i < from->n; i++) nxt_text_add_char(to, nxt_byte_char((uint8_t)from->items[i]));
  return true;
}

/* Where the grapheme ends that begins at `at`. */
static const char *grapheme_end(const char *at, const char *end) {
  utf8proc_int32_t state = 0, c = (utf8proc_int32_t)nxt_next_char(&at);
  while (at < end) {
    const char *next = at;
    utf8proc_int32_t after = (utf8proc_int32_t)nxt_next_char(&next);
    if (utf8proc_grapheme_break_stateful(c, after, &state)) break;
    c = after;
    at = next;
  }
  return at;
}

bool nxt_normalize_precompiled(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                               nxt_text *to) {
  enum { SHORT = 6 };
  (void)encoder;
  for (const char *at = from->items, *end = at + from->n; at < end;) {
    const char *stop = grapheme_end(at, end), *form;
    size_t n_form;
    if (stop - at < SHORT && nxt_charsmap_shortest(step->charsmap, at, stop, &form, &n_form) > 0) {
      nxt_text_add(to, form, n_form);
      at = stop;
    }
    while (at < stop) {
      size_t n = nxt_char_bytes(*at);
      if (nxt_charsmap_shortest(step->charsmap, at, at + n, &form, &n_form) > 0)
        nxt_text_add(to, form, n_form);
      else
        nxt_text_add(to, at, n);
      at += n;
    }
  }
  return true;
}
