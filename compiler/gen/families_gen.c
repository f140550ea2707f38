/* SPDX-License-Identifier: Apache-2.0 */
/* Writes families.gen.c: schema/families/NAME.yaml as constant C tables. Arguments are the files; a family that is
 * `like` another stands behind it. */
#include "compiler/gen/rows.h"
#include "compiler/settings/family.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct family {
  const char *file;
  const gen_family *head;
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

static void write_tensor(const gen_file *file, const gen_family *row) {
  bool groups = row->layout != NULL && strcmp(row->layout, "groups") == 0;
  if (row->tensor == NULL || row->parts_count == 0) complain(file->path, "a row names a tensor and its parts", row->tensor);
  if (row->layout != NULL && !groups && strcmp(row->layout, "blocks") != 0)
    complain(file->path, "there is no layout", row->layout);
  printf("  {\"%s\", ", row->tensor);
  write_parts(file->path, row);
  printf(", %s, %s},\n", groups ? "NXC_LAYOUT_GROUPS" : "NXC_LAYOUT_BLOCKS", row->transposed ? "true" : "false");
}

/* The first row is the family itself, the others its tensors. */
static void write_tensors(const gen_file *file, family *made, const family *families, int n_families) {
  const gen_family *rows = file->rows;
  *made = (family){.file = file->path, .head = &rows[0]};
  if (file->n_rows == 0 || rows[0].family == NULL) {
    complain(file->path, "the first row names the family", NULL);
    return;
  }
  const family *like = rows[0].like ? family_of(families, n_families, rows[0].like) : NULL;
  if (rows[0].like != NULL && like == NULL) complain(file->path, "no family before it is", rows[0].like);
  if (like != NULL) memcpy(made->tensors, like->tensors, sizeof made->tensors);
  if (file->n_rows == 1) return;
  printf("static const nxc_tensor_row tensors_of_%s[] = {\n", file->name);
  for (unsigned i = 1; i < file->n_rows; i++) {
    write_tensor(file, &rows[i]);
    for (unsigned j = 0; j < rows[i].parts_count; j++)
      snprintf(made->tensors[part_of(file->path, rows[i].parts[j])], sizeof *made->tensors, "&tensors_of_%s[%u]",
               file->name, i - 1);
  }
  puts("};\n");
}

static void write_family(const family *family) {
  printf("  {.name = \"%s\", .tensors = {", family->head->family);
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (family->tensors[part][0] != '\0') printf("\n    [%d] = %s,", part, family->tensors[part]);
  puts("}},");
}

int main(int argc, char **argv) {
  family *families = calloc((size_t)argc, sizeof *families);
  if (families == NULL) return EXIT_FAILURE;
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from schema/families by compiler/gen; do not edit. */");
  puts("#include \"compiler/settings/family.h\"\n");
  for (int i = 1; i < argc; i++) {
    gen_file file;
    if (!gen_file_read(&file, GEN_FAMILY, argv[i])) return EXIT_FAILURE;
    write_tensors(&file, &families[i - 1], families, i - 1);
  }
  if (n_complaints > 0) return EXIT_FAILURE;
  puts("const nxc_family nxc_families[] = {");
  for (int i = 0; i < argc - 1; i++) write_family(&families[i]);
  puts("};\nconst size_t nxc_n_families = sizeof nxc_families / sizeof *nxc_families;");
  free(families);
  return EXIT_SUCCESS;
}
