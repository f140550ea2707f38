/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line arguments as a tree: what argparse makes of words, for a dialect's options.
 *
 * An option is given in full (--num-layers, never a beginning of it), with hyphens, and once. A switch takes
 * no value; a list takes all words up to the next option; everything else takes one word, or what follows
 * `=`. The map that results has one child per option, named without the hyphens, typed as argparse's types
 * read text. An option that the dialect does not have becomes a child too, so that the binder can tell what
 * it is. */
#ifndef NXC_CONFIG_ARGUMENTS_H
#define NXC_CONFIG_ARGUMENTS_H

#include "compiler/config/front/shell/script.h"
#include "compiler/settings/catalogue.h"
#include "compiler/settings/programs.h"
#include "compiler/settings/relatives.h"

typedef struct nxc_arguments {
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_dialect *dialect;
  nxc_node *map;
  bool script;  /* they stand in one */
  nxc_span head; /* of the option that is read */
  bool settled; /* the option before has all that it takes */
  bool open; /* a word that nothing here tells may be any option */
  bool underscores; /* every name is written with them, as a code that grew out of the system has it */
  const nxc_program_row *program; /* whose options they are; NULL: of the training of a decoder */
  bool own;                       /* ... by a program of the user's own, which may have further ones */
  const nxc_relative *relative;   /* the code that they are for instead; NULL: the system itself */
  const nxc_source *over; /* options of other sources give way to this one's; NULL: every option once */
} nxc_arguments;

/* Reads words into the map; what is wrong is reported. */
void nxc_arguments_read(nxc_arguments *to, const nxc_launch_words *words);
/* The code whose mark any of the words is. NULL: they are the system's own. */
const nxc_relative *nxc_arguments_relative(const nxc_arguments *to, const nxc_launch_words *words);
/* Options of a program that has its own alone: those that it does not have. */
void nxc_arguments_report_unknown(nxc_arguments *to, const char *program);
/* An option of the command line, of the program's own or of a training. NULL: there is none. */
const nxc_option_row *nxc_arguments_option(const nxc_arguments *to, const char *name);
/* One option with the words that belong to it; for files that keep options in other ways. `name` has no
 * hyphens in front. */
void nxc_arguments_put(nxc_arguments *to, const nxc_option_row *row, const char *name, nxc_span name_at,
                       const nxc_launch_words *values);
/* The same with a value that is typed already. */
void nxc_arguments_put_node(nxc_arguments *to, const char *name, nxc_span at, nxc_node *node);
bool nxc_arguments_is_list(const nxc_option_row *row);
/* What Python's int() and float() make of a text. False: nothing. */
bool nxc_text_to_int(nxc_arena *arena, const char *text, nxc_value *value);
bool nxc_text_to_float(nxc_arena *arena, const char *text, nxc_value *value);

#endif
