/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/added.h"

#include "tokenizer/memory.h"
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

/* Items lie as the entries of their names do. */
void nxt_added_put(nxt_added_set *set, const char *text, size_t n_bytes, nxt_added token) {
  nxt_vocabulary_add(&set->names, text, n_bytes, token.id);
  uint32_t index = set->names.by_id[token.id];
  if (index >= set->n) {
    set->items = nxt_resize(set->items, index + 1, sizeof *set->items);
    set->n = index + 1;
  }
  set->items[index] = token;
}

const nxt_added *nxt_added_find(const nxt_added_set *set, uint32_t id) {
  uint32_t index = id < set->names.n_ids ? set->names.by_id[id] : NXT_NONE;
  return index == NXT_NONE ? NULL : &set->items[index];
}

static nxt_text copy_text(const char *bytes, size_t n_bytes) {
  nxt_text text = {0};
  nxt_text_add(&text, bytes, n_bytes);
  return text;
}

/* A trie of the tokens that are looked for in normal form, or of the others. */
static bool build(nxt_added_set *set, nxt_encoder *encoder, bool normalized, nxt_trie *trie) {
  nxt_key *keys = nxt_new(set->n, sizeof *keys);
  nxt_text *texts = nxt_new(set->n, sizeof *texts);
  size_t n = 0;
  bool done = true;
  for (uint32_t i = 0; done && i < set->n; i++) {
    size_t n_bytes;
    const char *name = nxt_vocabulary_text(&set->names, set->items[i].id, &n_bytes);
    if (set->items[i].normalized != normalized || set->items[i].hidden) continue;
    const nxt_text plain = {(char *)name, n_bytes, n_bytes}, *form = &plain;
    if (normalized && !set->items[i].as_is) done = nxt_normalize(encoder, &plain, &form);
    if (form->n != n_bytes || (n_bytes > 0 && memcmp(form->items, name, n_bytes) != 0))
      nxt_vocabulary_add(&set->forms, form->items, form->n, set->items[i].id);
    texts[n] = copy_text(form->items, form->n);
    if (form->n > 0) keys[n] = (nxt_key){texts[n].items, form->n, i}, n++;
  }
  nxt_trie_build(trie, keys, n);
  for (size_t i = 0; i < set->n; i++) free(texts[i].items);
  free(texts);
  free(keys);
  return done;
}

bool nxt_added_ready(nxt_added_set *set, nxt_encoder *encoder) {
  return build(set, encoder, false, &set->raw) && build(set, encoder, true, &set->normalized);
}

void nxt_added_close(nxt_added_set *set) {
  free(set->items);
  nxt_vocabulary_close(&set->names);
  nxt_vocabulary_close(&set->forms);
  nxt_trie_close(&set->raw);
  nxt_trie_close(&set->normalized);
}

static bool is_alone(const char *text, const char *begin, const char *end, const char *text_end) {
  if (end < text_end && (nxt_class_at(end) & NXT_WORD) != 0) return false;
  if (begin == text) return true;
  return (nxt_classes[nxt_last_char(&begin)] & NXT_WORD) == 0;
}

static const char *without_blanks_before(const char *at, const char *least) {
  while (at > least) {
    const char *before = at;
    if ((nxt_classes[nxt_last_char(&before)] & NXT_SPACE) == 0) break;
    at = before;
  }
  return at;
}

static const char *without_blanks_behind(const char *at, const char *end) {
  while (at < end && (nxt_class_at(at) & NXT_SPACE) != 0) at += nxt_char_bytes(*at);
  return at;
}

static bool is_text_now(const nxt_encoder *encoder, const nxt_added *token) {
  return (encoder->flags & NXT_PLAIN_TEXT) != 0 && token->special;
}

bool nxt_added_cut(nxt_encoder *encoder, const nxt_trie *trie, const char *text, size_t n_bytes, bool first,
                   nxt_between between) {
  const nxt_added_set *set = &encoder->tokenizer->added;
  const char *end = text + n_bytes, *done = text;
  for (const char *at = text; at < end && trie->n_nodes > 1;) {
    uint32_t index = 0;
    size_t n = trie->from_root[(uint8_t)*at] == 0 ? 0 : nxt_trie_longest(trie, at, end, &index);
    const nxt_added *token = &set->items[index];
    const char *begin = at, *stop = at + n;
    at += n > 0 ? n : 1;
    if (n == 0 || is_text_now(encoder, token)) continue;
    if (token->single_word && !is_alone(text, begin, stop, end)) continue;
    if (token->strip_left) begin = without_blanks_before(begin, done);
    if (token->strip_right) stop = without_blanks_behind(stop, end);
    if (begin > done && !between(encoder, done, (size_t)(begin - done), first && done == text)) return false;
    nxt_ids_add(encoder->ids, token->id);
    done = stop;
  }
  return done >= end || between(encoder, done, (size_t)(end - done), first && done == text);
}
