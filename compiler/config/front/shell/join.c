/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts that a variable has where ways meet, as one: words of both stay, words of one may be there, and a
 * word that is another in each is unknown. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

typedef struct words {
  const nxc_text *text;
  nxc_text *items;
  size_t *from; /* their first bytes */
  size_t n_items;
} words;

static bool divides(const nxc_text *text, size_t at) {
  bool whole = (text->marks[at] & NXC_MARK_UNKNOWN) && !(text->marks[at] & NXC_MARK_MAYBE);
  return !whole && strchr(" \t\n", text->bytes[at]) != NULL && text->bytes[at] != '\0';
}

static words divide(nxc_shell *s, const nxc_text *text) {
  words all = {.text = text};
  for (size_t from = 0, i = 0; i <= text->n_bytes; i++) {
    if (i < text->n_bytes && !divides(text, i)) continue;
    if (i > from) {
      all.items = nxc_arena_grow(s->arena, all.items, all.n_items, sizeof *all.items);
      all.from = nxc_arena_grow(s->arena, all.from, all.n_items, sizeof *all.from);
      all.from[all.n_items] = from;
      all.items[all.n_items++] = nxc_text_part(text, from, i - from);
    }
    from = i + 1;
  }
  return all;
}

static bool is_option(const nxc_text *word) {
  return word->n_bytes > 2 && word->bytes[0] == '-' && word->bytes[1] == '-';
}

static bool is_program(const nxc_text *word) {
  return word->n_bytes > 3 && memcmp(word->bytes + word->n_bytes - 3, ".py", 3) == 0;
}

static bool has_program(const words *all, size_t from, size_t to) {
  while (from < to && !is_program(&all->items[from])) from++;
  return from < to;
}

/* What lies between words, with blanks at its ends. */
static nxc_text part(const words *all, size_t from, size_t to) {
  size_t first = from == 0 ? 0 : from < all->n_items ? all->from[from] : all->text->n_bytes;
  size_t last = to < all->n_items ? all->from[to] : all->text->n_bytes;
  return nxc_text_part(all->text, first, last > first ? last - first : 0);
}

/* In a file that is read as it stands, quotes and commas around a value stay. */
static void put_value(nxc_shell *s, nxc_text *to, const char *name, const nxc_text *a, const nxc_text *b) {
  static const char around[] = "\"',;}]){[(:";
  size_t n_before = 0, n_behind = 0, n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
  while (n_before < n && a->bytes[n_before] == b->bytes[n_before] && strchr(around, a->bytes[n_before]))
    n_before++;
  while (n_behind < n - n_before &&
         a->bytes[a->n_bytes - 1 - n_behind] == b->bytes[b->n_bytes - 1 - n_behind] &&
         strchr(around, a->bytes[a->n_bytes - 1 - n_behind]))
    n_behind++;
  const char *shown = nxc_arena_printf(s->arena, "$%s", *name == NXC_SHELL_FILE ? "FILE" : name);
  nxc_text before = nxc_text_part(a, 0, n_before);
  nxc_text behind = n_behind ? nxc_text_part(a, a->n_bytes - n_behind, n_behind) : (nxc_text){0};
  nxc_text unknown = nxc_text_from(s->arena, shown, strlen(shown), a->origins[0], NXC_MARK_UNKNOWN);
  nxc_text_append(s->arena, to, &before);
  nxc_text_append(s->arena, to, &unknown);
  nxc_text_append(s->arena, to, &behind);
}

/* Whether two words are the same, or one value and another. */
static bool are_values(const nxc_text *one, const nxc_text *other) {
  return nxc_text_equal(one, other) || (*one->bytes != '-' && *other->bytes != '-' && !is_program(one));
}

static void put_values(nxc_shell *s, nxc_text *into, const char *name, const words *a, const words *b,
                       size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    nxc_text whole = part(a, i, i + 1), one = a->items[i];
    size_t n_front = i == 0 ? a->from[0] : 0;
    nxc_text front = nxc_text_part(&whole, 0, n_front);
    nxc_text gap = nxc_text_part(&whole, n_front + one.n_bytes, whole.n_bytes);
    nxc_text_append(s->arena, into, &front);
    if (nxc_text_equal(&one, &b->items[i])) nxc_text_append(s->arena, into, &one);
    else put_value(s, into, name, &one, &b->items[i]);
    nxc_text_append(s->arena, into, &gap);
  }
}

static void end_word(nxc_shell *s, nxc_text *text) {
  size_t n = text->n_bytes;
  if (n > 0 && !divides(text, n - 1)) nxc_text_put(s->arena, text, ' ', text->origins[n - 1], 0);
}

/* With a blank behind it. */
static void put_perhaps(nxc_shell *s, nxc_text *to, const nxc_text *text) {
  nxc_text copy = nxc_shell_perhaps(s, text), blank = nxc_text_from(s->arena, " ", 1, 0, 0);
  if (text->n_bytes == 0) return;
  nxc_text_append(s->arena, to, &copy);
  blank = nxc_shell_perhaps(s, &blank);
  nxc_text_append(s->arena, to, &blank);
}

/* Words that both end with, from an option on: what stands before that is a value of another one. */
static size_t count_last(const words *a, const words *b, size_t n_first) {
  size_t n = 0, n_most = (a->n_items < b->n_items ? a->n_items : b->n_items) - n_first;
  while (n < n_most && nxc_text_equal(&a->items[a->n_items - 1 - n], &b->items[b->n_items - 1 - n])) n++;
  if (a->n_items == b->n_items || (n_first == 0 && has_program(a, a->n_items - n, a->n_items))) return n;
  while (n > 0 && !is_option(&a->items[a->n_items - n])) n--;
  return n;
}

bool nxc_shell_join_texts(nxc_shell *s, const char *name, const nxc_text *x, const nxc_text *y,
                          nxc_text *joined) {
  const words a = divide(s, x), b = divide(s, y);
  size_t n_first = 0, n_most = a.n_items < b.n_items ? a.n_items : b.n_items;
  while (n_first < n_most && nxc_text_equal(&a.items[n_first], &b.items[n_first])) n_first++;
  const size_t n_last = count_last(&a, &b, n_first);
  const size_t end_a = a.n_items - n_last, end_b = b.n_items - n_last;
  const nxc_text first = n_first ? part(&a, 0, n_first) : (nxc_text){0};
  const nxc_text last = n_last ? part(&a, end_a, a.n_items) : (nxc_text){0};
  size_t at = n_first;
  while (at < end_a && at < end_b && are_values(&a.items[at], &b.items[at])) at++;
  const nxc_text only_a = part(&a, at, end_a), only_b = part(&b, at, end_b);
  const bool none_a = at == end_a, none_b = at == end_b;
  bool options = (none_a || is_option(&a.items[at])) && (none_b || is_option(&b.items[at]));
  bool launcher = at == 0 && (none_a || none_b) && has_program(&a, end_a, a.n_items) &&
                  !has_program(&a, 0, end_a) && !has_program(&b, 0, end_b);
  *joined = nxc_text_copy(s->arena, &first);
  end_word(s, joined);
  if (options || launcher) {
    put_values(s, joined, name, &a, &b, n_first, at);
    if (!none_a || !none_b) end_word(s, joined);
    if (!none_a) put_perhaps(s, joined, &only_a);
    if (!none_b) put_perhaps(s, joined, &only_b);
  } else if (has_program(&a, 0, n_first)) {
    nxc_text unknown = nxc_text_from(s->arena, "$@", 2, first.origins[0], NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    nxc_text_append(s->arena, joined, &unknown);
    nxc_text_put(s->arena, joined, ' ', first.origins[0], 0);
  } else {
    return false;
  }
  nxc_text_append(s->arena, joined, &last);
  return nxc_shell_spend(s, joined->n_bytes, 0);
}

/* A text that stands there on one of the ways only. */
nxc_text nxc_shell_perhaps(nxc_shell *s, const nxc_text *text) {
  nxc_text copy = nxc_text_copy(s->arena, text);
  for (size_t i = 0; i < copy.n_bytes; i++)
    if (!(copy.marks[i] & NXC_MARK_UNKNOWN))
      copy.marks[i] |= NXC_MARK_UNKNOWN | NXC_MARK_MANY | NXC_MARK_MAYBE;
  nxc_shell_spend(s, copy.n_bytes, 0);
  return copy;
}
