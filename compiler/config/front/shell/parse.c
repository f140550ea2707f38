/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

static nxc_shell_command *parse_list(nxc_shell_parser *p, const char *const *ends);

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

static void skip_blanks(nxc_shell_parser *p, bool lines) {
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

/* -- bare words ------------------------------------------------------------------------------------------ */

static bool is_here(const nxc_shell_parser *p, const char *word) {
  size_t n_bytes = strlen(word);
  for (size_t i = 0; i < n_bytes; i++)
    if (nxc_shell_peek(p, i) != word[i]) return false;
  return !isalpha((unsigned char)*word) && strchr("{}![", *word) == NULL
             ? true
             : nxc_shell_ends_word(nxc_shell_peek(p, n_bytes));
}

static bool take(nxc_shell_parser *p, const char *word) {
  if (!is_here(p, word)) return false;
  p->at += strlen(word);
  return true;
}

static nxc_shell_command *new_command(nxc_shell_parser *p, nxc_shell_command_kind kind, size_t at) {
  nxc_shell_command *command = nxc_arena_alloc(p->arena, sizeof *command);
  command->kind = kind;
  command->at = nxc_shell_origin(p, at);
  return command;
}

static void add_child(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_command *child) {
  command->children =
      nxc_arena_grow(p->arena, command->children, command->n_children, sizeof *command->children);
  command->children[command->n_children++] = child;
}

static void add_word(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_word word) {
  command->words = nxc_arena_grow(p->arena, command->words, command->n_words, sizeof *command->words);
  command->declared =
      nxc_arena_grow(p->arena, command->declared, command->n_words, sizeof *command->declared);
  command->declared[command->n_words] = NULL;
  command->words[command->n_words++] = word;
}

/* -- redirections ---------------------------------------------------------------------------------------- */

/* The word behind <<, bare; *quoted tells whether a part of it was quoted. */
static const char *bare_word(nxc_shell_parser *p, bool *quoted) {
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

static void parse_here(nxc_shell_parser *p, nxc_shell_redirect *redirect) {
  nxc_shell_here here = {.redirect = redirect, .tabs = nxc_shell_peek(p, 0) == '-'};
  p->at += here.tabs;
  skip_blanks(p, false);
  here.end = bare_word(p, &here.quoted);
  p->here = nxc_arena_grow(p->arena, p->here, p->n_here, sizeof *p->here);
  p->here[p->n_here++] = here;
}

/* N> FILE, <<END, <<<TEXT, &>FILE and their like; false: none stands here. */
static bool parse_redirect(nxc_shell_parser *p, nxc_shell_command *command) {
  size_t n_digits = 0;
  while (isdigit((unsigned char)nxc_shell_peek(p, n_digits))) n_digits++;
  char c = nxc_shell_peek(p, n_digits);
  bool both = n_digits == 0 && c == '&' && nxc_shell_peek(p, 1) == '>';
  if (both) c = '>', n_digits = 1;
  if ((c != '<' && c != '>') || (nxc_shell_peek(p, n_digits + 1) == '(' && n_digits == 0)) return false;
  nxc_shell_redirect redirect = {.kind = c, .stream = c == '>'};
  if (n_digits > 0) redirect.stream = both ? 3 : nxc_shell_peek(p, n_digits - 1) - '0';
  p->at += n_digits;
  bool doubled = nxc_shell_peek(p, 1) == c, tripled = doubled && nxc_shell_peek(p, 2) == '<';
  p->at += 1 + doubled + tripled;
  nxc_shell_redirect *kept = nxc_arena_alloc(p->arena, sizeof *kept);
  *kept = redirect;
  if (c == '<' && doubled) kept->kind = tripled ? 's' : 'h';
  if (kept->kind == 'h') {
    parse_here(p, kept);
  } else {
    while (nxc_shell_peek(p, 0) == '&' || nxc_shell_peek(p, 0) == '|') p->at++;
    skip_blanks(p, false);
    kept->target = nxc_shell_parse_word(p, NXC_END_BLANK);
  }
  command->redirects =
      nxc_arena_grow(p->arena, command->redirects, command->n_redirects, sizeof *command->redirects);
  command->redirects[command->n_redirects++] = kept;
  return true;
}

/* -- simple commands ------------------------------------------------------------------------------------- */

/* NAME=, NAME+= and NAME[...]= here: the bytes up to what is assigned; 0: none. */
static size_t assignment_head(const nxc_shell_parser *p, size_t *n_name) {
  size_t n = 0;
  if (isdigit((unsigned char)nxc_shell_peek(p, 0))) return 0;
  while (nxc_shell_is_name(nxc_shell_peek(p, n))) n++;
  *n_name = n;
  if (n == 0) return 0;
  if (nxc_shell_peek(p, n) == '[') {
    while (nxc_shell_peek(p, n) != ']' && !nxc_shell_is_blank(nxc_shell_peek(p, n)) &&
           p->at + n < p->text.n_bytes)
      n++;
    if (nxc_shell_peek(p, n++) != ']') return 0;
  }
  n += nxc_shell_peek(p, n) == '+';
  return nxc_shell_peek(p, n) == '=' ? n + 1 : 0;
}

/* [subscript]= at the beginning of an array's item. */
static nxc_shell_word *item_subscript(nxc_shell_parser *p) {
  size_t n = 0;
  if (nxc_shell_peek(p, 0) != '[') return NULL;
  while (p->at + n < p->text.n_bytes && nxc_shell_peek(p, n) != ']' && nxc_shell_peek(p, n) != '\n') n++;
  if (nxc_shell_peek(p, n) != ']' || nxc_shell_peek(p, n + 1) != '=') return NULL;
  p->at++;
  nxc_shell_word *subscript = nxc_arena_alloc(p->arena, sizeof *subscript);
  *subscript = nxc_shell_parse_word(p, NXC_END_BRACKET);
  p->at += 2;
  return subscript;
}

static void parse_array(nxc_shell_parser *p, nxc_shell_assignment *to) {
  size_t start = p->at++;
  to->array = true;
  for (;;) {
    skip_blanks(p, true);
    if (p->problem != NULL || p->at >= p->text.n_bytes || nxc_shell_peek(p, 0) == ')') break;
    size_t before = p->at;
    nxc_shell_word *subscript = item_subscript(p);
    nxc_shell_word item = nxc_shell_parse_word(p, NXC_END_BLANK);
    if (p->at == before) {
      nxc_shell_parse_fail(p, p->at, "bash takes no such sign in an array");
      return;
    }
    to->items = nxc_arena_grow(p->arena, to->items, to->n_items, sizeof *to->items);
    to->subscripts = nxc_arena_grow(p->arena, to->subscripts, to->n_items, sizeof *to->subscripts);
    to->subscripts[to->n_items] = subscript;
    to->items[to->n_items++] = item;
  }
  if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this array does not end");
  p->at++;
}

static nxc_shell_assignment parse_assignment(nxc_shell_parser *p, size_t n_head, size_t n_name) {
  nxc_shell_assignment found = {.name = nxc_arena_strndup(p->arena, p->text.bytes + p->at, n_name),
                                .at = nxc_shell_origin(p, p->at)};
  size_t end = p->at + n_head;
  found.appends = p->text.bytes[end - 2] == '+';
  if (nxc_shell_peek(p, n_name) == '[') {
    p->at += n_name + 1;
    found.subscript = nxc_arena_alloc(p->arena, sizeof *found.subscript);
    *found.subscript = nxc_shell_parse_word(p, NXC_END_BRACKET);
  }
  p->at = end;
  if (nxc_shell_peek(p, 0) == '(') parse_array(p, &found);
  else found.value = nxc_shell_parse_word(p, NXC_END_BLANK);
  return found;
}

static bool is_literal(const nxc_shell_word *word, const char *text) {
  return word->n_parts == 1 && word->parts[0].kind == NXC_PART_TEXT && !word->parts[0].quoted &&
         nxc_text_is(&word->parts[0].text, text);
}

static bool declares(const nxc_shell_command *command) {
  static const char *const names[] = {"export", "local", "declare", "readonly", "typeset"};
  for (size_t i = 0; command->n_words > 0 && i < sizeof names / sizeof *names; i++)
    if (is_literal(&command->words[0], names[i])) return true;
  return false;
}

/* --option (0.5)*2: texts of arguments alone are read without a shell's signs. */
static bool takes_signs(const nxc_shell_command *command) {
  const nxc_shell_word *first = command->n_words > 0 ? &command->words[0] : NULL;
  if (first == NULL || first->n_parts == 0 || first->parts[0].kind != NXC_PART_TEXT) return false;
  return first->parts[0].text.n_bytes > 1 && memcmp(first->parts[0].text.bytes, "--", 2) == 0;
}

static void put_sign(nxc_shell_parser *p, nxc_shell_command *command) {
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
  while (nxc_shell_peek(p, 0) == '(' || nxc_shell_peek(p, 0) == ')')
    nxc_shell_put_literal(p, &word, false, p->at++);
  add_word(p, command, word);
}

static void parse_piece(nxc_shell_parser *p, nxc_shell_command *command) {
  size_t n_name, n_head = assignment_head(p, &n_name);
  if (n_head > 0 && command->n_words == 0) {
    nxc_shell_assignment found = parse_assignment(p, n_head, n_name);
    command->assignments = nxc_arena_grow(p->arena, command->assignments, command->n_assignments,
                                          sizeof *command->assignments);
    command->assignments[command->n_assignments++] = found;
  } else if (n_head > 0 && declares(command)) {
    nxc_shell_assignment *found = nxc_arena_alloc(p->arena, sizeof *found);
    *found = parse_assignment(p, n_head, n_name);
    add_word(p, command, (nxc_shell_word){.at = found->at});
    command->declared[command->n_words - 1] = found;
  } else {
    add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
  }
}

static nxc_shell_command *parse_simple(nxc_shell_parser *p) {
  nxc_shell_command *command = new_command(p, NXC_COMMAND_SIMPLE, p->at);
  while (p->problem == NULL) {
    skip_blanks(p, false);
    if (p->at >= p->text.n_bytes || nxc_shell_peek(p, 0) == '\n') break;
    if (parse_redirect(p, command)) continue;
    char c = nxc_shell_peek(p, 0);
    bool process = (c == '<' || c == '>') && nxc_shell_peek(p, 1) == '(';
    if ((c == '(' || c == ')') && p->bare_options && takes_signs(command)) put_sign(p, command);
    else if (nxc_shell_ends_word(c) && !process) break;
    else parse_piece(p, command);
  }
  return command;
}

/* -- compound commands ----------------------------------------------------------------------------------- */

static void expect(nxc_shell_parser *p, const char *word, size_t start, const char *problem) {
  skip_blanks(p, true);
  if (!take(p, word)) nxc_shell_parse_fail(p, start, problem);
}

static nxc_shell_command *parse_if(nxc_shell_parser *p, size_t start) {
  static const char *const then[] = {"then", NULL}, *const ends[] = {"elif", "else", "fi", NULL},
                           *const end[] = {"fi", NULL}, problem[] = "this if does not end with fi";
  nxc_shell_command *command = new_command(p, NXC_COMMAND_IF, start);
  do {
    add_child(p, command, parse_list(p, then));
    expect(p, "then", start, problem);
    add_child(p, command, parse_list(p, ends));
  } while (p->problem == NULL && take(p, "elif"));
  if (take(p, "else")) add_child(p, command, parse_list(p, end));
  expect(p, "fi", start, problem);
  return command;
}

static void parse_body(nxc_shell_parser *p, nxc_shell_command *command, size_t start) {
  static const char *const ends[] = {"done", NULL}, *const group[] = {"}", NULL};
  skip_blanks(p, true);
  bool braces = take(p, "{");
  if (!braces && !take(p, "do")) nxc_shell_parse_fail(p, start, "this loop has no do");
  add_child(p, command, parse_list(p, braces ? group : ends));
  expect(p, braces ? "}" : "done", start, "this loop does not end with done");
}

static nxc_shell_command *parse_while(nxc_shell_parser *p, size_t start, bool until) {
  static const char *const ends[] = {"do", NULL};
  nxc_shell_command *command = new_command(p, NXC_COMMAND_WHILE, start);
  command->until = until;
  add_child(p, command, parse_list(p, ends));
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
    add_word(p, command, word);
    from = at + 1;
    if (c == ')') break;
  }
  if (at + 1 >= p->text.n_bytes || p->text.bytes[at + 1] != ')') return false;
  p->at = at + 2;
  return true;
}

static nxc_shell_command *parse_for(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = new_command(p, NXC_COMMAND_FOR, start);
  bool quoted;
  skip_blanks(p, false);
  if (nxc_shell_peek(p, 0) == '(' && nxc_shell_peek(p, 1) == '(') {
    command->kind = NXC_COMMAND_COUNT;
    if (!parse_sums(p, command) || command->n_words != 3)
      nxc_shell_parse_fail(p, start, "this loop's ((...; ...; ...)) does not end");
  } else {
    size_t at = p->at;
    command->name = bare_word(p, &quoted);
    if (p->at == at) return command;
    skip_blanks(p, true);
    command->listed = take(p, "in");
    while (command->listed && p->problem == NULL) {
      skip_blanks(p, false);
      if (nxc_shell_ends_word(nxc_shell_peek(p, 0))) break;
      add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
    }
  }
  skip_blanks(p, true);
  take(p, ";");
  parse_body(p, command, start);
  return command;
}

static void parse_clause(nxc_shell_parser *p, nxc_shell_command *command, size_t start) {
  static const char *const ends[] = {";;", ";&", "esac", NULL};
  nxc_shell_clause clause = {0};
  take(p, "(");
  do {
    skip_blanks(p, true);
    clause.patterns = nxc_arena_grow(p->arena, clause.patterns, clause.n_patterns, sizeof *clause.patterns);
    clause.patterns[clause.n_patterns++] = nxc_shell_parse_word(p, NXC_END_BLANK);
    skip_blanks(p, true);
  } while (p->problem == NULL && take(p, "|"));
  if (!take(p, ")")) nxc_shell_parse_fail(p, start, "a pattern of this case does not end with )");
  clause.body = parse_list(p, ends);
  if (take(p, ";;&")) clause.goes_on = ';';
  else if (!take(p, ";;") && take(p, ";&")) clause.goes_on = '&';
  command->clauses =
      nxc_arena_grow(p->arena, command->clauses, command->n_clauses, sizeof *command->clauses);
  command->clauses[command->n_clauses++] = clause;
}

static nxc_shell_command *parse_case(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = new_command(p, NXC_COMMAND_CASE, start);
  skip_blanks(p, false);
  add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
  expect(p, "in", start, "this case has no in");
  for (;;) {
    skip_blanks(p, true);
    if (p->problem != NULL || take(p, "esac")) return command;
    if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this case does not end with esac");
    else parse_clause(p, command, start);
  }
}

/* [[ ... ]]: signs are words. */
static nxc_shell_command *parse_test(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *command = new_command(p, NXC_COMMAND_TEST, start);
  bool pattern = false;
  while (p->problem == NULL) {
    skip_blanks(p, true);
    if (take(p, "]]")) return command;
    if (p->at >= p->text.n_bytes) nxc_shell_parse_fail(p, start, "this [[ does not end with ]]");
    nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
    char c = nxc_shell_peek(p, 0);
    size_t n_sign = c != '\0' && strchr("&|<>()", c) ? 1 + (strchr("&|", c) && nxc_shell_peek(p, 1) == c) : 0;
    unsigned depth = 0;
    if (pattern) { /* behind =~ brackets are signs of the pattern */
      while (p->problem == NULL && p->at < p->text.n_bytes) {
        nxc_shell_word piece = nxc_shell_parse_word(p, NXC_END_BLANK);
        for (size_t i = 0; i < piece.n_parts; i++)
          *nxc_shell_add_part(p, &word, NXC_PART_TEXT, false) = piece.parts[i];
        c = nxc_shell_peek(p, 0);
        depth += c == '(';
        if (c == '\0' || strchr("(|)", c) == NULL || (c == ')' && depth == 0)) break;
        depth -= c == ')';
        nxc_shell_put_literal(p, &word, false, p->at++);
      }
    } else if (n_sign > 0) {
      for (size_t i = 0; i < n_sign; i++) nxc_shell_put_literal(p, &word, false, p->at++);
    } else {
      word = nxc_shell_parse_word(p, NXC_END_BLANK);
    }
    pattern = is_literal(&word, "=~");
    if (p->problem == NULL) add_word(p, command, word);
  }
  return command;
}

static nxc_shell_command *parse_group(nxc_shell_parser *p, size_t start) {
  static const char *const ends[] = {"}", NULL};
  nxc_shell_command *command = new_command(p, NXC_COMMAND_GROUP, start);
  add_child(p, command, parse_list(p, ends));
  expect(p, "}", start, "this group does not end with }");
  return command;
}

nxc_shell_command *nxc_shell_parse_inside(nxc_shell_parser *p) {
  static const char *const ends[] = {")", NULL};
  size_t start = p->at;
  nxc_shell_command *command = parse_list(p, ends);
  skip_blanks(p, true);
  if (!take(p, ")")) nxc_shell_parse_fail(p, start, "this bracket does not end");
  return command;
}

static nxc_shell_command *parse_round(nxc_shell_parser *p, size_t start) {
  nxc_shell_command *sum = new_command(p, NXC_COMMAND_SUM, start);
  if (nxc_shell_peek(p, 1) == '(' && parse_sums(p, sum)) return sum;
  nxc_shell_command *command = new_command(p, NXC_COMMAND_SUBSHELL, start);
  p->at++;
  add_child(p, command, nxc_shell_parse_inside(p));
  return command;
}

/* NAME() and function NAME; false: none stands here. */
static bool parse_function_head(nxc_shell_parser *p, const char **name) {
  nxc_shell_parser look = *p;
  bool word = take(&look, "function"), quoted;
  skip_blanks(&look, false);
  size_t from = look.at;
  if (nxc_shell_ends_word(nxc_shell_peek(&look, 0)) || strchr("'\"$`", nxc_shell_peek(&look, 0)))
    return false;
  *name = bare_word(&look, &quoted);
  if (quoted || look.at == from || strchr(*name, '=') != NULL) return false;
  skip_blanks(&look, false);
  bool round = nxc_shell_peek(&look, 0) == '(';
  if (round) {
    look.at++;
    skip_blanks(&look, false);
    if (!take(&look, ")")) return false;
  }
  if (!word && !round) return false;
  p->at = look.at;
  skip_blanks(p, true);
  return true;
}

static nxc_shell_command *parse_command(nxc_shell_parser *p);

static nxc_shell_command *parse_any(nxc_shell_parser *p, size_t start) {
  const char *name;
  if (take(p, "if")) return parse_if(p, start);
  if (take(p, "case")) return parse_case(p, start);
  if (take(p, "while")) return parse_while(p, start, false);
  if (take(p, "until")) return parse_while(p, start, true);
  if (take(p, "for") || take(p, "select")) return parse_for(p, start);
  if (take(p, "{")) return parse_group(p, start);
  if (take(p, "[[")) return parse_test(p, start);
  if (nxc_shell_peek(p, 0) == '(') return parse_round(p, start);
  if (!parse_function_head(p, &name)) return parse_simple(p);
  nxc_shell_command *command = new_command(p, NXC_COMMAND_FUNCTION, start);
  command->name = name;
  add_child(p, command, parse_command(p));
  return command;
}

static nxc_shell_command *parse_command(nxc_shell_parser *p) {
  size_t start = p->at;
  if (!nxc_shell_parse_enter(p)) return new_command(p, NXC_COMMAND_SIMPLE, start);
  nxc_shell_command *command = parse_any(p, start);
  while (p->problem == NULL && command->kind != NXC_COMMAND_SIMPLE) {
    skip_blanks(p, false);
    if (!parse_redirect(p, command)) break;
  }
  p->nesting--;
  return command;
}

/* COMMAND | COMMAND, with ! or time in front. */
static nxc_shell_command *parse_pipe(nxc_shell_parser *p) {
  size_t start = p->at;
  bool negated = false;
  while (take(p, "!") ? (negated = !negated, true) : take(p, "time") || take(p, "-p")) skip_blanks(p, false);
  nxc_shell_command *first = parse_command(p);
  nxc_shell_command *pipe = new_command(p, NXC_COMMAND_PIPE, start);
  pipe->negated = negated;
  add_child(p, pipe, first);
  for (;;) {
    skip_blanks(p, false);
    if (p->problem != NULL || nxc_shell_peek(p, 0) != '|' || nxc_shell_peek(p, 1) == '|') break;
    p->at += nxc_shell_peek(p, 1) == '&' ? 2 : 1;
    skip_blanks(p, true);
    add_child(p, pipe, parse_command(p));
  }
  return pipe->n_children == 1 && !negated ? first : pipe;
}

static nxc_shell_command *parse_chain(nxc_shell_parser *p) {
  nxc_shell_command *left = parse_pipe(p);
  for (;;) {
    skip_blanks(p, false);
    bool both = take(p, "&&"), either = !both && take(p, "||");
    if (p->problem != NULL || (!both && !either)) return left;
    nxc_shell_command *command = new_command(p, both ? NXC_COMMAND_AND : NXC_COMMAND_OR, p->at);
    skip_blanks(p, true);
    add_child(p, command, left);
    add_child(p, command, parse_pipe(p));
    left = command;
  }
}

static bool ends_list(const nxc_shell_parser *p, const char *const *ends) {
  for (size_t i = 0; ends != NULL && ends[i] != NULL; i++)
    if (is_here(p, ends[i])) return true;
  return p->at >= p->text.n_bytes;
}

/* A word that only ends something, where nothing is open. */
static const char *stray(const nxc_shell_parser *p) {
  static const char *const words[] = {"then", "elif", "else", "fi", "do", "done", "esac", "}", ")", ";;", "&", "|"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_here(p, words[i])) return words[i];
  return NULL;
}

static nxc_shell_command *parse_list(nxc_shell_parser *p, const char *const *ends) {
  nxc_shell_command *list = new_command(p, NXC_COMMAND_LIST, p->at);
  for (;;) {
    skip_blanks(p, true);
    if (p->problem != NULL || ends_list(p, ends)) return list;
    size_t before = p->at;
    const char *end = stray(p);
    if (end != NULL) {
      nxc_shell_parse_fail(p, before, nxc_arena_printf(p->arena, "bash stops here: nothing is open that %s could end", end));
      return list;
    }
    nxc_shell_command *command = parse_chain(p);
    add_child(p, list, command);
    skip_blanks(p, false);
    if (take(p, "&") ) command->background = true;
    else if (!is_here(p, ";;") && !is_here(p, ";&")) take(p, ";");
    if (p->at == before && p->problem == NULL) nxc_shell_parse_fail(p, before, "bash takes no such sign here");
  }
}

nxc_shell_command *nxc_shell_parse(nxc_shell_parser *p) {
  return parse_list(p, NULL);
}
