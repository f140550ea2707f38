/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of shell texts, in rooms: words and variables (words.c), arithmetic (words_arithmetic.c), here
 * documents (words_here.c), tests (words_test.c), control flow (words_flow.c), and commands, of which one is
 * the training (words_commands.c).
 *
 * A draft is a word that is being put together: its bytes, and for each the byte of the source that it came
 * from. The shell stands at one byte of its text; loops and functions are read again from where their bodies
 * stand. What is read but not taken (a branch whose test fails) assigns nothing. Commands are kept until the
 * end, when it is clear which of them is the training. After a failure (reported) nothing more is read. */
#ifndef NXC_CONFIG_WORDS_SHELL_H
#define NXC_CONFIG_WORDS_SHELL_H

#include "compiler/config/front/words.h"

enum {
  EXPANDED_BYTES_MAX = 4 * 1024 * 1024,
  DEFAULTS_DEPTH_MAX = 16,
  NESTING_MAX = 64,
  COMMANDS_MAX = 20000 /* each as often as it is read */
};

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

/* Whether a command succeeds, as far as it can be told. */
typedef enum nxc_truth { NXC_NO, NXC_YES, NXC_MAYBE } nxc_truth;

/* << WORD: the lines up to WORD, which begin behind the end of this line. */
typedef struct nxc_here {
  const char *end;
  bool quoted;  /* no variables in it */
  bool tabs;    /* <<-: leading tabs are no part of a line */
  const char *into; /* the variable that `read` fills with it; NULL: none */
} nxc_here;

/* NAME() { ... }: where the body stands. */
typedef struct nxc_function {
  const char *name;
  size_t from, end;
} nxc_function;

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
  size_t n_read; /* commands, each as often as it was read */
  nxc_here *here;
  size_t n_here; /* whose lines have not begun yet */
  nxc_function *functions;
  size_t n_functions;
  unsigned nesting;     /* of branches, loops and calls */
  bool empty_list;      /* "$@" or "${A[@]}" without a word was read since this was last cleared */
  bool loop_assigns;    /* something was assigned since this was last cleared, taken or not */
  nxc_span placed;      /* the last place that was asked for */
  size_t placed_offset; /* its byte */
  unsigned depth;       /* of ${A:-${B:-...}} */
} nxc_shell;

/* -- words.c */
nxc_span nxc_shell_place(nxc_shell *s, size_t offset, size_t n_bytes);
void nxc_shell_fail(nxc_shell *s, size_t offset, const char *problem);
void nxc_shell_keep(nxc_shell *s, nxc_words *words, nxc_word word);
/* Ends the draft; a word comes of it when it is open. `start` is its place where it has no bytes. */
void nxc_shell_finish(nxc_shell *s, nxc_draft *word, nxc_words *words, size_t start);
/* A variable's word into the draft; outside quotes blanks in it end words. */
void nxc_shell_put_assigned(nxc_shell *s, nxc_draft *word, nxc_words *words, const nxc_word *value,
                            bool quoted, size_t origin);
/* The bytes of a text as between double quotes: variables filled in, blanks kept. */
void nxc_shell_put_text(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin);
/* Arithmetic over numbers and names. False: a name has no value here, or it is no arithmetic. */
bool nxc_shell_compute(nxc_shell *s, const char *text, size_t n_bytes, size_t origin, nxc_draft *used,
                       int64_t *value);
/* The words of a text that a second shell reads, as behind `bash -c`. */
void nxc_shell_split(nxc_shell *s, const nxc_word *value, nxc_words *words);
/* The assignment of this name, made when it is new. */
nxc_assigned *nxc_shell_assign(nxc_script *script, const char *name, nxc_span at);
bool nxc_shell_is_name(char c);
bool nxc_shell_ends_word(char c);
/* Over blanks, comments and continued lines; over line breaks too where `lines`. */
void nxc_shell_skip_blanks(nxc_shell *s, bool lines);
/* One word of the text, which may become none or several. */
void nxc_shell_read_word(nxc_shell *s, nxc_words *words);

/* -- words_arithmetic.c */
/* The value of integers and operators; false where the text is anything else. */
bool nxc_shell_arithmetic(const char *text, int64_t *value);

/* -- words_here.c */
/* Behind <<: the word that ends the lines. */
void nxc_shell_open_here(nxc_shell *s, const nxc_words *command);
/* At a line break: the lines of what was opened on the line before. */
void nxc_shell_read_here(nxc_shell *s);
/* $(cat <<END ... END), which is its lines; 0: it is something else, else the bytes taken. */
size_t nxc_shell_put_here(nxc_shell *s, nxc_draft *word, const char *text, size_t n_bytes, size_t origin);

/* -- words_test.c */
/* [ ... ], [[ ... ]], test, true, false, ! and their like; anything else may succeed or not. */
nxc_truth nxc_shell_judge(const nxc_words *words);
/* What a test compares: a variable of the environment that is not set is empty, what only a run would tell
 * is NULL. */
const char *nxc_shell_tested(const nxc_word *word);
nxc_truth nxc_truth_not(nxc_truth a);
nxc_truth nxc_truth_and(nxc_truth a, nxc_truth b);
nxc_truth nxc_truth_or(nxc_truth a, nxc_truth b);

/* -- words_commands.c */
/* One simple command, up to what ends it, which stays. */
nxc_truth nxc_shell_read_command(nxc_shell *s, bool taken);
/* Keeps a value under a name, where `taken`. */
void nxc_shell_set(nxc_shell *s, const char *name, nxc_span at, const nxc_word *value, bool taken);

/* -- words_flow.c */
/* Every command of the text. */
void nxc_shell_read_all(nxc_shell *s);
/* Whether the command calls a function of the script; then it is read. */
bool nxc_shell_call(nxc_shell *s, const nxc_words *words, bool taken);

#endif
