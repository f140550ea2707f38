/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/words_shell.h"

#include <string.h>

/* The word behind << or <<-, bare; *quoted tells whether a part of it was quoted. */
static const char *read_end(nxc_arena *arena, const char *text, size_t n_bytes, size_t *n_taken,
                            bool *quoted) {
  char *end = nxc_arena_alloc(arena, n_bytes + 1);
  size_t i = 0, n_end = 0;
  *quoted = false;
  while (i < n_bytes && (text[i] == ' ' || text[i] == '\t')) i++;
  for (; i < n_bytes && !nxc_shell_ends_word(text[i]); i++) {
    if (strchr("'\"\\", text[i])) *quoted = true;
    else end[n_end++] = text[i];
  }
  *n_taken = i;
  return nxc_arena_strndup(arena, end, n_end);
}

void nxc_shell_open_here(nxc_shell *s, const nxc_words *command) {
  nxc_arena *arena = s->script->arena;
  nxc_here here = {.tabs = s->at < s->n_bytes && s->text[s->at] == '-'};
  size_t n_taken, start = s->at;
  s->at += here.tabs;
  here.end = read_end(arena, s->text + s->at, s->n_bytes - s->at, &n_taken, &here.quoted);
  s->at += n_taken;
  if (*here.end == '\0') nxc_shell_fail(s, start, "a word that ends the text is missing behind <<");
  if (command->n_items > 1 && strcmp(command->items[0].text, "read") == 0)
    here.into = command->items[command->n_items - 1].text;
  s->here = nxc_arena_grow(arena, s->here, s->n_here, sizeof *s->here);
  s->here[s->n_here++] = here;
}

/* The bytes of the lines before the one that is `end`; *n_taken receives those with it. */
static bool find_end(const char *text, size_t n_bytes, const nxc_here *here, size_t *n_inside,
                     size_t *n_taken) {
  for (size_t line = 0; line < n_bytes;) {
    size_t from = line, next = line;
    while (next < n_bytes && text[next] != '\n') next++;
    size_t to = next > from && text[next - 1] == '\r' ? next - 1 : next;
    while (here->tabs && from < to && text[from] == '\t') from++;
    if (to - from == strlen(here->end) && memcmp(text + from, here->end, to - from) == 0) {
      *n_inside = line;
      *n_taken = next;
      return true;
    }
    line = next + 1;
  }
  return false;
}

static void put_lines(nxc_shell *s, nxc_draft *word, const nxc_here *here, const char *text, size_t n_bytes,
                      size_t origin) {
  nxc_words none = {0};
  word->open = true;
  if (here->quoted) {
    const nxc_word value = {.text = nxc_arena_strndup(s->script->arena, text, n_bytes)};
    nxc_shell_put_assigned(s, word, &none, &value, true, origin);
  } else {
    nxc_shell_put_text(s, word, text, n_bytes, origin);
  }
}

static void read_one(nxc_shell *s, const nxc_here *here) {
  size_t n_inside, n_taken;
  if (!find_end(s->text + s->at, s->n_bytes - s->at, here, &n_inside, &n_taken)) {
    nxc_shell_fail(s, s->at, "the text behind << does not end");
    return;
  }
  if (here->into != NULL) {
    nxc_draft word = {0};
    nxc_words words = {0};
    put_lines(s, &word, here, s->text + s->at, n_inside, s->at);
    nxc_shell_finish(s, &word, &words, s->at);
    if (words.n_items > 0)
      nxc_shell_set(s, here->into, nxc_shell_place(s, s->at, 1), &words.items[0], true);
  }
  s->at += n_taken;
}

void nxc_shell_read_here(nxc_shell *s) {
  const nxc_here *here = s->here;
  size_t n_here = s->n_here;
  s->here = NULL;
  s->n_here = 0;
  for (size_t i = 0; i < n_here && !s->failed; i++) {
    if (i > 0 && s->at < s->n_bytes) s->at++; /* the line break behind the one before */
    read_one(s, &here[i]);
  }
}

size_t nxc_shell_put_here(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin) {
  static const char begin[] = "$(cat <<";
  size_t at = sizeof begin - 1, n_end, n_inside, n_taken;
  if (n_bytes < at || memcmp(text, begin, at) != 0) return 0;
  nxc_here here = {.tabs = at < n_bytes && text[at] == '-'};
  at += here.tabs;
  here.end = read_end(s->script->arena, text + at, n_bytes - at, &n_end, &here.quoted);
  at += n_end;
  while (at < n_bytes && text[at] != '\n') at++;
  at++;
  if (at >= n_bytes || *here.end == '\0' || !find_end(text + at, n_bytes - at, &here, &n_inside, &n_taken))
    return 0;
  put_lines(s, word, &here, text + at, n_inside > 0 ? n_inside - 1 : 0, origin + at);
  at += n_taken;
  while (at < n_bytes && text[at] != ')') at++;
  return at < n_bytes ? at + 1 : 0;
}
