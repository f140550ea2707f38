/* SPDX-License-Identifier: Apache-2.0 */
/* Simple commands: assignments, words and redirections. */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

/* -- redirections ---------------------------------------------------------------------------------------- */

bool nxc_shell_parse_redirect(nxc_shell_parser *p, nxc_shell_command *command) {
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
  kept->appends = c == '>' && doubled;
  if (kept->kind == 'h') {
    nxc_shell_parse_here(p, kept);
  } else {
    while (nxc_shell_peek(p, 0) == '&' || nxc_shell_peek(p, 0) == '|') p->at++;
    nxc_shell_skip_blanks(p, false);
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
    nxc_shell_skip_blanks(p, true);
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

/* X=<path of the data> up to the end of the line: its bytes; 0: none. */
static size_t placeholder(const nxc_shell_parser *p) {
  size_t n = nxc_text_in_angles(&p->text, p->at), end = n;
  while (nxc_shell_is_blank(nxc_shell_peek(p, end)) && nxc_shell_peek(p, end) != '\n') end++;
  bool comment = end > n && nxc_shell_peek(p, end) == '#';
  return comment || nxc_shell_peek(p, end) == '\n' || p->at + end >= p->text.n_bytes ? n : 0;
}

static void put_placeholder(nxc_shell_parser *p, nxc_shell_word *word, size_t n_bytes) {
  nxc_shell_add_part(p, word, NXC_PART_UNKNOWN, true)->text = nxc_text_part(&p->text, p->at, n_bytes);
  p->at += n_bytes;
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
  found.value.at = nxc_shell_origin(p, p->at);
  size_t n_placeholder = placeholder(p);
  if (nxc_shell_peek(p, 0) == '(') parse_array(p, &found);
  else if (n_placeholder > 0) put_placeholder(p, &found.value, n_placeholder);
  else found.value = nxc_shell_parse_word(p, NXC_END_BLANK);
  return found;
}

bool nxc_shell_is_literal(const nxc_shell_word *word, const char *text) {
  return word->n_parts == 1 && word->parts[0].kind == NXC_PART_TEXT && !word->parts[0].quoted &&
         nxc_text_is(&word->parts[0].text, text);
}

static bool declares(const nxc_shell_command *command) {
  static const char *const names[] = {"export", "local", "declare", "readonly", "typeset"};
  for (size_t i = 0; command->n_words > 0 && i < sizeof names / sizeof *names; i++)
    if (nxc_shell_is_literal(&command->words[0], names[i])) return true;
  return false;
}

/* --option (0.5)*2: a text of arguments alone, which is read without a shell's signs. */
static bool is_options(const nxc_shell_command *command) {
  const nxc_shell_word *first = command->n_words > 0 ? &command->words[0] : NULL;
  if (first == NULL || first->n_parts == 0 || first->parts[0].kind != NXC_PART_TEXT) return false;
  return first->parts[0].text.n_bytes > 1 && memcmp(first->parts[0].text.bytes, "--", 2) == 0;
}

static void put_sign(nxc_shell_parser *p, nxc_shell_command *command) {
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)};
  while (nxc_shell_peek(p, 0) == '(' || nxc_shell_peek(p, 0) == ')')
    nxc_shell_put_literal(p, &word, false, p->at++);
  nxc_shell_add_word(p, command, word);
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
    nxc_shell_add_word(p, command, (nxc_shell_word){.at = found->at});
    command->declared[command->n_words - 1] = found;
  } else {
    nxc_shell_add_word(p, command, nxc_shell_parse_word(p, NXC_END_BLANK));
  }
}

/* --save <path of checkpoints>/first, --save=<path>: no file to read from, and what is between the angles is
 * no word. */
static bool parse_left_open(nxc_shell_parser *p, nxc_shell_command *command) {
  size_t n = command->n_words > 0 ? nxc_text_in_angles(&p->text, p->at) : 0;
  nxc_shell_word *last = n > 0 ? &command->words[command->n_words - 1] : NULL;
  bool option = last != NULL && last->n_parts > 0 && last->parts[0].text.n_bytes > 0 &&
                last->parts[0].text.bytes[0] == '-';
  if (n == 0 || (!option && memchr(p->text.bytes + p->at, ' ', n) == NULL)) return false;
  bool joined = p->text.bytes[p->at - 1] == '=';
  nxc_shell_word word = {.at = nxc_shell_origin(p, p->at)}, *to = joined ? last : &word;
  put_placeholder(p, to, n);
  nxc_shell_parse_rest(p, to, NXC_END_BLANK);
  if (!joined) nxc_shell_add_word(p, command, word);
  return true;
}

nxc_shell_command *nxc_shell_parse_simple(nxc_shell_parser *p) {
  nxc_shell_command *command = nxc_shell_new_command(p, NXC_COMMAND_SIMPLE, p->at);
  while (p->problem == NULL) {
    nxc_shell_skip_blanks(p, false);
    if (p->at >= p->text.n_bytes || nxc_shell_peek(p, 0) == '\n') break;
    if (parse_left_open(p, command) || nxc_shell_parse_redirect(p, command)) continue;
    char c = nxc_shell_peek(p, 0);
    bool process = (c == '<' || c == '>') && nxc_shell_peek(p, 1) == '(';
    if ((c == '(' || c == ')') && p->bare_options && is_options(command)) put_sign(p, command);
    else if (nxc_shell_ends_word(c) && !process) break;
    else parse_piece(p, command);
  }
  return command;
}
