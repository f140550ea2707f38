/* SPDX-License-Identifier: Apache-2.0 */
/* Words that argparse refuses although it is clear what they mean: each is reported with what would be taken
 * in its place, and read as that. */
#ifndef NXC_CONFIG_ARGUMENT_SLIPS_H
#define NXC_CONFIG_ARGUMENT_SLIPS_H

#include "compiler/config/front/arguments.h"

/* -name, or name alone; the option that is meant, or NULL. */
const nxc_option_row *nxc_argument_behind_few(nxc_arguments *to, const char *name, nxc_span at,
                                              size_t n_dashes);
/* Whether a word without hyphens in front is an option's name, which no value is likely to be. */
bool nxc_argument_is_bare(const nxc_arguments *to, const char *text);
/* --name:value and --name16: bytes of the name, reported; 0: it is no such word. *n_between receives the
 * bytes between name and value. */
size_t nxc_argument_glued(nxc_arguments *to, const nxc_launch_word *word, size_t n_dashes, size_t *n_between);
/* A word that only parts an option from its value: = and : alone. False: it is another. */
bool nxc_argument_parts(nxc_arguments *to, const nxc_launch_word *word);
/* A value behind a switch, whose name stands at `head`. */
void nxc_argument_of_switch(nxc_arguments *to, const nxc_launch_word *value, const char *name, nxc_span head);
/* Words behind everything that could take them. */
void nxc_argument_strays(nxc_arguments *to, const nxc_launch_word *words, size_t n_words);
/* An option without a value: it is given, and unknown. True where a negative number behind it, which argparse
 * takes for an option, is the value. */
bool nxc_argument_missing(nxc_arguments *to, const nxc_option_row *row, const char *name, nxc_span head,
                          const nxc_launch_word *behind);

#endif
