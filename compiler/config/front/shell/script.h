/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is written for a shell: an arguments file, or a script that starts trainings.
 *
 * The text is followed as bash would run it: quotes, arrays, arithmetic, functions, branches, loops, here
 * documents, and the output of what can be computed. Nothing is run: what only a command or a file would tell
 * is unknown. A word keeps the place where it is written, also when it came through a variable. Everything
 * lives in the arena. */
#ifndef NXC_SHELL_SCRIPT_H
#define NXC_SHELL_SCRIPT_H

#include "compiler/document/names.h"
#include "compiler/config/interpolation/interpolate.h"

typedef struct nxc_launch_word {
  const char *text;
  nxc_span at;
  const char *unset;     /* what in it has no value here, as it is written; NULL: nothing */
  bool first;              /* of its command, where that is an option */
  bool many;             /* it may be no word, or several */
  bool maybe;              /* it stands there on some ways through the script only */
  bool argument;         /* what it lacks are arguments of the script itself */
  bool expected;         /* what it lacks the environment or the script's own arguments give */
  bool from_environment; /* a variable of nxcfg's own environment has a part in it */
} nxc_launch_word;

typedef struct nxc_launch_words {
  nxc_launch_word *items;
  size_t n_items;
} nxc_launch_words;

/* A variable of the script, as a launch finds it. */
typedef struct nxc_assigned {
  const char *name;
  nxc_span at;
  nxc_launch_words words; /* one for a plain value */
  bool array;
  bool exported; /* the training's environment has it; others only served the script */
} nxc_assigned;

/* A command that starts a program. */
typedef struct nxc_launch {
  nxc_span at;
  const char *program;  /* the .py file; NULL: arguments alone */
  nxc_launch_words launcher;   /* in front of the program: torchrun and its options */
  size_t n_in_front;           /* of those; behind them stands what Slurm is told */
  nxc_launch_words arguments;  /* behind it */
  const nxc_assigned *assigned;
  size_t n_assigned;
} nxc_launch;

typedef struct nxc_script {
  nxc_arena *arena;
  nxc_launch *launches;
  size_t n_launches;
  bool reads_script;       /* it takes in another one, which may start a program */
  bool misspelt;           /* a launch names an array that is not there: its options are unknown */
  size_t n_asked;          /* of its own arguments, that it reads and nobody told: $1 to this one */
  bool is_script;          /* it assigns or runs something; else it holds arguments alone */
  nxc_variable *variables; /* of the environment, that the text reads */
  size_t n_variables;
  nxc_names *variables_by_name; /* NULL: none yet */
  struct nxc_shell *shell;      /* whose variables nxc_script_expand fills in */
} nxc_script;

/* What following a text gave, for whoever reads the same text again, as for another of its launches. */
typedef struct nxc_followed {
  nxc_arena *arena;
  const nxc_source *source; /* the text; NULL: it has not been read yet */
  nxc_sink *findings;       /* told at each reading; NULL: it has not been followed yet */
  nxc_script script;
  bool good;
} nxc_followed;

/* `arguments` holds the words behind the script's name, $1 and on, as a shell reads them; NULL: nobody tells.
 * False (reported) when a text cannot be read: bash would stop at it, or it makes too much text. There is at
 * least one launch then. */
bool nxc_script_read(nxc_arena *arena, const nxc_source *source, const nxc_source *arguments, nxc_sink *sink,
                     nxc_script *script);
/* The same; the text of `kept` (NULL: nothing is kept) is followed at its first reading alone. */
bool nxc_script_read_kept(nxc_followed *kept, nxc_arena *arena, const nxc_source *source,
                          const nxc_source *arguments, nxc_sink *sink, nxc_script *script);
/* How a comment of the script calls it: the words behind its name, where there are as many. NULL: none does.
 */
const char *nxc_script_example(nxc_arena *arena, const nxc_source *source, size_t n_words);
/* The text of a file that a word of a launch names: as the script itself writes it, or as it lies there. What
 * nothing here tells stands in it as it is written: $NAME. NULL: neither is known. */
const nxc_source *nxc_script_file(nxc_script *script, const char *path);
/* The words of a text that holds no commands. False (reported): it cannot be read. */
bool nxc_script_split(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_launch_words *words);
/* The text of one YAML scalar with its variables filled in, from the script's own or from the environment. */
nxc_launch_word nxc_script_expand(nxc_script *script, const char *text, nxc_span at);
/* The value of a name, as an ENV_VARS section gives it. */
void nxc_script_assign(nxc_script *script, const char *name, nxc_launch_word value);
/* The variables that nxc_script_assign gave, as a launch without words. */
nxc_launch *nxc_script_collect(nxc_script *script);

#endif
