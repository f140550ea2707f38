/* SPDX-License-Identifier: Apache-2.0 */
/* What the build demands of the yaml files of schema, beyond being readable: names exist once, expressions
 * parse and name only what exists, literals have their type, texts stand where people read them.
 *
 * A complaint is printed with the file and the row; all are printed before the build fails. */
#ifndef NX_GEN_CHECK_H
#define NX_GEN_CHECK_H

#include "compiler/gen/rows.h"

#include "compiler/arena.h"

enum { GEN_FILES_MAX = 64 };

typedef struct gen_catalogue {
  nxc_arena *arena;
  gen_file files[GEN_N_KINDS][GEN_FILES_MAX];
  unsigned n_files[GEN_N_KINDS];
  unsigned n_complaints;
} gen_catalogue;

void gen_complain(gen_catalogue *catalogue, const gen_file *file, const char *row, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const gen_setting *gen_setting_find(const gen_catalogue *catalogue, const char *path, size_t n_bytes);
const gen_option *gen_option_find(const gen_catalogue *catalogue, const char *dialect, const char *name);
/* Splits "VALUE in VERSION, VERSION" at its last " in ". */
bool gen_versioned_split(nxc_arena *arena, const char *text, const char **value, const char **versions);
/* The settings that a row is about. */
char **gen_fixed_settings(const gen_fixed *row, unsigned *n);
/* The end of NXC_CHANGES_..., for a word that check has passed; `otherwise` where there is none. */
const char *gen_changes_constant(const char *word, const char *otherwise);
void gen_check(gen_catalogue *catalogue);

#endif
