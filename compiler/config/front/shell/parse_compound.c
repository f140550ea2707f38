/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that hold commands: if, case, loops, groups, functions, [[ ]] and (( )). */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

/* -- compound commands ----------------------------------------------------------------------------------- */

static nxc_shell_command *parse_if(nxc_shell_parser *p, size_t start) {
  static const char *const then[] = {"then", NULL}, *const ends[] = {"elif", "else", "fi", NULL},
                           *const end[] = {"fi", NULL}, problem[] = "this if does not end with fi";
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_IF, start);
  do {
    nxc_shell_add_child(p, command, nxc_shell_parse_list(p, then));
    nxc_shell_expect(p, "then", start, problem);
    nxc_shell_add_child(p, command, nxc_shell_parse_list(p, ends));
  } while (p->problem == NULL && nxc_shell_accept(p, "elif"));
  if (nxc_shell_accept(p, "else")) nxc_shell_add_child(p, command, nxc_shell_parse_list(p, end));
  nxc_shell_expect(p, "fi", start, problem);
  return command;
}

static void parse_body(nxc_shell_parser *p, nxc_shell_command *command, size_t start) {
  static const char *const ends[] = {"done", NULL}, *const group[] = {"}", NULL};
  nxc_shell_skip_blanks(p, true);
  bool braces = nxc_shell_accept(p, "{");
  if (!braces && !nxc_shell_accept(p, "do")) nxc_shell_parse_fail(p, start, "this loop has no do");
  nxc_shell_add_child(p, command, nxc_shell_parse_list(p, braces ? group : ends));
  nxc_shell_expect(p, braces ? "}" : "done", start, "this loop does not end with done");
}

static nxc_shell_command *parse_while(nxc_shell_parser *p, size_t start, bool until) {
  static const char *const ends[] = {"do", NULL};
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_WHILE, start);
  command->until = until;
  nxc_shell_add_child(p, command, nxc_shell_parse_list(p, ends));
  parse_body(p, command, start);
  return command;
}

/* (( ... )), or the head of for ((a; b; c)): the texts between as sums. */
static bool parse_sums(nxc_shell_parser *p, nxc_shell_command *command) {
  size_t from = p->at + 2, depth = 0, at = from;
  for (; at < p->text.n_bytes; at++) {
    char c = p->text.marks[at] & NXC_MARK_UNKNOWN ? '\1' : p->text.bytes[at];
    bool ends = (c == ';' && command->kind == NXC_COMMAND_COUNT) || (c == ')' && depth == 0);
    if (c == '(') depth++;
    if (c == ')' && depth > 0) depth--;
    if (!ends) continue;
    nxc_shell_parser sum = {
        .arena = p->arena, .text = nxc_text_part(&p->text, from, at - from), .nesting = p->nesting};
    nxc_shell_word word = {.at = nxc_shell_origin(p, from)};
    nxc_shell_parse_quoted(&sum, &word, NXC_END_TEXT, true);
    nxc_shell_add_word(p, command, word);
    from = at + 1;
    if (c == ')') break;
  }
  if (at + 1 >= p->text.n_bytes || p->text.bytes[at + 1] != ')') return false;
  p->at = at + 2;
  return true;
}

static nxc_shell_command *parse_for(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_FOR, start);
  bool quoted;
  nxc_shell_skip_blanks(p, false);
  if (nxc_shell_peek(p, 0) == '(' && nxc_shell_peek(p, 1) == '(') {
    command->kind = NXC_COMMAND_COUNT;
    if (!parse_sums(p, command) || command->n_words != 3)
      nxc_shell_parse_fail(p, start, "this loop's ((...; ...; ...)) does not end");
  } else {
    size_t at = p->at;
    command->name = nxc_shell_bare_word(p, &quoted);
    if (p->at == at) return command;
    nxc_shell_skip_blanks(p, true);
    command->listed = nxc_shell_accept(p, "in");
    while (command->listed && p->problem == NULL) {
      nxc_shell_skip_blanks(p, false);
      if (nxc_shell_ends_word(nxc_shell_peek(p, 0))) break;
      nxc_shell_add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
    }
  }
  nxc_shell_skip_blanks(p, true);
  nxc_shell_accept(p, ";");
  parse_body(p, command, start);
  return command;
}

static void parse_clause(nxc_shell_parser *p, nxc_shell_command *command, size_t start) {
  static const char *const ends[] = {";;", ";&", "esac", NULL};
  nxc_shell_clause clause = {0};
  nxc_shell_accept(p, "(");
  do {
    nxc_shell_skip_blanks(p, true);
    clause.patterns = nxc_arena_grow(p->arena, clause.patterns, clause.n_patterns, sizeof *clause.patterns);
    clause.patterns[clause.n_patterns++] = nxc_shell_parse_word(p, NXC_END_BLANK);
    nxc_shell_skip_blanks(p, true);
  } while (p->problem == NULL && nxc_shell_accept(p, "|"));
  if (!nxc_shell_accept(p, ")")) nxc_shell_parse_fail(p, start, "a pattern of this case does not end with )");
  clause.body = nxc_shell_parse_list(p, ends);
  if (nxc_shell_accept(p, ";;&")) clause.goes_on = ';';
  else if (!nxc_shell_accept(p, ";;") && nxc_shell_accept(p, ";&")) clause.goes_on = '&';
  command->clauses =
      nxc_arena_grow(p->arena, command->clauses, command->n_clauses, sizeof *command->clauses);
  command->clauses[command->n_clauses++] = clause;
}

static nxc_shell_command *parse_case(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_CASE, start);
  nxc_shell_skip_blanks(p, false);
  nxc_shell_add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
  nxc_shell_expect(p, "in", start, "this case has no in");
  for (;;) {
    nxc_shell_skip_blanks(p, true);
    if (p->problem != NULL || nxc_shell_accept(p, "esac")) return command;
    if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this case does not end with esac");
    else parse_clause(p, command, start);
  }
}

/* Behind =~, where brackets are signs of the pattern. */
static nxc_shell_word parse_pattern(nxc_shell_parser *p) {
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
  unsigned depth = 0;
  while (p->problem == NULL && p->at < p->text.n_bytes) {
    nxc_shell_word piece = nxc_shell_parse_word(p, NXC_END_BLANK);
    for (size_t i = 0; i < piece.n_parts; i++)
      *nxc_shell_add_part(p, &word, NXC_PART_TEXT, false) = piece.parts[i];
    char c = nxc_shell_peek(p, 0);
    depth += c == '(';
    if (c == '\0' || strchr("(|)", c) == NULL || (c == ')' && depth == 0)) break;
    depth -= c == ')';
    nxc_shell_put_literal(p, &word, false, p->at++);
  }
  return word;
}

/* [[ ... ]]: signs are words. */
static nxc_shell_command *parse_test(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_TEST, start);
  bool pattern = false;
  while (p->problem == NULL) {
    nxc_shell_skip_blanks(p, true);
    if (nxc_shell_accept(p, "]]")) return command;
    const size_t before = p->at;
    nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
    char c = nxc_shell_peek(p, 0);
    size_t n_sign = c != '\0' && strchr("&|<>()", c) ? 1 + (strchr("&|", c) && nxc_shell_peek(p, 1) == c) : 0;
    if (pattern) {
      word = parse_pattern(p);
    } else if (n_sign > 0) {
      for (size_t i = 0; i < n_sign; i++) nxc_shell_put_literal(p, &word, false, p->at++);
    } else {
      word = nxc_shell_parse_word(p, NXC_END_BLANK);
    }
    pattern = nxc_shell_is_literal(&word, "=~");
    if (p->at == before) nxc_shell_parse_fail(p, start, "this [[ does not end with ]]");
    if (p->problem == NULL) nxc_shell_add_word(p, command, word);
  }
  return command;
}

static nxc_shell_command *parse_group(nxc_shell_parser *p, size_t start) {
  static const char *const ends[] = {"}", NULL};
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_GROUP, start);
  nxc_shell_add_child(p, command, nxc_shell_parse_list(p, ends));
  nxc_shell_expect(p, "}", start, "this group does not end with }");
  return command;
}

static nxc_shell_command *parse_round(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *sum = nxc_shell_new_command(p, NXC_COMMAND_SUM, start);
  if (nxc_shell_peek(p, 1) == '(' && parse_sums(p, sum)) return sum;
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_SUBSHELL, start);
  p->at++;
  nxc_shell_add_child(p, command, nxc_shell_parse_inside(p));
  return command;
}

/* NAME() and function NAME; false: none stands here. */
static bool parse_function_head(nxc_shell_parser *p, const char **name) {
  nxc_shell_parser look = *p;
  bool word = nxc_shell_accept(&look, "function"), quoted;
  nxc_shell_skip_blanks(&look, false);
  size_t from = look.at;
  if (nxc_shell_ends_word(nxc_shell_peek(&look, 0)) || strchr("'\"$`", nxc_shell_peek(&look, 0)))
    return false;
  *name = nxc_shell_bare_word(&look, &quoted);
  if (quoted || look.at == from || strchr(*name, '=') != NULL) return false;
  nxc_shell_skip_blanks(&look, false);
  bool round = nxc_shell_peek(&look, 0) == '(';
  if (round) {
    look.at++;
    nxc_shell_skip_blanks(&look, false);
    if (!nxc_shell_accept(&look, ")")) return false;
  }
  if (!word && !round) return false;
  p->at = look.at;
  nxc_shell_skip_blanks(p, true);
  return true;
}

nxc_shell_command *nxc_shell_parse_command(nxc_shell_parser *p);

nxc_shell_command *nxc_shell_parse_compound(nxc_shell_parser *p, size_t start) {
  const char *name;
  if (nxc_shell_accept(p, "if")) return parse_if(p, start);
  if (nxc_shell_accept(p, "case")) return parse_case(p, start);
  if (nxc_shell_accept(p, "while")) return parse_while(p, start, false);
  if (nxc_shell_accept(p, "until")) return parse_while(p, start, true);
  if (nxc_shell_accept(p, "for") || nxc_shell_accept(p, "select")) return parse_for(p, start);
  if (nxc_shell_accept(p, "{")) return parse_group(p, start);
  if (nxc_shell_accept(p, "[[")) return parse_test(p, start);
  if (nxc_shell_peek(p, 0) == '(') return parse_round(p, start);
  if (!parse_function_head(p, &name)) return nxc_shell_parse_simple(p);
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_FUNCTION, start);
  command->name = name;
  nxc_shell_add_child(p, command, nxc_shell_parse_command(p));
  return command;
}
