/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/parse.h"

#include <string.h>

static void parse_single(nxc_shell_parser *p, nxc_shell_word *word) {
  size_t start = p->at++;
  nxc_shell_text_part(p, word, true);
  while (p->at < p->text.n_bytes && nxc_shell_peek(p, 0) != '\'')
    nxc_shell_put_literal(p, word, true, p->at++);
  if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this quote does not end");
  else p->at++;
}

/* $'...' */
static void parse_escaped(nxc_shell_parser *p, nxc_shell_word *word) {
  static const char letters[] = "nrtabfve\\'\"?", values[] = "\n\r\t\a\b\f\v\033\\'\"?";
  size_t start = p->at++;
  nxc_shell_part *part = nxc_shell_text_part(p, word, true);
  while (p->at < p->text.n_bytes && nxc_shell_peek(p, 0) != '\'') {
    char next = nxc_shell_peek(p, 0) == '\\' ? nxc_shell_peek(p, 1) : '\0';
    const char *letter = next ? strchr(letters, next) : NULL;
    p->at += letter != NULL;
    char byte = letter ? values[letter - letters] : p->text.bytes[p->at];
    nxc_text_put(p->arena, &part->text, byte, p->text.origins[p->at],
                 (unsigned char)(p->text.marks[p->at] | NXC_MARK_QUOTED));
    p->at++;
  }
  if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this quote does not end");
  else p->at++;
}

/* `...`, where a backslash keeps \ $ and `. */
static void parse_backquotes(nxc_shell_parser *p, nxc_shell_word *word, bool quoted) {
  size_t start = p->at++;
  nxc_text inside = {0};
  while (p->at < p->text.n_bytes && nxc_shell_peek(p, 0) != '`') {
    char next = nxc_shell_peek(p, 1);
    if (nxc_shell_peek(p, 0) == '\\' && next != '\0' && strchr("\\$`", next)) p->at++;
    nxc_text_put(p->arena, &inside, p->text.bytes[p->at], p->text.origins[p->at], p->text.marks[p->at]);
    p->at++;
  }
  if (p->at >= p->text.n_bytes) {
    nxc_shell_parse_fail(p, start, "this command between backquotes does not end");
    return;
  }
  p->at++;
  nxc_shell_parser inner = {.arena = p->arena, .text = inside, .nesting = p->nesting};
  nxc_shell_part *part = nxc_shell_add_part(p, word, NXC_PART_COMMAND, quoted);
  part->text = nxc_text_part(&p->text, start, p->at - start);
  if (nxc_shell_parse_enter(&inner)) part->command = nxc_shell_parse(&inner);
  if (inner.problem != NULL) nxc_shell_parse_fail(p, start, inner.problem);
}

/* The index behind the ) that closes what was opened at `from`; 0: none. */
static size_t behind_sum(const nxc_shell_parser *p, size_t from) {
  unsigned depth = 0;
  for (size_t i = from; i < p->text.n_bytes; i++) {
    if (p->text.marks[i] & NXC_MARK_UNKNOWN) continue;
    if (p->text.bytes[i] == '(') depth++;
    if (p->text.bytes[i] == ')' && --depth == 0) return i + 1;
  }
  return 0;
}

/* $(( ... )); false: it is a command whose first is a group. */
static bool parse_sum(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t start) {
  size_t inner = behind_sum(p, p->at + 1);
  if (inner == 0 || inner >= p->text.n_bytes || p->text.bytes[inner] != ')') return false;
  nxc_shell_parser sum = {.arena = p->arena,
                          .text = nxc_text_part(&p->text, p->at + 2, inner - 1 - (p->at + 2)),
                          .nesting = p->nesting};
  nxc_shell_word *operands = nxc_arena_alloc(p->arena, sizeof *operands);
  operands->at = nxc_shell_origin(p, p->at);
  if (nxc_shell_parse_enter(&sum)) nxc_shell_parse_quoted(&sum, operands, NXC_END_TEXT, true);
  if (sum.problem != NULL) nxc_shell_parse_fail(p, start, sum.problem);
  if (p->problem != NULL) return true;
  p->at = inner + 1;
  nxc_shell_part *part = nxc_shell_add_part(p, word, NXC_PART_ARITHMETIC, quoted);
  part->text = nxc_text_part(&p->text, start, p->at - start);
  part->sum = operands;
  return true;
}

static void parse_substitution(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t start,
                               nxc_shell_part_kind kind) {
  if (!nxc_shell_parse_enter(p)) return;
  p->at++;
  nxc_shell_command *command = nxc_shell_parse_inside(p);
  p->nesting--;
  nxc_shell_part *part = nxc_shell_add_part(p, word, kind, quoted);
  part->text = nxc_text_part(&p->text, start, p->at - start);
  part->command = command;
}

static void add_plain_parameter(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t start,
                                size_t n_name) {
  nxc_shell_part *part = nxc_shell_add_part(p, word, NXC_PART_PARAMETER, quoted);
  p->at = start + 1 + n_name;
  part->text = nxc_text_part(&p->text, start, 1 + n_name);
  part->parameter = nxc_arena_alloc(p->arena, sizeof *part->parameter);
  part->parameter->name = nxc_arena_strndup(p->arena, p->text.bytes + start + 1, n_name);
}

static void parse_dollar(nxc_shell_parser *p, nxc_shell_word *word, bool quoted) {
  size_t start = p->at++, n_name = 0;
  char next = nxc_shell_peek(p, 0);
  if (next == '(' && nxc_shell_peek(p, 1) == '(' && parse_sum(p, word, quoted, start)) return;
  if (next == '(') {
    parse_substitution(p, word, quoted, start, NXC_PART_COMMAND);
  } else if (next == '{') {
    nxc_shell_parse_braces(p, word, quoted, start);
  } else if (next == '\'' && !quoted) {
    parse_escaped(p, word);
  } else if (next == '"' && !quoted) {
    return; /* $"..." is a text like any other */
  } else if (next != '\0' && strchr("@*#?-$!0123456789", next)) {
    add_plain_parameter(p, word, quoted, start, 1);
  } else {
    while (nxc_shell_is_name(nxc_shell_peek(p, n_name))) n_name++;
    if (n_name > 0) add_plain_parameter(p, word, quoted, start, n_name);
    else nxc_shell_put_literal(p, word, quoted, start);
  }
}

static bool at_end(const nxc_shell_parser *p, nxc_shell_end end) {
  char c = nxc_shell_peek(p, 0);
  if (p->at >= p->text.n_bytes) return true;
  switch (end) {
  case NXC_END_BLANK: return nxc_shell_ends_word(c);
  case NXC_END_BRACE: return c == '}';
  case NXC_END_SLASH: return c == '}' || c == '/';
  case NXC_END_COLON: return c == '}' || c == ':';
  case NXC_END_BRACKET: return c == ']';
  case NXC_END_TEXT: return false;
  }
  return true;
}

/* Bytes of a backslash that lets the line go on, with the break behind it. */
static size_t continuation_bytes(const nxc_shell_parser *p) {
  if (nxc_shell_peek(p, 0) != '\\') return 0;
  if (nxc_shell_peek(p, 1) == '\n') return 2;
  return nxc_shell_peek(p, 1) == '\r' && nxc_shell_peek(p, 2) == '\n' ? 3 : 0;
}

void nxc_shell_parse_quoted(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_end end, bool here) {
  nxc_shell_text_part(p, word, true);
  while (p->problem == NULL && !at_end(p, end)) {
    char c = nxc_shell_peek(p, 0), next = nxc_shell_peek(p, 1);
    size_t n_continued = continuation_bytes(p);
    if (c == '"' && !here) return;
    if (n_continued > 0) p->at += n_continued;
    else if (c == '\\' && next != '\0' && (strchr("\\$`", next) || (next == '"' && !here) ||
                                           (next == '}' && end != NXC_END_TEXT)))
      nxc_shell_put_literal(p, word, true, p->at + 1), p->at += 2;
    else if (c == '$') parse_dollar(p, word, true);
    else if (c == '`') parse_backquotes(p, word, true);
    else nxc_shell_put_literal(p, word, true, p->at++);
  }
}

static void parse_double(nxc_shell_parser *p, nxc_shell_word *word) {
  size_t start = p->at++, n_before = word->n_parts;
  nxc_shell_parse_quoted(p, word, NXC_END_TEXT, false);
  if (nxc_shell_peek(p, 0) != '"') nxc_shell_parse_fail(p, start, "this quote does not end");
  else p->at++;
  /* "$@" is no word where there is none: the empty text in front of it is no part of its own */
  bool bare = word->n_parts == n_before + 2 && word->parts[n_before].text.n_bytes == 0 &&
              word->parts[n_before + 1].kind == NXC_PART_PARAMETER;
  if (!bare) return;
  word->parts[n_before] = word->parts[n_before + 1];
  word->n_parts--;
}

void nxc_shell_parse_rest(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_end end) {
  while (p->problem == NULL && !at_end(p, end)) {
    char c = nxc_shell_peek(p, 0), next = nxc_shell_peek(p, 1);
    size_t n_continued = continuation_bytes(p);
    if (n_continued > 0) {
      p->at += n_continued;
    } else if (c == '\'') parse_single(p, word);
    else if (c == '"') parse_double(p, word);
    else if (c == '\\' && p->at + 1 < p->text.n_bytes && next != '\r')
      nxc_shell_put_literal(p, word, true, p->at + 1), p->at += 2;
    else if (c == '$') parse_dollar(p, word, false);
    else if (c == '`') parse_backquotes(p, word, false);
    else nxc_shell_put_literal(p, word, false, p->at++);
  }
}

nxc_shell_word nxc_shell_parse_word(nxc_shell_parser *p, nxc_shell_end end) {
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
  nxc_shell_parse_rest(p, &word, end);
  if (end == NXC_END_BLANK && word.n_parts == 0 &&
      (nxc_shell_peek(p, 0) == '<' || nxc_shell_peek(p, 0) == '>') && nxc_shell_peek(p, 1) == '(') {
    size_t start = p->at++;
    parse_substitution(p, &word, false, start, NXC_PART_UNKNOWN);
  }
  return word;
}
