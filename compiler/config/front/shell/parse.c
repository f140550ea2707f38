/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/parse.h"

#include <string.h>

void nxc_shell_expect(nxc_shell_parser *p, const char *word, size_t start, const char *problem) {
  nxc_shell_skip_blanks(p, true);
  if (!nxc_shell_accept(p, word)) nxc_shell_parse_fail(p, start, problem);
}

nxc_shell_command *nxc_shell_parse_command(nxc_shell_parser *p) {
  size_t start = p->at;
  if (!nxc_shell_parse_enter(p)) return nxc_shell_new_command(p, NXC_COMMAND_SIMPLE, start);
  nxc_shell_command *command = nxc_shell_parse_compound(p, start);
  while (p->problem == NULL && command->kind != NXC_COMMAND_SIMPLE) {
    nxc_shell_skip_blanks(p, false);
    if (!nxc_shell_parse_redirect(p, command)) break;
  }
  p->nesting--;
  return command;
}

/* COMMAND | COMMAND, with ! or time in front. */
static nxc_shell_command *parse_pipe(nxc_shell_parser *p) {
  size_t start = p->at;
  bool negated = false;
  for (;;) {
    bool inverts = nxc_shell_accept(p, "!");
    if (!inverts && !nxc_shell_accept(p, "time") && !nxc_shell_accept(p, "-p")) break;
    negated ^= inverts;
    nxc_shell_skip_blanks(p, false);
  }
  nxc_shell_command *first = nxc_shell_parse_command(p);
  nxc_shell_command *pipe = nxc_shell_new_command(p, NXC_COMMAND_PIPE, start);
  pipe->negated = negated;
  nxc_shell_add_child(p, pipe, first);
  for (;;) {
    nxc_shell_skip_blanks(p, false);
    if (p->problem != NULL || nxc_shell_peek(p, 0) != '|' || nxc_shell_peek(p, 1) == '|') break;
    p->at += nxc_shell_peek(p, 1) == '&' ? 2 : 1;
    nxc_shell_skip_blanks(p, true);
    nxc_shell_add_child(p, pipe, nxc_shell_parse_command(p));
  }
  return pipe->n_children == 1 && !negated ? first : pipe;
}

static nxc_shell_command *parse_chain(nxc_shell_parser *p) {
  nxc_shell_command *left = parse_pipe(p);
  for (;;) {
    nxc_shell_skip_blanks(p, false);
    bool both = nxc_shell_accept(p, "&&"), either = !both && nxc_shell_accept(p, "||");
    if (p->problem != NULL || (!both && !either)) return left;
    nxc_shell_command *command = nxc_shell_new_command(p, both ? NXC_COMMAND_AND : NXC_COMMAND_OR, p->at);
    nxc_shell_skip_blanks(p, true);
    nxc_shell_add_child(p, command, left);
    nxc_shell_add_child(p, command, parse_pipe(p));
    left = command;
  }
}

static bool ends_list(const nxc_shell_parser *p, const char *const *ends) {
  for (size_t i = 0; ends != NULL && ends[i] != NULL; i++)
    if (nxc_shell_is_here(p, ends[i])) return true;
  return p->at >= p->text.n_bytes;
}

/* A word that only ends something, where nothing is open. */
static const char *stray(const nxc_shell_parser *p) {
  static const char *const words[] = {"then", "elif", "else", "fi", "do", "done",
                                      "esac", "}",    ")",    ";;", "&",  "|"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (nxc_shell_is_here(p, words[i])) return words[i];
  return NULL;
}

nxc_shell_command *nxc_shell_parse_list(nxc_shell_parser *p, const char *const *ends) {
  nxc_shell_command *list = nxc_shell_new_command(p, NXC_COMMAND_LIST, p->at);
  for (;;) {
    nxc_shell_skip_blanks(p, true);
    if (p->problem != NULL || ends_list(p, ends)) return list;
    size_t before = p->at;
    const char *end = stray(p);
    if (end != NULL) {
      const char *problem = nxc_arena_printf(
          p->arena, "bash stops here: nothing is open that %s could end", end);
      nxc_shell_parse_fail(p, before, problem);
      return list;
    }
    nxc_shell_command *command = parse_chain(p);
    nxc_shell_add_child(p, list, command);
    nxc_shell_skip_blanks(p, false);
    if (nxc_shell_accept(p, "&")) command->background = true;
    else if (!nxc_shell_is_here(p, ";;") && !nxc_shell_is_here(p, ";&")) nxc_shell_accept(p, ";");
    if (p->at == before && p->problem == NULL)
      nxc_shell_parse_fail(p, before, "bash takes no such sign here");
  }
}

nxc_shell_command *nxc_shell_parse(nxc_shell_parser *p) {
  return nxc_shell_parse_list(p, NULL);
}

nxc_shell_command *nxc_shell_parse_inside(nxc_shell_parser *p) {
  static const char *const ends[] = {")", NULL};
  size_t start = p->at;
  nxc_shell_command *command = nxc_shell_parse_list(p, ends);
  nxc_shell_skip_blanks(p, true);
  if (!nxc_shell_accept(p, ")")) nxc_shell_parse_fail(p, start, "this bracket does not end");
  return command;
}
