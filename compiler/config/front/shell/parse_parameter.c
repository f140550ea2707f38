/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

static nxc_shell_word *keep(nxc_shell_parser *p, nxc_shell_word word) {
  nxc_shell_word *kept = nxc_arena_alloc(p->arena, sizeof *kept);
  *kept = word;
  return kept;
}

/* A word behind an operator; between double quotes single ones are bytes, except in patterns. */
static nxc_shell_word *parse_operand(nxc_shell_parser *p, nxc_shell_end end, bool quoted) {
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
  if (!quoted) return keep(p, nxc_shell_parse_word(p, end));
  while (p->problem == NULL && p->at < p->text.n_bytes) {
    size_t before = p->at;
    nxc_shell_parse_quoted(p, &word, end, false);
    if (nxc_shell_peek(p, 0) == '"') p->at++; /* quotes within quotes: "${A:-"b"}" */
    if (p->at == before || nxc_shell_peek(p, 0) == '}') break;
  }
  return keep(p, word);
}

static void parse_name(nxc_shell_parser *p, nxc_shell_parameter *found) {
  size_t n_name = 0;
  char c = nxc_shell_peek(p, 0);
  if (isdigit((unsigned char)c)) {
    while (isdigit((unsigned char)nxc_shell_peek(p, n_name))) n_name++;
  } else if (nxc_shell_is_name(c)) {
    while (nxc_shell_is_name(nxc_shell_peek(p, n_name))) n_name++;
  } else if (c != '\0' && strchr("@*#?-$!", c)) {
    n_name = 1;
  }
  found->name = nxc_arena_strndup(p->arena, p->text.bytes + p->at, n_name);
  p->at += n_name;
}

static void parse_subscript(nxc_shell_parser *p, nxc_shell_parameter *found) {
  if (nxc_shell_peek(p, 0) != '[') return;
  char what = nxc_shell_peek(p, 1);
  if ((what == '@' || what == '*') && nxc_shell_peek(p, 2) == ']') {
    found->all = what;
    p->at += 3;
    return;
  }
  p->at++;
  found->subscript = keep(p, nxc_shell_parse_word(p, NXC_END_BRACKET));
  if (nxc_shell_peek(p, 0) == ']') p->at++;
}

static void parse_operator(nxc_shell_parser *p, nxc_shell_parameter *found, bool quoted) {
  char c = nxc_shell_peek(p, 0), next = nxc_shell_peek(p, 1);
  found->colon = c == ':' && next != '\0' && strchr("-=+?", next);
  if (found->colon) p->at++, c = next;
  if (c == '\0' || strchr("-=+?#%/:^,", c) == NULL) return;
  found->op = c;
  p->at++;
  next = nxc_shell_peek(p, 0);
  if (next == c && strchr("#%/^,", c)) found->twice = true, p->at++;
  if (c == '/' && !found->twice && (next == '#' || next == '%')) found->anchor = next, p->at++;
  if (strchr("-=+?", c)) {
    found->first = parse_operand(p, NXC_END_BRACE, quoted);
  } else if (strchr("#%^,", c)) {
    found->first = parse_operand(p, NXC_END_BRACE, false);
  } else {
    found->first = parse_operand(p, c == '/' ? NXC_END_SLASH : NXC_END_COLON, false);
    if (nxc_shell_peek(p, 0) != c) return;
    p->at++;
    found->second = parse_operand(p, NXC_END_BRACE, false);
  }
}

/* The } that closes, whatever stands between. */
static void skip_braces(nxc_shell_parser *p, size_t start) {
  unsigned depth = 0;
  for (p->at = start + 1; p->at < p->text.n_bytes; p->at++) {
    char c = nxc_shell_peek(p, 0);
    if (c == '{') depth++;
    if (c == '}' && --depth == 0) break;
  }
  if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this ${ does not end with }");
  else p->at++;
}

void nxc_shell_parse_braces(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t start) {
  nxc_shell_parameter found = {0};
  if (!nxc_shell_parse_enter(p)) return;
  p->at++;
  char c = nxc_shell_peek(p, 0), next = nxc_shell_peek(p, 1);
  found.length = c == '#' && next != '}' && next != '\0' && strchr(":-=+?%/", next) == NULL;
  found.indirect = c == '!' && nxc_shell_is_name(next);
  p->at += found.length || found.indirect;
  parse_name(p, &found);
  parse_subscript(p, &found);
  if (nxc_shell_peek(p, 0) != '}') parse_operator(p, &found, quoted);
  p->nesting--;
  if (p->problem != NULL) return;
  bool good = *found.name != '\0' && nxc_shell_peek(p, 0) == '}';
  if (good) p->at++;
  else skip_braces(p, start);
  if (p->problem != NULL) return;
  nxc_shell_part *part =
      nxc_shell_add_part(p, word, good ? NXC_PART_PARAMETER : NXC_PART_UNKNOWN, quoted);
  part->text = nxc_text_part(&p->text, start, p->at - start);
  part->parameter = nxc_arena_alloc(p->arena, sizeof found);
  *part->parameter = found;
}
