/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/settings.h"

#include "compiler/gen/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gen_setting_constant(const char *path, size_t n_bytes) {
  printf("NX_SETTING_");
  for (size_t i = 0; i < n_bytes; i++) putchar(path[i] == '.' ? '_' : toupper((unsigned char)path[i]));
}

void gen_setting_domain(nxc_arena *arena, const gen_setting *row, bool with_initial) {
  gen_domain_texts texts = {row->type,  NULL,         row->min,    row->max,
                        row->above, row->initial, row->values, row->values_count};
  if (!with_initial && row->initial && strcmp(row->initial, "null") == 0) texts.nullable = "yes";
  if (!with_initial) texts.initial = NULL;
  gen_field_domain(arena, &texts);
}

static int compare_settings(const void *a, const void *b) {
  return strcmp((*(const gen_setting *const *)a)->setting, (*(const gen_setting *const *)b)->setting);
}

const gen_setting **gen_sorted_settings(const gen_catalogue *catalogue) {
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  const gen_setting **sorted = nxc_arena_array(catalogue->arena, file->n_rows, sizeof *sorted);
  for (unsigned i = 0; i < file->n_rows; i++) sorted[i] = (const gen_setting *)file->rows + i;
  qsort(sorted, file->n_rows, sizeof *sorted, compare_settings);
  return sorted;
}
