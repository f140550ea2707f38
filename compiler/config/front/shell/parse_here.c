/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between words: blanks, comments, and the lines of here documents. */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

/* -- blanks and here documents --------------------------------------------------------------------------- */

static bool is_end_line(const nxc_shell_parser *p, const nxc_shell_here *here, size_t from, size_t to) {
  if (to > from && p->text.bytes[to - 1] == '\r') to--;
  while (here->tabs && from < to && p->text.bytes[from] == '\t') from++;
  return to - from == strlen(here->end) && memcmp(p->text.bytes + from, here->end, to - from) == 0;
}

static void read_here(nxc_shell_parser *p, const nxc_shell_here *here) {
  size_t start = p->at;
  nxc_text body = {0};
  while (p->at < p->text.n_bytes) {
    size_t end = p->at;
    while (end < p->text.n_bytes && p->text.bytes[end] != '\n') end++;
    bool last = is_end_line(p, here, p->at, end);
    while (!last && here->tabs && p->text.bytes[p->at] == '\t') p->at++;
    nxc_text line = nxc_text_part(&p->text, p->at, end - p->at + 1);
    p->at = end < p->text.n_bytes ? end + 1 : end;
    if (!last) nxc_text_append(p->arena, &body, &line);
    if (last) start = SIZE_MAX;
    if (last) break;
  }
  if (start != SIZE_MAX) {
    nxc_shell_parse_fail(p, start, "the text behind << does not end");
    return;
  }
  nxc_shell_parser inner = {.arena = p->arena, .text = body, .nesting = p->nesting};
  nxc_shell_word *word = &here->redirect->target;
  word->at = nxc_shell_origin(p, start == SIZE_MAX ? p->at : start);
  if (!here->quoted) nxc_shell_parse_quoted(&inner, word, NXC_END_TEXT, true);
  else nxc_shell_add_part(p, word, NXC_PART_TEXT, true)->text = body;
  if (inner.problem != NULL) nxc_shell_parse_fail(p, p->at, inner.problem);
}

/* Behind a line break: the lines of what was opened on the line before. */
static void read_heres(nxc_shell_parser *p) {
  const nxc_shell_here *here = p->here;
  size_t n_here = p->n_here;
  p->here = NULL;
  p->n_here = 0;
  for (size_t i = 0; i < n_here && p->problem == NULL; i++) read_here(p, &here[i]);
}

void nxc_shell_skip_blanks(nxc_shell_parser *p, bool lines) {
  while (p->at < p->text.n_bytes) {
    char c = nxc_shell_peek(p, 0), next = nxc_shell_peek(p, 1);
    if (c == '#') {
      while (p->at < p->text.n_bytes && nxc_shell_peek(p, 0) != '\n') p->at++;
    } else if (c == '\\' && (next == '\n' || (next == '\r' && nxc_shell_peek(p, 2) == '\n'))) {
      p->at += next == '\n' ? 2 : 3;
    } else if (nxc_shell_is_blank(c) && (lines || c != '\n')) {
      p->at++;
      if (c == '\n' && p->n_here > 0) read_heres(p);
    } else {
      return;
    }
  }
}

const char *nxc_shell_bare_word(nxc_shell_parser *p, bool *quoted) {
  size_t start = p->at;
  char *bare = NULL;
  size_t n_bare = 0;
  for (*quoted = false; !nxc_shell_ends_word(nxc_shell_peek(p, 0)); p->at++) {
    char c = nxc_shell_peek(p, 0);
    if (strchr("'\"\\", c)) {
      *quoted = true;
      continue;
    }
    bare = nxc_arena_grow(p->arena, bare, n_bare, 1);
    bare[n_bare++] = c;
  }
  if (p->at == start) nxc_shell_parse_fail(p, start, "a word that ends the text is missing behind <<");
  return nxc_arena_strndup(p->arena, bare ? bare : "", n_bare);
}

void nxc_shell_parse_here(nxc_shell_parser *p, nxc_shell_redirect *redirect) {
  nxc_shell_here here = {.redirect = redirect, .tabs = nxc_shell_peek(p, 0) == '-'};
  p->at += here.tabs;
  nxc_shell_skip_blanks(p, false);
  here.end = nxc_shell_bare_word(p, &here.quoted);
  p->here = nxc_arena_grow(p->arena, p->here, p->n_here, sizeof *p->here);
  p->here[p->n_here++] = here;
}
