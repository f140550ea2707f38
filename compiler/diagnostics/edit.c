/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/edit.h"

#include <ctype.h>
#include <string.h>

static nxc_repair repair_of(nxc_arena *arena, nxc_edit edit, bool safe) {
  if (edit.source == NULL || !edit.source->editable) return (nxc_repair){0};
  nxc_edit *kept = nxc_arena_alloc(arena, sizeof *kept);
  *kept = edit;
  return (nxc_repair){kept, 1, safe};
}

nxc_repair nxc_repair_span(nxc_arena *arena, nxc_span at, const char *text, bool safe) {
  if (at.source == NULL || at.line < 1 || at.line > at.source->n_lines) return (nxc_repair){0};
  return repair_of(arena, (nxc_edit){at.source, nxc_span_offset(at, false), nxc_span_offset(at, true), text},
                   safe);
}

static bool is_word_byte(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Alike but for - where the word has _, as some systems read their keys. */
static bool reads(const char *text, const char *word, size_t n_bytes) {
  for (size_t i = 0; i < n_bytes; i++)
    if (text[i] != word[i] && !(text[i] == '-' && word[i] == '_')) return false;
  return true;
}

/* In the same spelling. */
static const char *spelt_like(nxc_arena *arena, const char *found, const char *word, const char *text) {
  char *copy = nxc_arena_strdup(arena, text);
  if (memcmp(found, word, strlen(word)) == 0) return copy;
  for (char *c = copy; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  return copy;
}

nxc_repair nxc_repair_word(nxc_arena *arena, nxc_span at, const char *word, const char *text, bool safe) {
  if (at.source == NULL || at.line < 1 || at.line > at.source->n_lines || *word == '\0')
    return (nxc_repair){0};
  const char *whole = at.source->text;
  size_t begin = nxc_span_offset(at, false), end = nxc_span_offset(at, true), n_word = strlen(word),
         found = 0;
  size_t n_found = 0;
  if (end - begin > 2 && memcmp(whole + begin, "--", 2) == 0) begin += 2;
  for (size_t i = begin; i + n_word <= end; i++) {
    bool starts = i == begin || !is_word_byte(whole[i - 1]);
    bool ends = i + n_word == end || !is_word_byte(whole[i + n_word]);
    if (!starts || !ends || !reads(whole + i, word, n_word)) continue;
    found = i;
    n_found++;
  }
  if (n_found != 1) return (nxc_repair){0};
  return repair_of(arena,
                   (nxc_edit){at.source, found, found + n_word, spelt_like(arena, whole + found, word, text)},
                   safe);
}

nxc_repair nxc_repair_removes(nxc_arena *arena, const nxc_source *source, size_t begin, size_t end,
                              bool safe) {
  return repair_of(arena, (nxc_edit){source, begin, end, ""}, safe);
}

nxc_repair nxc_repair_copy(nxc_arena *arena, const nxc_repair *repair) {
  nxc_edit *edits = nxc_arena_array(arena, repair->n_edits + 1, sizeof *edits);
  for (size_t i = 0; i < repair->n_edits; i++) {
    edits[i] = repair->edits[i];
    if (edits[i].source == NULL || !edits[i].source->editable) return (nxc_repair){0};
    edits[i].text = nxc_arena_strdup(arena, edits[i].text);
  }
  return (nxc_repair){edits, repair->n_edits, repair->safe};
}

static bool is_same(const nxc_edit *a, const nxc_edit *b) {
  return a->begin == b->begin && a->end == b->end && strcmp(a->text, b->text) == 0;
}

/* Two insertions at one place would have an order that nobody gave them. */
static bool overlaps(const nxc_edit *a, const nxc_edit *b) {
  return (a->begin < b->end && b->begin < a->end) || a->begin == b->begin;
}

static bool may_take(const nxc_edit_list *list, const nxc_edit *edit) {
  for (size_t i = 0; i < list->n_items; i++)
    if (overlaps(&list->items[i], edit) && !is_same(&list->items[i], edit)) return false;
  return true;
}

static void take(nxc_arena *arena, nxc_edit_list *list, const nxc_edit *edit) {
  for (size_t i = 0; i < list->n_items; i++)
    if (is_same(&list->items[i], edit)) return;
  list->items = nxc_arena_grow(arena, list->items, list->n_items, sizeof *list->items);
  size_t at = list->n_items++;
  for (; at > 0 && list->items[at - 1].begin > edit->begin; at--) list->items[at] = list->items[at - 1];
  list->items[at] = *edit;
}

bool nxc_edits_take(nxc_arena *arena, nxc_edit_list *list, const nxc_source *source,
                    const nxc_repair *repair) {
  for (size_t i = 0; i < repair->n_edits; i++)
    if (repair->edits[i].source == source && !may_take(list, &repair->edits[i])) return false;
  for (size_t i = 0; i < repair->n_edits; i++)
    if (repair->edits[i].source == source) take(arena, list, &repair->edits[i]);
  return true;
}

char *nxc_edits_apply(nxc_arena *arena, const nxc_source *source, const nxc_edit_list *list,
                      size_t *n_bytes) {
  size_t n_most = source->n_bytes + 1, from = 0;
  for (size_t i = 0; i < list->n_items; i++) n_most += strlen(list->items[i].text);
  char *text = nxc_arena_alloc(arena, n_most), *to = text;
  for (size_t i = 0; i < list->n_items; i++) {
    const nxc_edit *edit = &list->items[i];
    to = (char *)memcpy(to, source->text + from, edit->begin - from) + (edit->begin - from);
    to = stpcpy(to, edit->text);
    from = edit->end;
  }
  memcpy(to, source->text + from, source->n_bytes - from);
  *n_bytes = (size_t)(to - text) + source->n_bytes - from;
  text[*n_bytes] = '\0';
  return text;
}
