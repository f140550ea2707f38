/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/dialects.h"

#include "compiler/gen/check.h"
#include "compiler/gen/fields.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_exports(const gen_option *row) {
  if (row->exports_count == 0) return;
  fputs(", .exports = (const nxc_export_row[]){", stdout);
  for (unsigned i = 0; i < row->exports_count; i++) {
    size_t n_bytes;
    const char *expression;
    nxc_assignment_split(row->exports[i], &n_bytes, &expression);
    printf("{\"%.*s\", ", (int)n_bytes, row->exports[i]);
    gen_write_text(expression);
    fputs("}, ", stdout);
  }
  printf("}, .n_exports = %u", row->exports_count);
}

/* The names of a dialect's rows, in their order, stand together: who looks for one that is none of this
 * dialect's touches no row. */
typedef struct names {
  const char *dialect;
  size_t offset; /* of the next row's */
} names;

static names write_names(const char *dialect, const char *const *of_rows, size_t n) {
  printf("static const char names_of_%s[] =\n", dialect);
  for (size_t i = 0; i < n; i++) printf("  \"%s\\000\"\n", of_rows[i]);
  printf("  \"\";\nstatic const uint32_t name_at_of_%s[] = {", dialect);
  for (size_t i = 0, at = 0; i < n; at += strlen(of_rows[i++]) + 1) printf("%zu, ", at);
  puts("0};");
  return (names){dialect, 0};
}

static void write_name(names *all, const char *name) {
  printf("  {.name = names_of_%s + %zu", all->dialect, all->offset);
  all->offset += strlen(name) + 1;
}

static void write_option(const gen_catalogue *catalogue, const gen_option *row, size_t place, names *all) {
  const gen_domain_texts texts = {row->type,  row->nullable, row->min,    row->max,
                              row->above, row->initial,  row->values, row->values_count};
  write_name(all, row->option);
  printf(", .place = %zu", place);
  if (row->alias_of == NULL) gen_field_domain(catalogue->arena, &texts);
  if (row->sets_count > 0) {
    fputs(", .sets = (const nxc_assignment[]){", stdout);
    for (unsigned i = 0; i < row->sets_count; i++) {
      size_t n_bytes;
      const char *expression;
      nxc_assignment_split(row->sets[i], &n_bytes, &expression);
      putchar('{');
      gen_setting_constant(row->sets[i], n_bytes);
      fputs(", ", stdout);
      gen_write_text(expression);
      fputs("}, ", stdout);
    }
    printf("}, .n_sets = %u", row->sets_count);
  }
  write_exports(row);
  const char *status = row->status ? row->status : "checked";
  printf(", .status = %s", strcmp(status, "executed") == 0  ? "NXC_EXECUTED"
                           : strcmp(status, "checked") == 0 ? "NXC_CHECKED"
                                                            : "NXC_REFUSED");
  printf(", .changes = NXC_CHANGES_%s",
         gen_changes_constant(row->changes, row->sets_count > 0 ? "SETTINGS" : "UNFOLLOWED"));
  nxc_type type = NXC_TYPE_ANY;
  if (row->alias_of == NULL) gen_type_find(row->type, &type);
  gen_field_versioned(catalogue->arena, "words_in", NXC_TYPE_STR, row->words_in, row->words_in_count);
  gen_field_versioned(catalogue->arena, "defaults_in", type, row->defaults_in, row->defaults_in_count);
  NXC_OPTION_FIELDS(WRITE, row)
  puts("},");
}

static int compare_options(const void *a, const void *b) {
  return strcmp((*(const gen_option *const *)a)->option, (*(const gen_option *const *)b)->option);
}

static void write_options(const gen_catalogue *catalogue, const gen_file *file) {
  const gen_option **sorted = nxc_arena_array(catalogue->arena, file->n_rows, sizeof *sorted);
  for (unsigned i = 0; i < file->n_rows; i++) sorted[i] = (const gen_option *)file->rows + i;
  qsort(sorted, file->n_rows, sizeof *sorted, compare_options);
  const char **texts = nxc_arena_array(catalogue->arena, file->n_rows, sizeof *texts);
  for (unsigned i = 0; i < file->n_rows; i++) texts[i] = sorted[i]->option;
  names all = write_names(file->name, texts, file->n_rows);
  printf("static const nxc_option_row options_of_%s[] = {\n", file->name);
  for (unsigned i = 0; i < file->n_rows; i++)
    write_option(catalogue, sorted[i], (size_t)(sorted[i] - (const gen_option *)file->rows), &all);
  puts("};\n");
}

/* The nx dialect: every setting is an option of the same name. Its own file has only free-form sections,
 * which are found by their prefix, so that they may stand last. */
static void write_nx_setting(const gen_catalogue *catalogue, const gen_setting *row, names *all) {
  write_name(all, row->setting);
  printf(", .place = %zu", (size_t)(row - (const gen_setting *)catalogue->files[GEN_SETTINGS][0].rows));
  gen_setting_domain(catalogue->arena, row, false);
  fputs(", .sets = (const nxc_assignment[]){{", stdout);
  gen_setting_constant(row->setting, strlen(row->setting));
  fputs(", \"value\"}}, .n_sets = 1, .status = NXC_EXECUTED", stdout);
  gen_write_field("doc", row->doc);
  puts("},");
}

/* One of both: a section, or a setting. */
typedef struct nx_row {
  const gen_option *section;
  const gen_setting *setting;
} nx_row;

static void write_nx_options(const gen_catalogue *catalogue, const gen_file *nx) {
  const gen_setting **sorted = gen_sorted_settings(catalogue);
  unsigned n_rows = catalogue->files[GEN_SETTINGS][0].n_rows, n_free = nx ? nx->n_rows : 0, n = 0;
  nx_row *rows = nxc_arena_array(catalogue->arena, n_rows + n_free, sizeof *rows);
  const char **texts = nxc_arena_array(catalogue->arena, n_rows + n_free, sizeof *texts);
  for (unsigned i = 0, free_row = 0; i < n_rows || free_row < n_free; n++) {
    const gen_option *section = free_row < n_free ? (const gen_option *)nx->rows + free_row : NULL;
    bool first = section && (i == n_rows || strcmp(section->option, sorted[i]->setting) < 0);
    rows[n] = first ? (nx_row){section, NULL} : (nx_row){NULL, sorted[i]};
    texts[n] = first ? section->option : sorted[i]->setting;
    if (first) free_row++;
    else i++;
  }
  names all = write_names("nx", texts, n);
  puts("static const nxc_option_row options_of_nx[] = {");
  for (unsigned i = 0, place = n_rows; i < n; i++)
    if (rows[i].section) write_option(catalogue, rows[i].section, place++, &all);
    else write_nx_setting(catalogue, rows[i].setting, &all);
  puts("};\n");
}

static const gen_file *fixed_of(const gen_catalogue *catalogue, const char *dialect) {
  for (unsigned i = 0; i < catalogue->n_files[GEN_FIXED]; i++)
    if (strcmp(catalogue->files[GEN_FIXED][i].name, dialect) == 0) return &catalogue->files[GEN_FIXED][i];
  return NULL;
}

static void write_fixed(const gen_file *file) {
  if (file == NULL) return;
  printf("static const nxc_fixed_row fixed_of_%s[] = {\n", file->name);
  for (const gen_fixed *row = file->rows; row < (const gen_fixed *)file->rows + file->n_rows; row++) {
    unsigned n;
    char **settings = gen_fixed_settings(row, &n);
    for (unsigned i = 0; i < n; i++) {
      fputs("  {.setting = ", stdout);
      gen_setting_constant(settings[i], strlen(settings[i]));
      printf(", .kind = NXC_%s", row->fixed ? "FIXED" : row->absent_count ? "ABSENT" : "UNTOLD");
      NXC_FIXED_FIELDS(WRITE, row)
      puts("},");
    }
  }
  puts("};\n");
}

static void write_dialect(const gen_catalogue *catalogue, const char *name) {
  printf("  {\"%s\", options_of_%s, sizeof options_of_%s / sizeof *options_of_%s, names_of_%s, name_at_of_%s",
         name, name, name, name, name, name);
  if (fixed_of(catalogue, name) != NULL)
    printf(", fixed_of_%s, sizeof fixed_of_%s / sizeof *fixed_of_%s", name, name, name);
  else fputs(", NULL, 0", stdout);
  puts("},");
}

void gen_write_dialects(const gen_catalogue *catalogue) {
  const gen_file *nx = NULL;
  for (unsigned i = 0; i < catalogue->n_files[GEN_DIALECT]; i++) {
    const gen_file *file = &catalogue->files[GEN_DIALECT][i];
    if (strcmp(file->name, "nx") == 0) nx = file;
    else write_options(catalogue, file);
    write_fixed(fixed_of(catalogue, file->name));
  }
  write_nx_options(catalogue, nx);
  puts("const nxc_dialect nxc_dialects[] = {");
  for (unsigned i = 0; i < catalogue->n_files[GEN_DIALECT]; i++) {
    const gen_file *file = &catalogue->files[GEN_DIALECT][i];
    if (file != nx) write_dialect(catalogue, file->name);
  }
  write_dialect(catalogue, "nx");
  puts("};");
  puts("const size_t nxc_n_dialects = sizeof nxc_dialects / sizeof *nxc_dialects;\n");
}
