/* SPDX-License-Identifier: Apache-2.0 */
/* Writes catalogue.gen.c: schema/settings.yaml, dialects, presets, rules and diagnostics as constant C
 * tables.
 *
 * Arguments are the files, in any order; the folder, or the name where it stands in schema/ itself, tells
 * the kind. */
#include "compiler/gen/check.h"
#include "compiler/gen/fields.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field as its kind has it in the table (fields.h). */
#define WRITE(row, kind, member, key) WRITE_##kind(row, member)
#define WRITE_TEXT(row, member) gen_write_field(#member, row->member);
#define WRITE_EXPRESSION(row, member) gen_write_field(#member, row->member);
#define WRITE_BEFORE(row, member) gen_write_field(#member, row->member);
#define WRITE_TEMPLATE(row, member) gen_write_field(#member, row->member);
#define WRITE_TEXTS(row, member) gen_field_texts(#member, row->member, row->member##_count);
#define WRITE_FLAG(row, member) gen_field_flag(#member, row->member);
#define WRITE_OWN(row, member)
#define WRITE_OWNS(row, member)

static void setting_constant(const char *path, size_t n_bytes) {
  printf("NX_SETTING_");
  for (size_t i = 0; i < n_bytes; i++) putchar(path[i] == '.' ? '_' : toupper((unsigned char)path[i]));
}

static void write_setting_domain(nxc_arena *arena, const gen_setting *row, bool with_initial) {
  gen_domain_texts texts = {row->type,  NULL,         row->min,    row->max,
                        row->above, row->initial, row->values, row->values_count};
  if (!with_initial && row->initial && strcmp(row->initial, "null") == 0) texts.nullable = "yes";
  if (!with_initial) texts.initial = NULL;
  gen_field_domain(arena, &texts);
}

static void write_settings(const gen_catalogue *catalogue) {
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  puts("const nxc_setting_row nxc_setting_rows[NX_N_SETTINGS] = {");
  for (unsigned i = 0; i < file->n_rows; i++) {
    const gen_setting *row = (const gen_setting *)file->rows + i;
    printf("  {.path = \"%s\"", row->setting);
    write_setting_domain(catalogue->arena, row, true);
    printf(", .meaning = %s, .needed = %s", row->meaning && !gen_is_yes(row->meaning) ? "false" : "true",
           row->needed ? "true" : "false");
    printf(", .changes = NXC_CHANGES_%s", gen_changes_constant(row->changes, "CHECKPOINT"));
    NXC_SETTING_FIELDS(WRITE, row)
    puts("},");
  }
  puts("};\n");
}

static int compare_settings(const void *a, const void *b) {
  return strcmp((*(const gen_setting *const *)a)->setting, (*(const gen_setting *const *)b)->setting);
}

static const gen_setting **sorted_settings(const gen_catalogue *catalogue) {
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  const gen_setting **sorted = nxc_arena_array(catalogue->arena, file->n_rows, sizeof *sorted);
  for (unsigned i = 0; i < file->n_rows; i++) sorted[i] = (const gen_setting *)file->rows + i;
  qsort(sorted, file->n_rows, sizeof *sorted, compare_settings);
  return sorted;
}

static void write_paths(const gen_catalogue *catalogue) {
  const gen_setting **sorted = sorted_settings(catalogue);
  puts("const nxc_setting_id nxc_settings_by_path[NX_N_SETTINGS] = {");
  for (unsigned i = 0; i < catalogue->files[GEN_SETTINGS][0].n_rows; i++) {
    fputs("  ", stdout);
    setting_constant(sorted[i]->setting, strlen(sorted[i]->setting));
    puts(",");
  }
  puts("};\n");
}

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
      setting_constant(row->sets[i], n_bytes);
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
  write_setting_domain(catalogue->arena, row, false);
  fputs(", .sets = (const nxc_assignment[]){{", stdout);
  setting_constant(row->setting, strlen(row->setting));
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
  const gen_setting **sorted = sorted_settings(catalogue);
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
      setting_constant(settings[i], strlen(settings[i]));
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

static void write_dialects(const gen_catalogue *catalogue) {
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
    setting_constant(row->derive, n_bytes);
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
  write_settings(&catalogue);
  write_paths(&catalogue);
  write_dialects(&catalogue);
  write_presets(&catalogue);
  write_rules(&catalogue);
  write_diagnostics(&catalogue);
  gen_prose_end();
  nxc_arena_free(catalogue.arena);
  return EXIT_SUCCESS;
}
