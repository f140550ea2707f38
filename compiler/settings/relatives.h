/* SPDX-License-Identifier: Apache-2.0 */
/* What is no option of a system as it is known here, and was one, or is one of a code that grew out of it
 * (schema/relatives.def). */
#ifndef NXC_RELATIVES_H
#define NXC_RELATIVES_H

#include "compiler/arena.h"

#include <stdbool.h>

typedef struct nxc_relative {
  const char *system; /* the dialect */
  const char *name;   /* "Megatron-DeepSpeed" */
  const char *marks;  /* options that nothing else has */
  const char *own;    /* others that the system does not have, NAME* all that begin so */
  bool past;          /* the system itself, as it was before the versions that are known here */
} nxc_relative;

typedef struct nxc_past_option {
  const char *system, *option;
  const char *until; /* "2023-09" */
  const char *now;   /* the option that says the same; "": none does */
} nxc_past_option;

typedef struct nxc_relative_meaning {
  const char *name;            /* of the code */
  const char *option;          /* of its own */
  const char *word;            /* for which this holds; "": for any */
  const char *setting, *value; /* "": the option's own; "=" before an expression */
} nxc_relative_meaning;

/* What stands there. */
typedef struct nxc_relative_given {
  const char *option;
  const char *word; /* "": no word */
  bool of_system;   /* which has it too */
} nxc_relative_given;

/* Whether this option is a mark of it, or this word of an option of both. */
bool nxc_relative_is_marked(const nxc_relative *relative, const char *option, const char *word);
/* For which code these options are, where one of them marks any: the one that has most of those that the
 * system has not, of several one that is marked, and of those the first, as codes have taken options of each
 * other over. NULL: for none of them. */
const nxc_relative *nxc_relative_of_options(const char *system, const nxc_relative_given *given,
                                            size_t n_given);
/* Whether an option of both takes several words there. */
bool nxc_relative_lists(const nxc_relative *relative, const char *option);
/* Whether an option of both takes any number there, 1e6 too, where the system takes digits alone. */
bool nxc_relative_takes_numbers(const nxc_relative *relative, const char *option);
/* Whether the system as it is known here has the option and this code has not. */
bool nxc_relative_lacks(const nxc_relative *relative, const char *option);
/* Whether it left the system before the versions that are known here. */
bool nxc_relative_is_old(const nxc_relative *relative);
/* Whether it is a program of its own, which sets what it is not given. */
bool nxc_relative_runs(const nxc_relative *relative, const char *program);
/* Whether this option of its own, with this word, changes nothing that is trained. */
bool nxc_relative_is_inert(const nxc_relative *relative, const char *option, const char *word);
/* Options, parted by blanks, beside all of which this one of its own changes nothing either. NULL: none. */
const char *nxc_relative_inert_beside(const nxc_relative *relative, const char *option);
/* Whether settings say all that this option of its own does, with this word. */
bool nxc_relative_is_said(const nxc_relative *relative, const char *option, const char *word);
/* Options, parted by blanks, beside all of which they say what this one does. NULL: none. */
const char *nxc_relative_said_beside(const nxc_relative *relative, const char *option);
/* "trains by reinforcement learning", where this option of its own is given. NULL: as the system does. */
const char *nxc_relative_task(const nxc_relative *relative, const char *option);
/* Whether a rule does not hold where this option of its own is given. */
bool nxc_relative_spares(const nxc_relative *relative, const char *option, const char *rule);
/* Whether it has the option and the system as it is known here has not. */
bool nxc_relative_has(const nxc_relative *relative, const char *option);
/* Its own option that alone can be meant by a misspelt one. NULL: none. */
const char *nxc_relative_nearest(nxc_arena *arena, const nxc_relative *relative, const char *option);
/* What the system writes for its word of an option that both have; "": the system has no such thing. NULL: it
 * is no word that is known. */
const char *nxc_relative_word(const nxc_relative *relative, const char *option, const char *word);
/* Whether an option of both is not required beside this word of another. */
bool nxc_relative_frees(const nxc_relative *relative, const char *option, const char *word,
                        const char *freed);
/* What an option of its own says in settings: the first, or the next behind `after`. NULL: no more is known.
 */
const nxc_relative_meaning *nxc_relative_means(const nxc_relative *relative, const char *option,
                                               const char *word, const nxc_relative_meaning *after);
/* NULL: the system never had it, or has it still. */
const nxc_past_option *nxc_past_option_find(const char *system, const char *option);
/* The month since which it has an option that it still has; "": since before it lost any, or it is younger
 * than every version that is known here. */
const char *nxc_option_born(const char *system, const char *option);

#endif
