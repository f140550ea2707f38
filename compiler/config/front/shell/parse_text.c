/* SPDX-License-Identifier: Apache-2.0 */
/* What all that reads a script uses: its characters, the tree that it makes, and where it fails. */
#include "compiler/config/front/shell/parse.h"

#include <ctype.h>
#include <string.h>

/* What is unknown is a letter like any other; blanks between words that may be there part those. */
char nxc_shell_peek(const nxc_shell_parser *p, size_t ahead) {
  size_t at = p->at + ahead;
  if (at >= p->text.n_bytes) return '\0';
  if ((p->text.marks[at] & NXC_MARK_MAYBE) && p->text.bytes[at] == ' ') return ' ';
  return p->text.marks[at] & NXC_MARK_UNKNOWN ? '\1' : p->text.bytes[at];
}

size_t nxc_shell_origin(const nxc_shell_parser *p, size_t at) {
  if (p->text.n_bytes == 0) return 0;
  return at < p->text.n_bytes ? p->text.origins[at] : p->text.origins[p->text.n_bytes - 1];
}

void nxc_shell_parse_fail(nxc_shell_parser *p, size_t at, const char *problem) {
  if (p->problem == NULL) p->problem_at = nxc_shell_origin(p, at), p->problem = problem;
  p->at = p->text.n_bytes;
}

bool nxc_shell_parse_enter(nxc_shell_parser *p) {
  if (++p->nesting > NXC_SHELL_NESTING_MAX)
    nxc_shell_parse_fail(p, p->at, "this is nested too deeply to be followed");
  return p->problem == NULL;
}

bool nxc_shell_is_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

bool nxc_shell_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool nxc_shell_ends_word(char c) {
  return c == '\0' || nxc_shell_is_blank(c) || strchr(";&|()<>", c) != NULL;
}

nxc_shell_part *nxc_shell_add_part(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_part_kind kind,
                                   bool quoted) {
  word->parts = nxc_arena_grow(p->arena, word->parts, word->n_parts, sizeof *word->parts);
  nxc_shell_part *part = &word->parts[word->n_parts++];
  *part = (nxc_shell_part){.kind = kind, .quoted = quoted};
  return part;
}

nxc_shell_part *nxc_shell_text_part(nxc_shell_parser *p, nxc_shell_word *word, bool quoted) {
  nxc_shell_part *last = word->n_parts ? &word->parts[word->n_parts - 1] : NULL;
  if (last != NULL && last->kind == NXC_PART_TEXT && last->quoted == quoted) return last;
  return nxc_shell_add_part(p, word, NXC_PART_TEXT, quoted);
}

void nxc_shell_put_literal(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t at) {
  nxc_shell_part *part = nxc_shell_text_part(p, word, quoted);
  if (at >= p->text.n_bytes) return;
  nxc_text_put(p->arena, &part->text, p->text.bytes[at], p->text.origins[at],
               (unsigned char)(p->text.marks[at] | (quoted ? NXC_MARK_QUOTED : 0)));
}

bool nxc_shell_is_here(const nxc_shell_parser *p, const char *word) {
  size_t n_bytes = strlen(word);
  for (size_t i = 0; i < n_bytes; i++)
    if (nxc_shell_peek(p, i) != word[i]) return false;
  return !isalpha((unsigned char)*word) && strchr("{}![", *word) == NULL
             ? true
             : nxc_shell_ends_word(nxc_shell_peek(p, n_bytes));
}

bool nxc_shell_accept(nxc_shell_parser *p, const char *word) {
  if (!nxc_shell_is_here(p, word)) return false;
  p->at += strlen(word);
  return true;
}

nxc_shell_command *nxc_shell_new_command(nxc_shell_parser *p, nxc_shell_command_kind kind, size_t at) {
  nxc_shell_command *command = nxc_arena_alloc(p->arena, sizeof *command);
  command->kind = kind;
  command->at = nxc_shell_origin(p, at);
  return command;
}

void nxc_shell_add_child(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_command *child) {
  command->children =
      nxc_arena_grow(p->arena, command->children, command->n_children, sizeof *command->children);
  command->children[command->n_children++] = child;
}

void nxc_shell_add_word(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_word word) {
  command->words = nxc_arena_grow(p->arena, command->words, command->n_words, sizeof *command->words);
  command->declared =
      nxc_arena_grow(p->arena, command->declared, command->n_words, sizeof *command->declared);
  command->declared[command->n_words] = NULL;
  command->words[command->n_words++] = word;
}
