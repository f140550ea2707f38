/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that scripts start, and the options that each has of its own (schema/programs.def).
 *
 * A training of a decoder needs no row: its options are the dialect's. */
#ifndef NXC_PROGRAMS_H
#define NXC_PROGRAMS_H

#include "compiler/settings/catalogue.h"

typedef enum nxc_program_use {
  NXC_PROGRAM_TRAINS, /* as a decoder is trained, another model */
  NXC_PROGRAM_SHARES, /* no such training, but it has the options of one */
  NXC_PROGRAM_OWN,    /* it has its own options alone */
  NXC_PROGRAM_READS,  /* what it does stands in files that it is given */
  NXC_PROGRAM_STARTS  /* it starts the program behind it */
} nxc_program_use;

typedef struct nxc_program_row {
  const char *system; /* the dialect whose program it is */
  const char *pattern;
  nxc_program_use use;
  const char *kind; /* model.kind; "": what the options say */
  const char *what;  /* "T5 pre-training" */
  const char *model; /* what that trains: "an encoder and a decoder", "no training" */
  const char *own;   /* rows of options */
} nxc_program_row;

/* By path or module; of a program that another starts both names with a blank between. NULL: none that is
 * known. */
const nxc_program_row *nxc_program_row_find(const char *name);
/* The program of a system that shares options with its training and has all of these of its own. NULL: none
 * has. */
const nxc_program_row *nxc_program_row_with(const char *system, const char *const *options, size_t n_options);
/* The row of a program of this use that has the most of these options of its own. NULL: none has one. */
const nxc_program_row *nxc_program_row_of(nxc_program_use use, const char *const *options, size_t n_options);
/* The file of the program of a system that trains models of this kind, with no options of its own. NULL: none
 * does, or what trains decoders does. */
const char *nxc_program_of_kind(const char *system, const char *kind);
/* Whether it has this option of its own. */
bool nxc_program_row_has(const nxc_program_row *program, const char *option);
/* What its parser takes for one that it has: a bool is a switch, and NXC_TYPE_LIST any number of texts. */
nxc_domain nxc_program_row_domain(nxc_arena *arena, const nxc_program_row *program, const char *option);
/* Whether it may have options that are not known here. */
bool nxc_program_row_has_any(const nxc_program_row *program);
/* The names of its own options. */
size_t nxc_program_row_names(nxc_arena *arena, const nxc_program_row *program, const char ***names);

#endif
