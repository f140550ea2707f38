/* SPDX-License-Identifier: Apache-2.0 */
/* Writes catalogue.gen.c: schema/settings.yaml, dialects, presets, rules and diagnostics as constant C
 * tables.
 *
 * Arguments are the files, in any order; the folder, or the name where it stands in schema/ itself, tells
 * the kind. */
#include "compiler/gen/check.h"
#include "compiler/gen/dialects.h"
#include "compiler/gen/fields.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/settings.h"
#include "compiler/gen/shared.h"
#include "compiler/gen/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_settings(const gen_catalogue *catalogue) {
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  puts("const nxc_setting_row nxc_setting_rows[NX_N_SETTINGS] = {");
  for (unsigned i = 0; i < file->n_rows; i++) {
    const gen_setting *row = (const gen_setting *)file->rows + i;
    printf("  {.path = \"%s\"", row->setting);
    gen_setting_domain(catalogue->arena, row, true);
    printf(", .meaning = %s, .needed = %s", row->meaning && !gen_is_yes(row->meaning) ? "false" : "true",
           row->needed ? "true" : "false");
    printf(", .changes = NXC_CHANGES_%s", gen_changes_constant(row->changes, "CHECKPOINT"));
    NXC_SETTING_FIELDS(WRITE, row)
    puts("},");
  }
  puts("};\n");
}

static void write_paths(const gen_catalogue *catalogue) {
  const gen_setting **sorted = gen_sorted_settings(catalogue);
  puts("const nxc_setting_id nxc_settings_by_path[NX_N_SETTINGS] = {");
  for (unsigned i = 0; i < catalogue->files[GEN_SETTINGS][0].n_rows; i++) {
    fputs("  ", stdout);
    gen_setting_constant(sorted[i]->setting, strlen(sorted[i]->setting));
    puts(",");
  }
  puts("};\n");
}

static void write_environment(const gen_environment *environment) {
  if (environment == NULL) return;
  const char *const names[] = {"XLA_USE_BF16", "XLA_DOWNCAST_BF16", "NEURON_RT_STOCHASTIC_ROUNDING_EN",
                               "NEURON_CC_FLAGS"};
  const char *const texts[] = {environment->use_bf16, environment->downcast_bf16,
                               environment->stochastic_rounding, environment->compiler_flags};
  unsigned n_texts = 0;
  fputs(", .environment = (const char *const[]){", stdout);
  for (unsigned i = 0; i < 4; i++) {
    if (texts[i] == NULL) continue;
    printf("\"%s=\" ", names[i]);
    gen_write_text(texts[i]);
    fputs(", ", stdout);
    n_texts++;
  }
  printf("NULL}, .n_environment = %u", n_texts);
}

static void write_presets(const gen_catalogue *catalogue) {
  puts("const nxc_preset_row nxc_presets[] = {");
  for (unsigned f = 0; f < catalogue->n_files[GEN_PRESETS]; f++) {
    const gen_file *file = &catalogue->files[GEN_PRESETS][f];
    for (unsigned i = 0; i < file->n_rows; i++) {
      const gen_preset *row = (const gen_preset *)file->rows + i;
      fputs("  {.name = ", stdout);
      gen_write_text(row->preset);
      if (row->spellings_count > 0) gen_field_texts("spellings", row->spellings, row->spellings_count);
      else gen_field_texts("spellings", (char *[]){row->preset}, 1);
      write_environment(row->environment);
      NXC_PRESET_FIELDS(WRITE, row)
      puts("},");
    }
  }
  puts("  {.name = NULL},\n};\nconst size_t nxc_n_presets = sizeof nxc_presets / sizeof *nxc_presets - 1;\n");
}

static void write_rule(const gen_rule *row) {
  size_t n_bytes;
  const char *derive = NULL;
  fputs("  {.id = ", stdout);
  gen_write_text(row->rule);
  const char *severity = row->severity ? row->severity : "error";
  printf(", .severity = NXC_SEVERITY_%s", strcmp(severity, "error") == 0     ? "ERROR"
                                          : strcmp(severity, "warning") == 0 ? "WARNING"
                                                                             : "NOTE");
  fputs(", .derives = ", stdout);
  if (row->derive != NULL && nxc_assignment_split(row->derive, &n_bytes, &derive)) {
    gen_setting_constant(row->derive, n_bytes);
  } else {
    fputs("NX_N_SETTINGS", stdout);
  }
  gen_write_field("derive", derive);
  NXC_RULE_FIELDS(WRITE, row)
  puts("},");
}

static int compare_rules(const void *a, const void *b) {
  return strcmp((*(const gen_rule *const *)a)->rule, (*(const gen_rule *const *)b)->rule);
}

static void write_rules(const gen_catalogue *catalogue) {
  const gen_rule **sorted = NULL;
  unsigned n_rules = 0;
  for (unsigned f = 0; f < catalogue->n_files[GEN_RULES]; f++) {
    const gen_file *file = &catalogue->files[GEN_RULES][f];
    for (unsigned i = 0; i < file->n_rows; i++) {
      sorted = nxc_arena_grow(catalogue->arena, sorted, n_rules, sizeof *sorted);
      sorted[n_rules++] = (const gen_rule *)file->rows + i;
    }
  }
  if (n_rules > 0) qsort(sorted, n_rules, sizeof *sorted, compare_rules);
  puts("const nxc_rule_row nxc_rules[] = {");
  for (unsigned i = 0; i < n_rules; i++) write_rule(sorted[i]);
  puts("  {.id = NULL},\n};\nconst size_t nxc_n_rules = sizeof nxc_rules / sizeof *nxc_rules - 1;\n");
}

static int compare_diagnostics(const void *a, const void *b) {
  return strcmp((*(const gen_diagnostic *const *)a)->diagnostic,
                (*(const gen_diagnostic *const *)b)->diagnostic);
}

static void write_diagnostics(const gen_catalogue *catalogue) {
  const gen_diagnostic **sorted = NULL;
  unsigned n_rows = 0;
  for (unsigned f = 0; f < catalogue->n_files[GEN_DIAGNOSTICS]; f++) {
    const gen_file *file = &catalogue->files[GEN_DIAGNOSTICS][f];
    for (unsigned i = 0; i < file->n_rows; i++) {
      sorted = nxc_arena_grow(catalogue->arena, sorted, n_rows, sizeof *sorted);
      sorted[n_rows++] = (const gen_diagnostic *)file->rows + i;
    }
  }
  if (n_rows > 0) qsort(sorted, n_rows, sizeof *sorted, compare_diagnostics);
  puts("const nxc_diagnostic_row nxc_diagnostics[] = {");
  for (unsigned i = 0; i < n_rows; i++) {
    fputs("  {.id = ", stdout);
    gen_write_text(sorted[i]->diagnostic);
    NXC_DIAGNOSTIC_FIELDS(WRITE, sorted[i])
    puts("},");
  }
  puts("  {.id = NULL},\n};\nconst size_t nxc_n_diagnostics = sizeof nxc_diagnostics / sizeof "
       "*nxc_diagnostics - 1;");
}

/* The name of a file below families/; NULL: it is no such file. */
static const char *family_name(nxc_arena *arena, const char *path) {
  const char *folder = strstr(path, "families/");
  if (folder == NULL) return NULL;
  const char *name = folder + strlen("families/");
  return nxc_arena_strndup(arena, name, strcspn(name, "."));
}

/* By the last folder of its path, or its own name. */
static gen_kind kind_of(const char *path) {
  static const struct {
    const char *begins;
    gen_kind kind;
  } kinds[] = {{"dialects/", GEN_DIALECT},
               {"fixed/", GEN_FIXED},
               {"rules/", GEN_RULES},
               {"diagnostics/", GEN_DIAGNOSTICS}};
  const char *tail = path + strlen(path);
  for (int n_slashes = 0; tail > path && (n_slashes += tail[-1] == '/') < 2;) tail--;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strncmp(tail, kinds[i].begins, strlen(kinds[i].begins)) == 0) return kinds[i].kind;
  return strstr(tail, "presets") != NULL ? GEN_PRESETS : GEN_SETTINGS;
}

int main(int argc, char **argv) {
  static gen_catalogue catalogue;
  catalogue.arena = nxc_arena_new();
  gen_names families = {0};
  for (int i = 1; i < argc; i++) {
    const char *family = family_name(catalogue.arena, argv[i]);
    if (family != NULL) gen_names_add(catalogue.arena, &families, family);
    if (family != NULL) continue;
    gen_kind kind = kind_of(argv[i]);
    if (catalogue.n_files[kind] == GEN_FILES_MAX) return EXIT_FAILURE;
    if (!gen_file_read(&catalogue.files[kind][catalogue.n_files[kind]++], kind, argv[i])) return EXIT_FAILURE;
  }
  if (catalogue.n_files[GEN_SETTINGS] != 1) return EXIT_FAILURE;
  gen_take_values(&catalogue, families);
  gen_check(&catalogue);
  if (catalogue.n_complaints > 0) return EXIT_FAILURE;
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from schema/ by compiler/gen; do not edit. */");
  puts("#include \"compiler/settings/catalogue.h\"\n");
  gen_prose_begin("nxc_catalogue_prose");
  gen_shared_begin(catalogue.arena);
  write_settings(&catalogue);
  write_paths(&catalogue);
  gen_write_dialects(&catalogue);
  write_presets(&catalogue);
  write_rules(&catalogue);
  write_diagnostics(&catalogue);
  gen_shared_end();
  gen_prose_end();
  nxc_arena_free(catalogue.arena);
  return EXIT_SUCCESS;
}
