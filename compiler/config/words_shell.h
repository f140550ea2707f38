/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of shell texts in its two halves: words (words.c), and commands with their branches
 * (words_commands.c).
 *
 * A draft is a word that is being put together: its bytes, and for each the byte of the source that it came
 * from. The shell stands at one byte of its text; commands are kept until the end, when it is clear which of
 * them is the training. After a failure (reported) nothing more is read. */
#ifndef NXC_CONFIG_WORDS_SHELL_H
#define NXC_CONFIG_WORDS_SHELL_H

#include "compiler/config/words.h"

enum { EXPANDED_BYTES_MAX = 4 * 1024 * 1024, DEFAULTS_DEPTH_MAX = 16 };

typedef struct nxc_draft {
  char *bytes;
  uint32_t *origins;
  size_t n_bytes;
  bool open; /* there is a word, even when it has no bytes yet ('') */
  bool quoted;
  const char *unset;
  bool from_environment;
} nxc_draft;

typedef struct nxc_command {
  nxc_words words;
} nxc_command;

typedef enum nxc_truth { NXC_NO, NXC_YES, NXC_MAYBE } nxc_truth;

/* if ... then ... elif ... else ... fi: which branch is taken. */
typedef struct nxc_branch {
  bool outside;     /* what is around it is taken */
  bool taken;       /* this part is */
  bool done;        /* a part has been */
  bool testing;     /* between if and then */
  nxc_truth result; /* of the tests so far */
  char joint;       /* what joins the next test: '|', '&', or 0 for the first */
} nxc_branch;

typedef struct nxc_shell {
  nxc_script *script;
  const nxc_source *source;
  nxc_sink *sink;
  const char *text;
  size_t n_bytes, at;
  size_t n_expanded;
  bool failed;
  nxc_command *commands;
  size_t n_commands;
  nxc_branch *branches;
  size_t n_branches;
  nxc_span placed;      /* the last place that was asked for */
  size_t placed_offset; /* its byte */
  unsigned depth;       /* of ${A:-${B:-...}} */
} nxc_shell;

nxc_span nxc_shell_place(nxc_shell *s, size_t offset, size_t n_bytes);
void nxc_shell_fail(nxc_shell *s, size_t offset, const char *problem);
void nxc_shell_keep(nxc_shell *s, nxc_words *words, nxc_word word);
/* Ends the draft; a word comes of it when it is open. `start` is its place where it has no bytes. */
void nxc_shell_finish(nxc_shell *s, nxc_draft *word, nxc_words *words, size_t start);
/* A variable's word into the draft; outside quotes blanks in it end words. */
void nxc_shell_put_assigned(nxc_shell *s, nxc_draft *word, nxc_words *words, const nxc_word *value,
                            bool quoted, size_t origin);
/* The assignment of this name, made when it is new. */
nxc_assigned *nxc_shell_assign(nxc_script *script, const char *name, nxc_span at);
bool nxc_shell_is_name(char c);
bool nxc_shell_ends_word(char c);
/* Over blanks, comments and continued lines; over line breaks too where `lines`. */
void nxc_shell_skip_blanks(nxc_shell *s, bool lines);
/* One word of the text, which may become none or several. */
void nxc_shell_read_word(nxc_shell *s, nxc_words *words);

#endif
