/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/difference.h"

#include "compiler/document/buffer.h"

#include <stdbool.h>
#include <string.h>

enum { LINES_AROUND = 3 };

typedef struct lines {
  const char **items; /* each up to its line break */
  size_t *n_bytes;
  size_t n;
} lines;

static lines split(nxc_arena *arena, const char *text) {
  lines l = {0};
  for (const char *c = text; *c != '\0'; c++) l.n += *c == '\n';
  l.items = nxc_arena_array(arena, l.n + 1, sizeof *l.items);
  l.n_bytes = nxc_arena_array(arena, l.n + 1, sizeof *l.n_bytes);
  l.n = 0;
  while (*text != '\0') {
    l.items[l.n] = text;
    l.n_bytes[l.n] = strcspn(text, "\n");
    text += l.n_bytes[l.n] + (text[l.n_bytes[l.n]] == '\n');
    l.n++;
  }
  return l;
}

static bool is_same(const lines *a, size_t i, const lines *b, size_t j) {
  return a->n_bytes[i] == b->n_bytes[j] && memcmp(a->items[i], b->items[j], a->n_bytes[i]) == 0;
}

/* The nearest place behind (i, j) from which both go on alike. */
static void find_again(const lines *a, const lines *b, size_t *i, size_t *j) {
  for (size_t skip = 1; skip <= a->n - *i + b->n - *j; skip++)
    for (size_t in_a = 0; in_a <= skip; in_a++) {
      size_t x = *i + in_a, y = *j + skip - in_a;
      if (x > a->n || y > b->n) continue;
      bool ends = x == a->n && y == b->n;
      if (!ends && (x == a->n || y == b->n || !is_same(a, x, b, y))) continue;
      *i = x, *j = y;
      return;
    }
}

static void put_lines(nxc_buffer *text, const char *mark, const lines *l, size_t from, size_t to) {
  for (; from < to; from++) {
    nxc_buffer_puts(text, mark);
    nxc_buffer_put(text, l->items[from], l->n_bytes[from]);
    nxc_buffer_puts(text, "\n");
  }
}

/* A change with the lines around it: [first, kept) of the old text are in it, up to `kept`. */
typedef struct hunk {
  nxc_buffer lines;
  size_t first_old, first_new, kept;
  bool open;
} hunk;

typedef struct comparison {
  lines old, changed;
  size_t i, j; /* lines that are behind us */
  hunk hunk;
  nxc_buffer text;
} comparison;

static void open_hunk(comparison *c) {
  if (c->hunk.open) return;
  size_t before = c->i < LINES_AROUND ? c->i : LINES_AROUND;
  c->hunk = (hunk){.lines = {.arena = c->text.arena}, .open = true};
  c->hunk.first_old = c->hunk.kept = c->i - before;
  c->hunk.first_new = c->j - before;
}

static void close_hunk(comparison *c) {
  hunk *h = &c->hunk;
  size_t end = h->kept + LINES_AROUND < c->i ? h->kept + LINES_AROUND : c->i;
  put_lines(&h->lines, " ", &c->old, h->kept, end);
  size_t n_new = c->j - (c->i - end) - h->first_new;
  nxc_buffer_puts(&c->text, nxc_arena_printf(c->text.arena, "@@ -%zu,%zu +%zu,%zu @@\n", h->first_old + 1,
                                             end - h->first_old, h->first_new + 1, n_new));
  nxc_buffer_puts(&c->text, h->lines.bytes);
  h->open = false;
}

static void add_change(comparison *c) {
  open_hunk(c);
  put_lines(&c->hunk.lines, " ", &c->old, c->hunk.kept, c->i);
  size_t i = c->i, j = c->j;
  find_again(&c->old, &c->changed, &c->i, &c->j);
  put_lines(&c->hunk.lines, "-", &c->old, i, c->i);
  put_lines(&c->hunk.lines, "+", &c->changed, j, c->j);
  c->hunk.kept = c->i;
}

const char *nxc_difference(nxc_arena *arena, const char *name, const char *old, const char *changed) {
  comparison c = {.old = split(arena, old), .changed = split(arena, changed), .text = {.arena = arena}};
  bool differ = strcmp(old, changed) != 0;
  nxc_buffer_puts(&c.text, differ ? nxc_arena_printf(arena, "--- %s\n+++ %s\n", name, name) : "");
  while (c.i < c.old.n || c.j < c.changed.n) {
    bool same = c.i < c.old.n && c.j < c.changed.n && is_same(&c.old, c.i, &c.changed, c.j);
    if (!same) add_change(&c);
    else c.i++, c.j++;
    if (c.hunk.open && same && c.i >= c.hunk.kept + 2 * LINES_AROUND) close_hunk(&c);
  }
  if (c.hunk.open) close_hunk(&c);
  return c.text.bytes;
}
