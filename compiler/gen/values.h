/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a setting that are names told elsewhere: `values_of` names a table of schema/, or a folder. */
#ifndef NXC_GEN_VALUES_H
#define NXC_GEN_VALUES_H

#include "compiler/gen/check.h"

/* Names of a table's rows, or of a folder's files. */
typedef struct gen_names {
  char **names;
  unsigned n;
} gen_names;

void gen_names_add(nxc_arena *arena, gen_names *to, const char *name);
/* Gives each row its values; one whose table is unknown is complained of. */
void gen_take_values(gen_catalogue *catalogue, gen_names families);

#endif
