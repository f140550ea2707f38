/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize_sentencepiece.h"

#include "tokenizer/charsmap.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

/* How many bytes at `at` become `form`. */
static size_t take(const nxt_normalizer *step, const char *at, const char *end, const char **form,
                   size_t *n_form) {
  uint32_t ignored;
  size_t n = nxt_trie_longest(&step->kept, at, end, &ignored);
  if (n == 0 && step->charsmap != NULL) n = nxt_charsmap_longest(step->charsmap, at, end, form, n_form);
  else *form = at, *n_form = n;
  if (n == 0) *form = at, n = *n_form = nxt_char_bytes(*at);
  return n;
}

static void add_blank(const nxt_normalizer *step, nxt_text *to) {
  if (step->options & NXT_ESCAPE_BLANKS)
    nxt_text_add(to, NXT_BLANK, strlen(NXT_BLANK));
  else
    nxt_text_add(to, " ", 1);
}

static const char *without_first_blanks(const nxt_normalizer *step, const char *at, const char *end) {
  const char *form;
  size_t n_form;
  while (at < end) {
    size_t n = take(step, at, end, &form, &n_form);
    if (n_form != 1 || *form != ' ') break;
    at += n;
  }
  return at;
}

static void cut_last_blanks(const nxt_normalizer *step, nxt_text *to, size_t begin) {
  const char *blank = step->options & NXT_ESCAPE_BLANKS ? NXT_BLANK : " ";
  size_t n = strlen(blank);
  while (to->n >= begin + n && memcmp(to->items + to->n - n, blank, n) == 0) to->n -= n;
}

static void add_form(const nxt_normalizer *step, const char *form, size_t n_form, nxt_text *to) {
  for (size_t i = 0; i < n_form; i++) {
    if (form[i] == ' ')
      add_blank(step, to);
    else
      nxt_text_add(to, form + i, 1);
  }
}

bool nxt_normalize_sentencepiece(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from,
                                 nxt_text *to) {
  (void)encoder;
  const bool one = (step->options & NXT_ONE_BLANK) != 0, behind = (step->options & NXT_BLANKS_BEHIND) != 0;
  const char *at = from->items, *end = at + from->n, *form;
  size_t n_form, begin = to->n;
  if (one) at = without_first_blanks(step, at, end);
  if (at == end) return true;
  if ((step->options & NXT_DUMMY_PREFIX) && !behind) add_blank(step, to);
  for (bool after_blank = one; at < end;) {
    at += take(step, at, end, &form, &n_form);
    for (; after_blank && n_form > 0 && *form == ' '; n_form--) form++;
    add_form(step, form, n_form, to);
    if (n_form > 0) after_blank = one && form[n_form - 1] == ' ';
  }
  if (one) cut_last_blanks(step, to, begin);
  if ((step->options & NXT_DUMMY_PREFIX) && behind) add_blank(step, to);
  return true;
}
