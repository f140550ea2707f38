/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/edit/unified.h"

#include "compiler/diagnostics/secret.h"

#include <stdint.h>
#include <string.h>

enum { CONTEXT_LINES = 3, CELLS_MAX = 16 * 1024 * 1024 };

typedef struct line {
  const char *text;
  size_t n_bytes; /* its break included */
} line;

typedef struct lines {
  line *items;
  size_t n_items;
} lines;

/* A line of the result: of both texts (' '), of the old ('-') or of the new ('+'). */
typedef struct step {
  char kind;
  line of;
} step;

typedef struct steps {
  nxc_arena *arena;
  bool colour; /* of what is gone and what is new, on a terminal */
  step *items;
  size_t n_items;
} steps;

static lines split(nxc_arena *arena, const char *text, size_t n_bytes) {
  lines found = {0};
  for (size_t at = 0; at < n_bytes;) {
    const char *end = memchr(text + at, '\n', n_bytes - at);
    size_t n = end ? (size_t)(end - text) + 1 - at : n_bytes - at;
    found.items = nxc_arena_grow(arena, found.items, found.n_items, sizeof *found.items);
    found.items[found.n_items++] = (line){text + at, n};
    at += n;
  }
  return found;
}

static bool same(const line *a, const line *b) {
  return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
}

static void add(steps *to, char kind, const line *of, size_t n_lines) {
  for (size_t i = 0; i < n_lines; i++) {
    to->items = nxc_arena_grow(to->arena, to->items, to->n_items, sizeof *to->items);
    to->items[to->n_items++] = (step){kind, of[i]};
  }
}

/* Between what begins and ends alike: the longest sequence of lines in both; of very many none. */
static void compare(steps *to, const line *a, size_t n_a, const line *b, size_t n_b) {
  if (n_a == 0 || n_b == 0 || n_a > CELLS_MAX / n_b) {
    add(to, '-', a, n_a);
    add(to, '+', b, n_b);
    return;
  }
  size_t width = n_b + 1;
  uint32_t *longest = nxc_arena_array(to->arena, (n_a + 1) * width, sizeof *longest);
  for (size_t i = n_a; i-- > 0;) {
    for (size_t j = n_b; j-- > 0;) {
      uint32_t down = longest[(i + 1) * width + j], right = longest[i * width + j + 1];
      uint32_t both = same(&a[i], &b[j]) ? longest[(i + 1) * width + j + 1] + 1 : 0;
      uint32_t most = down > right ? down : right;
      longest[i * width + j] = both > most ? both : most;
    }
  }
  size_t i = 0, j = 0;
  while (i < n_a || j < n_b) {
    bool both = i < n_a && j < n_b && same(&a[i], &b[j]);
    bool down = j == n_b || (i < n_a && longest[(i + 1) * width + j] >= longest[i * width + j + 1]);
    if (both) add(to, ' ', &a[i++], 1), j++;
    else if (down) add(to, '-', &a[i++], 1);
    else add(to, '+', &b[j++], 1);
  }
}

static void print_step(const step *at, bool colour, FILE *out) {
  size_t n_bytes = at->of.n_bytes, secret = nxc_secret_in_line(at->of.text, n_bytes);
  colour = colour && at->kind != ' ';
  if (colour) fputs(at->kind == '-' ? "\033[31m" : "\033[32m", out);
  fputc(at->kind, out);
  fwrite(at->of.text, 1, secret < n_bytes ? secret : n_bytes, out);
  if (secret < n_bytes) fputs(" (not shown)\n", out);
  else if (at->of.text[n_bytes - 1] != '\n') fputs("\n\\ No newline at end of file\n", out);
  if (colour) fputs("\033[0m", out);
}

/* The steps [first, end) as one hunk; `old_line` and `new_line` lines stand before it. */
static void print_hunk(const steps *all, size_t first, size_t end, size_t old_line, size_t new_line,
                       FILE *out) {
  size_t n_old = 0, n_new = 0;
  for (size_t i = first; i < end; i++) {
    n_old += all->items[i].kind != '+';
    n_new += all->items[i].kind != '-';
  }
  fprintf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_line + (n_old > 0), n_old, new_line + (n_new > 0), n_new);
  for (size_t i = first; i < end; i++) print_step(&all->items[i], all->colour, out);
}

/* The end of a hunk that begins with a change at `at`: so many equal lines follow its last change. */
static size_t end_of_hunk(const steps *all, size_t at) {
  size_t last = at;
  for (size_t i = at; i < all->n_items && i <= last + 2 * CONTEXT_LINES; i++)
    if (all->items[i].kind != ' ') last = i;
  size_t end = last + 1 + CONTEXT_LINES;
  return end < all->n_items ? end : all->n_items;
}

static void print_hunks(const steps *all, FILE *out) {
  size_t printed = 0, old_line = 0, new_line = 0; /* those before step `printed` */
  for (size_t i = 0; i < all->n_items; i++) {
    if (all->items[i].kind == ' ') continue;
    size_t first = i < printed + CONTEXT_LINES ? printed : i - CONTEXT_LINES;
    old_line += first - printed;
    new_line += first - printed;
    size_t end = end_of_hunk(all, i);
    print_hunk(all, first, end, old_line, new_line, out);
    for (size_t k = first; k < end; k++) {
      old_line += all->items[k].kind != '+';
      new_line += all->items[k].kind != '-';
    }
    printed = end;
    i = end - 1;
  }
}

bool nxc_unified_print(nxc_arena *arena, const char *name, const char *old_text, size_t n_old,
                       const char *new_text, size_t n_new, bool colour, FILE *out) {
  if (n_old == n_new && memcmp(old_text, new_text, n_old) == 0) return false;
  lines a = split(arena, old_text, n_old), b = split(arena, new_text, n_new);
  size_t head = 0, tail = 0;
  while (head < a.n_items && head < b.n_items && same(&a.items[head], &b.items[head])) head++;
  while (tail < a.n_items - head && tail < b.n_items - head &&
         same(&a.items[a.n_items - 1 - tail], &b.items[b.n_items - 1 - tail]))
    tail++;
  steps all = {.arena = arena, .colour = colour};
  add(&all, ' ', a.items, head);
  compare(&all, a.items + head, a.n_items - head - tail, b.items + head, b.n_items - head - tail);
  add(&all, ' ', a.items + a.n_items - tail, tail);
  fprintf(out, "--- %s\n+++ %s\n", name, name);
  print_hunks(&all, out);
  return true;
}
