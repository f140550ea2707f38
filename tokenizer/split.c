/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split.h"

#include "tokenizer/bpe.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

/* A text that is being cut. A part may have to wait for the next one, to be merged with it. */
typedef struct cutting {
  nxt_encoder *encoder;
  const nxt_split *step;
  const char *text;
  bool first;
  bool holds, last_matched;
  size_t begin, end; /* of the part that waits */
} cutting;

static bool hand_on(cutting *cut, size_t begin, size_t end) {
  return nxt_hand_on(cut->encoder, cut->step, cut->text + begin, end - begin, cut->first && begin == 0);
}

static bool hold(cutting *cut, size_t begin, size_t end) {
  bool done = !cut->holds || hand_on(cut, cut->begin, cut->end);
  cut->holds = true;
  cut->begin = begin;
  cut->end = end;
  return done;
}

static bool take_part(cutting *cut, size_t begin, size_t end, bool matched) {
  bool last = cut->last_matched, joins = false;
  cut->last_matched = matched;
  switch (cut->step->behaviour) {
  case NXT_REMOVED: return matched || hand_on(cut, begin, end);
  case NXT_ISOLATED: return hand_on(cut, begin, end);
  case NXT_CONTIGUOUS: joins = matched == last; break;
  case NXT_MERGED_WITH_PREVIOUS: joins = matched && !last; break;
  case NXT_MERGED_WITH_NEXT: joins = !matched && last; break;
  }
  if (!joins || !cut->holds) return hold(cut, begin, end);
  cut->end = end;
  return true;
}

bool nxt_split_matches(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                       bool first) {
  cutting cut = {.encoder = encoder, .step = step, .text = text, .first = first};
  size_t done = 0, match[2] = {0, SIZE_MAX};
  int found;
  while ((found = step->find(encoder, step, text, n_bytes, done, match)) == 1) {
    if (match[0] > done && !take_part(&cut, done, match[0], step->invert)) return false;
    if (!take_part(&cut, match[0], match[1], !step->invert)) return false;
    done = match[1];
  }
  if (found < 0) return false;
  if (done < n_bytes && !take_part(&cut, done, n_bytes, step->invert)) return false;
  return !cut.holds || hand_on(&cut, cut.begin, cut.end);
}

bool nxt_split_words(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first) {
  for (const char *at = text, *end = text + n_bytes, *stop; at < end; at = stop) {
    stop = step->scanner(at, end);
    if (!step[1].run(encoder, step + 1, at, (size_t)(stop - at), first && at == text)) return false;
  }
  return true;
}

/* A buffer of this step's own: those behind it read the text while it stands here. */
static nxt_text *scratch_of(nxt_encoder *encoder, const nxt_split *step) {
  nxt_text *scratch = &encoder->scratch[step->scratch];
  scratch->n = 0;
  return scratch;
}

bool nxt_split_prefix(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first) {
  if (text[0] == ' ') return nxt_hand_on(encoder, step, text, n_bytes, first);
  nxt_text *with = scratch_of(encoder, step);
  nxt_text_add(with, " ", 1);
  nxt_text_add(with, text, n_bytes);
  return nxt_hand_on(encoder, step, with->items, with->n, first);
}

static bool begins_with(const char *text, size_t n_bytes, const nxt_text *with) {
  return n_bytes >= with->n && memcmp(text, with->items, with->n) == 0;
}

bool nxt_split_metaspace(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                         bool first) {
  nxt_text *changed = scratch_of(encoder, step);
  bool prepends = step->prepend_always || (step->prepend_first && first);
  if (prepends && text[0] != ' ' && !begins_with(text, n_bytes, &step->text))
    nxt_text_add(changed, step->text.items, step->text.n);
  for (const char *end = text + n_bytes; text < end;) {
    const char *blank = memchr(text, ' ', (size_t)(end - text)), *stop = blank != NULL ? blank : end;
    nxt_text_add(changed, text, (size_t)(stop - text));
    if (blank != NULL) nxt_text_add(changed, step->text.items, step->text.n);
    text = stop + (blank != NULL);
  }
  return nxt_hand_on(encoder, step, changed->items, changed->n, first);
}

bool nxt_split_bytes(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first) {
  nxt_text *changed = scratch_of(encoder, step);
  for (size_t i = 0; i < n_bytes; i++) nxt_text_add_char(changed, nxt_byte_char((uint8_t)text[i]));
  return nxt_hand_on(encoder, step, changed->items, changed->n, first);
}

bool nxt_split_before(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first) {
  const char *end = text + n_bytes, *done = text;
  size_t n = step->text.n;
  for (const char *at = text; (at = memchr(at, step->text.items[0], (size_t)(end - at))) != NULL; at++) {
    if ((size_t)(end - at) < n || memcmp(at, step->text.items, n) != 0) continue;
    bool goes_on = at - text >= (ptrdiff_t)n && memcmp(at - n, step->text.items, n) == 0;
    if (goes_on || at == done) continue;
    if (!nxt_hand_on(encoder, step, done, (size_t)(at - done), first && done == text)) return false;
    done = at;
  }
  return nxt_hand_on(encoder, step, done, (size_t)(end - done), first && done == text);
}

bool nxt_split_length(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                      bool first) {
  for (const char *at = text, *end = text + n_bytes; at < end;) {
    const char *stop = at;
    for (uint32_t i = 0; i < step->character && stop < end; i++) stop += nxt_char_bytes(*stop);
    if (!nxt_hand_on(encoder, step, at, (size_t)(stop - at), first && at == text)) return false;
    at = stop;
  }
  return true;
}

static void add_ids(nxt_ids *to, const uint32_t *ids, size_t n) {
  if (n > 0) memcpy(nxt_ids_reserve(to, n), ids, n * sizeof *ids);
  to->n += n;
}

bool nxt_split_model(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes,
                     bool first) {
  (void)step, (void)first;
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  if (n_bytes > NXT_CACHED_BYTES || !tokenizer->caches)
    return tokenizer->word(encoder, text, n_bytes, encoder->ids);
  nxt_cached *cached = nxt_cache_find(&encoder->cache, text, n_bytes);
  if (cached->n_bytes > 0) {
    add_ids(encoder->ids, nxt_cached_ids(&encoder->cache, cached), cached->n_ids);
    return true;
  }
  encoder->word.n = 0;
  if (!tokenizer->word(encoder, text, n_bytes, &encoder->word)) return false;
  nxt_cache_add(&encoder->cache, cached, text, n_bytes, encoder->word.items, encoder->word.n);
  add_ids(encoder->ids, encoder->word.items, encoder->word.n);
  return true;
}
