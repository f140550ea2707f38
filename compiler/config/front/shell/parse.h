/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of shell texts: words (parse_word.c), ${...} (parse_parameter.c), what stands between words
 * (parse_here.c), and commands: simple ones, those that hold others, and lists of them (parse.c).
 *
 * A text may have bytes that stand for an unknown value; they are never a sign. After a failure nothing more
 * is read. */
#ifndef NXC_SHELL_PARSE_H
#define NXC_SHELL_PARSE_H

#include "compiler/config/front/shell/syntax.h"

enum { NXC_SHELL_NESTING_MAX = 64 };

typedef struct nxc_shell_here {
  nxc_shell_redirect *redirect;
  const char *end;
  bool quoted, tabs;
} nxc_shell_here;

typedef struct nxc_shell_parser {
  nxc_arena *arena;
  nxc_text text;
  size_t at;
  unsigned nesting;
  const char *problem; /* NULL: none yet */
  size_t problem_at;   /* byte of the source */
  nxc_shell_here *here; /* whose lines have not begun yet */
  size_t n_here;
  bool bare_options; /* a command that begins with an option may hold any sign but an end of the line */
} nxc_shell_parser;

/* Where a word ends. */
typedef enum nxc_shell_end {
  NXC_END_BLANK, /* as between commands */
  NXC_END_BRACE, /* at } */
  NXC_END_SLASH, /* at } and / */
  NXC_END_COLON, /* at } and : */
  NXC_END_BRACKET, /* at ] */
  NXC_END_TEXT   /* with the text */
} nxc_shell_end;

/* -- parse.c */
nxc_shell_command *nxc_shell_parse(nxc_shell_parser *p);
/* Commands up to the ) that closes them, which is read. */
nxc_shell_command *nxc_shell_parse_inside(nxc_shell_parser *p);
/* Commands up to one of these words, which is not read. */
nxc_shell_command *nxc_shell_parse_list(nxc_shell_parser *p, const char *const *ends);
nxc_shell_command *nxc_shell_parse_command(nxc_shell_parser *p);
bool nxc_shell_is_here(const nxc_shell_parser *p, const char *word);
/* Reads a word or a sign that is next; false: something else is. */
bool nxc_shell_accept(nxc_shell_parser *p, const char *word);
void nxc_shell_expect(nxc_shell_parser *p, const char *word, size_t start, const char *problem);
nxc_shell_command *nxc_shell_new_command(nxc_shell_parser *p, nxc_shell_command_kind kind, size_t at);
void nxc_shell_add_child(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_command *child);
void nxc_shell_add_word(nxc_shell_parser *p, nxc_shell_command *command, nxc_shell_word word);

/* -- parse_simple.c */
nxc_shell_command *nxc_shell_parse_simple(nxc_shell_parser *p);
/* N> FILE, <<END, <<<TEXT, &>FILE and their like; false: none stands here. */
bool nxc_shell_parse_redirect(nxc_shell_parser *p, nxc_shell_command *command);
/* Whether a word is this text, without quotes. */
bool nxc_shell_is_literal(const nxc_shell_word *word, const char *text);

/* -- parse_compound.c */
/* A command of any kind; `start` is where it begins. */
nxc_shell_command *nxc_shell_parse_compound(nxc_shell_parser *p, size_t start);

/* -- parse_here.c */
/* Blanks, comments and continued lines; ends of lines too, where `lines`. */
void nxc_shell_skip_blanks(nxc_shell_parser *p, bool lines);
/* A word as it is written, its quotes dropped; *quoted tells whether a part of it was quoted. */
const char *nxc_shell_bare_word(nxc_shell_parser *p, bool *quoted);
/* << is read: the word behind it, whose lines are read at the end of this line. */
void nxc_shell_parse_here(nxc_shell_parser *p, nxc_shell_redirect *redirect);

/* -- parse_word.c */
/* The byte `ahead` of here; \0 at the end, \1 for one that is no sign. */
char nxc_shell_peek(const nxc_shell_parser *p, size_t ahead);
size_t nxc_shell_origin(const nxc_shell_parser *p, size_t at);
void nxc_shell_parse_fail(nxc_shell_parser *p, size_t at, const char *problem);
bool nxc_shell_parse_enter(nxc_shell_parser *p);
bool nxc_shell_is_name(char c);
bool nxc_shell_is_blank(char c);
bool nxc_shell_ends_word(char c);
/* Up to the end of a word, behind what it has already. */
void nxc_shell_parse_rest(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_end end);
nxc_shell_word nxc_shell_parse_word(nxc_shell_parser *p, nxc_shell_end end);
/* As between double quotes, up to `end`: quotes are bytes where `here`. */
void nxc_shell_parse_quoted(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_end end, bool here);
void nxc_shell_put_literal(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t at);
nxc_shell_part *nxc_shell_add_part(nxc_shell_parser *p, nxc_shell_word *word, nxc_shell_part_kind kind,
                                   bool quoted);
/* The part that literal bytes go to. */
nxc_shell_part *nxc_shell_text_part(nxc_shell_parser *p, nxc_shell_word *word, bool quoted);

/* -- parse_parameter.c */
/* ${ ... } whose brace is next. */
void nxc_shell_parse_braces(nxc_shell_parser *p, nxc_shell_word *word, bool quoted, size_t start);

#endif
