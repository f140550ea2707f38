/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text that is written for a shell: an arguments file, or a script that starts a training.
 *
 * The text is read as a shell would read it, as far as arguments go: quotes, backslashes, comments, arrays
 * (NAME=( ... )), here documents, arithmetic, variables of the script and of the environment. Nothing is run:
 * tests that those variables tell decide branches and cases, for turns through its words, functions are read
 * where they are called, and what only a command would tell stays text; a note says what was left out. A
 * word keeps the place where it is written, also when it came through a variable. Everything lives in the
 * arena. */
#ifndef NXC_CONFIG_WORDS_H
#define NXC_CONFIG_WORDS_H

#include "compiler/config/interpolation/interpolate.h"

typedef struct nxc_word {
  const char *text;
  nxc_span at;
  const char *unset;       /* what in it has no value here, as it is written; NULL: nothing */
  bool from_environment;   /* a variable of nxcfg's own environment has a part in it */
  const uint32_t *origins; /* of each byte, the byte of the source that it came from; NULL: not kept */
} nxc_word;

typedef struct nxc_words {
  nxc_word *items;
  size_t n_items;
} nxc_words;

/* NAME=VALUE of a script, the last where there are several. */
typedef struct nxc_assigned {
  const char *name;
  nxc_span at;
  nxc_words words; /* one for a plain value */
  bool array;
  bool exported; /* the training's environment has it; others only served the script */
} nxc_assigned;

typedef struct nxc_script {
  nxc_arena *arena;
  nxc_words arguments;    /* of the training program */
  nxc_words launcher;     /* in front of the program: torchrun and its options */
  nxc_assigned *assigned; /* each name once */
  size_t n_assigned;
  struct nxc_names *assigned_by_name, *variables_by_name; /* positions, counted from 1; NULL: none yet */
  bool is_script;          /* it assigns or runs something; else it holds arguments alone */
  nxc_variable *variables; /* of the environment, that the text reads */
  size_t n_variables;
} nxc_script;

/* False (reported) when the text cannot be read: a quote or array without end, or too much text in it. */
bool nxc_script_read(nxc_arena *arena, const nxc_source *source, nxc_sink *sink, nxc_script *script);
/* The text of one YAML scalar with its variables filled in, from the script's own or from the environment. */
nxc_word nxc_script_expand(nxc_script *script, const char *text, nxc_span at);
const nxc_assigned *nxc_script_find(const nxc_script *script, const char *name, size_t n_bytes);
/* The value of a name, as assignments in front of it or an ENV_VARS section give it. */
void nxc_script_assign(nxc_script *script, const char *name, nxc_word value);

#endif
