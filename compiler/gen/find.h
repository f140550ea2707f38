/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all files of schema, and the finding of one by its name. */
#ifndef NX_GEN_FIND_H
#define NX_GEN_FIND_H

#include "compiler/gen/rows.h"

#include "compiler/arena.h"

enum { GEN_FILES_MAX = 64 };

typedef struct gen_catalogue {
  nxc_arena *arena;
  gen_file files[GEN_N_KINDS][GEN_FILES_MAX];
  unsigned n_files[GEN_N_KINDS];
  unsigned n_complaints;
} gen_catalogue;

const gen_setting *gen_setting_find(const gen_catalogue *catalogue, const char *path, size_t n_bytes);
const gen_option *gen_option_find(const gen_catalogue *catalogue, const char *dialect, const char *name);
/* Splits "VALUE in VERSION, VERSION" at its last " in ". */
bool gen_versioned_split(nxc_arena *arena, const char *text, const char **value, const char **versions);
/* The settings that a row is about. */
char **gen_fixed_settings(const gen_fixed *row, unsigned *n);

#endif
