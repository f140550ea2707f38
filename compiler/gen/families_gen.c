/* SPDX-License-Identifier: Apache-2.0 */
/* Writes families.gen.c: schema/families/NAME.yaml as constant C tables; what a family that is `like` another
 * does not say is as there. Arguments are OUTPUT.d, which makes ninja look again when their folder changes,
 * and the files. */
#include "compiler/expression/expression.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/rows.h"
#include "compiler/settings/family.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct family {
  const char *file;
  const gen_family *head;
  const struct family *like;
  char tensors[NXC_N_PARTS][96]; /* C of the row that holds the part; "": none */
} family;

static unsigned n_complaints;

static void complain(const char *file, const char *what, const char *text) {
  fprintf(stderr, "%s: %s: %s\n", file, what, text ? text : "");
  n_complaints++;
}

static const char *const part_names[NXC_N_PARTS] = {
#define PART(id, name, kind) [NXC_PART_##id] = #name,
#include "compiler/settings/parts.def"
#undef PART
};

static nxc_part part_of(const char *file, const char *name) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (strcmp(part_names[part], name) == 0) return part;
  complain(file, "there is no part", name);
  return 0;
}

static const family *family_of(const family *families, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(families[i].head->family, name) == 0) return &families[i];
  return NULL;
}

static void write_parts(const char *file, const gen_family *row) {
  fputs("(const nxc_part[]){", stdout);
  for (unsigned i = 0; i < row->parts_count; i++) {
    fputs("NXC_PART_", stdout);
    for (const char *at = part_names[part_of(file, row->parts[i])]; *at != '\0'; at++)
      putchar(toupper((unsigned char)*at));
    fputs(", ", stdout);
  }
  printf("}, %u", row->parts_count);
}

static const char *layout_of(const gen_file *file, const gen_family *row) {
  static const char *const layouts[][2] = {
      {"blocks", "NXC_LAYOUT_BLOCKS"}, {"groups", "NXC_LAYOUT_GROUPS"}, {"turns", "NXC_LAYOUT_TURNS"}};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (strcmp(row->layout ? row->layout : "blocks", layouts[i][0]) == 0) return layouts[i][1];
  complain(file->path, "there is no layout", row->layout);
  return layouts[0][1];
}

static void write_tensor(const gen_file *file, const gen_family *row) {
  if (row->tensor == NULL || row->parts_count == 0)
    complain(file->path, "a row names a tensor and its parts", row->tensor);
  if (row->stacked && (!row->transposed || !row->bare))
    complain(file->path, "what is stacked is transposed and bare", row->tensor);
  printf("  {\"%s\", ", row->tensor);
  write_parts(file->path, row);
  printf(", %s, %s, %s, %s},\n", layout_of(file, row), row->transposed ? "true" : "false",
         row->bare ? "true" : "false", row->stacked ? "true" : "false");
}

/* The first row is the family itself, the others its tensors. */
static void write_tensors(const gen_file *file, family *made, const family *families, int n_families) {
  const gen_family *rows = file->rows;
  const family *like = rows[0].like ? family_of(families, n_families, rows[0].like) : NULL;
  *made = (family){.file = file->path, .head = &rows[0], .like = like};
  if (like != NULL) memcpy(made->tensors, like->tensors, sizeof made->tensors);
  if (file->n_rows == 1) return;
  printf("static const nxc_tensor_row tensors_of_%s[] = {\n", file->name);
  for (unsigned i = 1; i < file->n_rows; i++) {
    write_tensor(file, &rows[i]);
    for (unsigned j = 0; j < rows[i].parts_count; j++)
      snprintf(made->tensors[part_of(file->path, rows[i].parts[j])], sizeof *made->tensors,
               "&tensors_of_%s[%u]", file->name, i - 1);
  }
  puts("};\n");
}

/* ---- config.json ---- */

/* "LEFT = RIGHT" without the blanks around the first sign of equality. */
static bool divide(nxc_arena *arena, const family *family, const char *text, char **left, char **right) {
  char *copy = nxc_arena_strdup(arena, text), *sign = strstr(copy, " = ");
  if (sign == NULL) {
    complain(family->file, "no NAME = VALUE", text);
    return false;
  }
  *sign = '\0';
  *left = copy;
  *right = sign + 3;
  return true;
}

/* A list of the head, behind that of the family that it is like. */
typedef struct list {
  char *const *texts;
  unsigned n;
} list;

static list keys_of(const gen_family *head) {
  return (list){head->keys, head->keys_count};
}

static list defaults_of(const gen_family *head) {
  return (list){head->defaults, head->defaults_count};
}

static list sets_of(const gen_family *head) {
  return (list){head->sets, head->sets_count};
}

static list writes_of(const gen_family *head) {
  return (list){head->writes, head->writes_count};
}

typedef void writer(nxc_arena *arena, const char *file, char *left, char *right);

/* Whether a family, or one that it is like up to `until`, says something else of what this text names. */
static bool says_again(const family *family, const struct family *until, const char *text,
                       list (*list_of)(const gen_family *head)) {
  size_t n = strcspn(text, " ") + 1;
  for (; family != until; family = family->like) {
    list own = list_of(family->head);
    for (unsigned i = 0; i < own.n; i++)
      if (strncmp(own.texts[i], text, n) == 0) return true;
  }
  return false;
}

/* What `of` and those that it is like say; of a name, what `last` or the nearest to it says. */
static unsigned write_list(nxc_arena *arena, const family *of, const family *last,
                           list (*list_of)(const gen_family *head), writer *write) {
  unsigned n = of->like ? write_list(arena, of->like, last, list_of, write) : 0;
  list own = list_of(of->head);
  char *left, *right;
  for (unsigned i = 0; i < own.n; i++) {
    if (says_again(last, of, own.texts[i], list_of) || !divide(arena, of, own.texts[i], &left, &right))
      continue;
    write(arena, of->file, left, right);
    n++;
  }
  return n;
}

static void write_key(nxc_arena *arena, const char *file, char *left, char *right) {
  (void)arena, (void)file;
  fputs("      {", stdout);
  gen_write_text(left);
  fputs(", ", stdout);
  gen_write_text(right);
  puts("},");
}

/* A key and an expression. */
static void write_written(nxc_arena *arena, const char *file, char *key, char *text) {
  const char *error;
  size_t error_at;
  if (nxc_expression_parse(arena, text, &error, &error_at) == NULL) complain(file, error, text);
  write_key(arena, file, key, text);
}

static void write_assignment(nxc_arena *arena, const char *file, char *setting, char *text) {
  const char *error;
  size_t error_at;
  if (nxc_expression_parse(arena, text, &error, &error_at) == NULL) complain(file, error, text);
  fputs("      {NX_SETTING_", stdout);
  for (const char *at = setting; *at != '\0'; at++) putchar(*at == '.' ? '_' : toupper((unsigned char)*at));
  fputs(", ", stdout);
  gen_write_text(text);
  puts("},");
}

static void write_model_types(const gen_family *head) {
  if (head->model_types_count == 0) return;
  fputs(".model_types = (const char *const[]){", stdout);
  for (unsigned i = 0; i < head->model_types_count; i++) {
    gen_write_text(head->model_types[i]);
    fputs(", ", stdout);
  }
  printf("}, .n_model_types = %u,\n    ", head->model_types_count);
}

static void write_family(nxc_arena *arena, const family *family) {
  printf("  {.name = \"%s\"", family->head->family);
  gen_write_field("architecture", family->head->architecture);
  fputs(",\n    ", stdout);
  write_model_types(family->head);
  puts(".keys = (const nxc_family_key[]){");
  printf("      {NULL, NULL}}, .n_keys = %u,\n", write_list(arena, family, family, keys_of, write_key));
  puts("    .defaults = (const nxc_family_key[]){");
  printf("      {NULL, NULL}}, .n_defaults = %u,\n",
         write_list(arena, family, family, defaults_of, write_key));
  puts("    .writes = (const nxc_family_key[]){");
  printf("      {NULL, NULL}}, .n_writes = %u,\n",
         write_list(arena, family, family, writes_of, write_written));
  puts("    .sets = (const nxc_assignment[]){");
  unsigned n_sets = write_list(arena, family, family, sets_of, write_assignment);
  printf("      {NX_SETTING_MODEL_CHECKPOINT_NAMES, \"'%s'\"}}, .n_sets = %u,\n    ", family->head->family,
         n_sets + 1);
  fputs(".tensors = {", stdout);
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (family->tensors[part][0] != '\0') printf("\n    [%d] = %s,", part, family->tensors[part]);
  puts("}},");
}

/* Reads the files whose families are like none, or like one that is read; returns how many there are then. */
static int read_families(const gen_file *files, bool *read, int n_files, family *families, int n_families) {
  for (int i = 0; i < n_files; i++) {
    const gen_family *head = files[i].rows;
    bool ready = head->like == NULL || family_of(families, n_families, head->like) != NULL;
    if (read[i] || !ready) continue;
    write_tensors(&files[i], &families[n_families], families, n_families);
    n_families++;
    read[i] = true;
  }
  return n_families;
}

static void check_heads(const gen_file *files, const bool *read, int n_files) {
  for (int i = 0; i < n_files; i++)
    if (!read[i])
      complain(files[i].path,
               "there is no family, or it is like this one:", ((const gen_family *)files[i].rows)->like);
}

static void write_families(nxc_arena *arena, const gen_file *files, int n_files) {
  family *families = nxc_arena_array(arena, (size_t)n_files, sizeof *families);
  bool *read = nxc_arena_array(arena, (size_t)n_files, sizeof *read);
  int n = 0, before;
  do {
    before = n;
    n = read_families(files, read, n_files, families, n);
  } while (n > before);
  check_heads(files, read, n_files);
  puts("const nxc_family nxc_families[] = {");
  for (int i = 0; i < n && n_complaints == 0; i++) write_family(arena, &families[i]);
  puts("};\nconst size_t nxc_n_families = sizeof nxc_families / sizeof *nxc_families;");
}

/* Meson lists the folder when it configures: a file that came later is told of. */
static void check_folder(const char *folder, const gen_file *files, int n_files) {
  DIR *open = opendir(folder);
  for (const struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
    const char *ending = strrchr(entry->d_name, '.');
    bool known = entry->d_name[0] == '.' || ending == NULL || strcmp(ending, ".yaml") != 0;
    for (int i = 0; i < n_files && !known; i++)
      known = strcmp(strrchr(files[i].path, '/') + 1, entry->d_name) == 0;
    if (!known) complain(folder, "a new family is seen by meson setup --reconfigure", entry->d_name);
  }
  if (open == NULL) complain(folder, "cannot be read", NULL);
  else closedir(open);
}

/* The folder is one more thing that the output is made of. */
static bool write_dependency(const char *path, const char *folder) {
  FILE *out = fopen(path, "w");
  bool good = out != NULL && fprintf(out, "%.*s: %s\n", (int)(strlen(path) - 2), path, folder) > 0;
  return out != NULL && fclose(out) == 0 && good;
}

int main(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  gen_file *files = nxc_arena_array(arena, (size_t)argc, sizeof *files);
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from schema/families by compiler/gen; do not edit. */");
  puts("#include \"compiler/settings/family.h\"\n");
  int n_files = argc - 2;
  for (int i = 0; i < n_files; i++) {
    if (!gen_file_read(&files[i], GEN_FAMILY, argv[i + 2])) return EXIT_FAILURE;
    const gen_family *head = files[i].rows;
    if (files[i].n_rows > 0 && head->family != NULL) continue;
    complain(files[i].path, "the first row names the family", NULL);
    return EXIT_FAILURE;
  }
  const char *slash = n_files > 0 ? strrchr(files[0].path, '/') : NULL;
  if (slash == NULL) return EXIT_FAILURE;
  const char *folder = nxc_arena_strndup(arena, files[0].path, (size_t)(slash - files[0].path));
  check_folder(folder, files, n_files);
  if (!write_dependency(argv[1], folder)) return EXIT_FAILURE;
  write_families(arena, files, n_files);
  nxc_arena_free(arena);
  return n_complaints > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
