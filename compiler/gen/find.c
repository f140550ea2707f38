/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/find.h"

#include <string.h>

const gen_setting *gen_setting_find(const gen_catalogue *catalogue, const char *path, size_t n_bytes) {
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  const gen_setting *rows = file->rows;
  for (unsigned i = 0; i < file->n_rows; i++) {
    if (strncmp(rows[i].setting, path, n_bytes) == 0 && rows[i].setting[n_bytes] == '\0') return &rows[i];
  }
  return NULL;
}

/* A free-form row "a.*" stands for everything below a. */
static bool option_matches(const char *row, const char *name) {
  size_t n_bytes = row ? strlen(row) : 0;
  if (n_bytes > 2 && strcmp(row + n_bytes - 2, ".*") == 0) return strncmp(row, name, n_bytes - 1) == 0;
  return n_bytes > 0 && strcmp(row, name) == 0;
}

const gen_option *gen_option_find(const gen_catalogue *catalogue, const char *dialect, const char *name) {
  for (unsigned i = 0; i < catalogue->n_files[GEN_DIALECT]; i++) {
    const gen_file *file = &catalogue->files[GEN_DIALECT][i];
    const gen_option *rows = file->rows;
    if (strcmp(file->name, dialect) != 0) continue;
    for (unsigned j = 0; j < file->n_rows; j++) {
      if (option_matches(rows[j].option, name)) return &rows[j];
    }
  }
  if (strcmp(dialect, "nx") == 0 && gen_setting_find(catalogue, name, strlen(name))) {
    static const gen_option setting_as_option = {.option = NULL};
    return &setting_as_option;
  }
  return NULL;
}

bool gen_versioned_split(nxc_arena *arena, const char *text, const char **value, const char **versions) {
  const char *at = NULL;
  for (const char *next = text; (next = strstr(next, " in ")) != NULL; next++) at = next;
  if (at == NULL || at == text || at[4] == '\0') return false;
  *value = nxc_arena_strndup(arena, text, (size_t)(at - text));
  *versions = at + 4;
  return true;
}

char **gen_fixed_settings(const gen_fixed *row, unsigned *n) {
  *n = row->fixed != NULL ? 1 : row->absent_count + row->unknown_count;
  if (row->fixed != NULL) return (char **)(uintptr_t)&row->fixed;
  return row->absent_count > 0 ? row->absent : row->unknown;
}
