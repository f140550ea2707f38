/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue beside what the real systems declare, as TAP.
 *
 * $NX_SHARED/seeds/options.tsv lists the options of the documents; fields/ lists those that each system's own
 * code declares, with type, default and words. Each must stand in the catalogue, in that version, with these.
 * Where it does not, a line says so:
 *
 *   SYSTEM OPTION: what, theirs, ours
 *
 * and the line must stand in coverage.txt, with its reason behind " # "; a line there that is not needed
 * fails as well. UPDATE=1 prints the lines on standard error. Without NX_SHARED the test is skipped.
 * Usage: coverage COVERAGE.TXT */
#include "compiler/config/front/front.h"
#include "compiler/settings/catalogue.h"
#include "tests/tap.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 8192, COLUMNS_MAX = 12, LINES_MAX = 1024 };

typedef struct table {
  const char *file, *dialect, *version; /* version NULL: any */
  int name, type, initial, words, action, n_args; /* columns; -1: none */
} table;

static const table tables[] = {
    {"seeds/options.tsv", NULL, NULL, 2, -1, -1, -1, -1, -1},
    {"fields/megatron-0.10.tsv", "megatron", "0.10", 1, 3, 4, 7, 5, 6},
    {"fields/megatron-0.11.tsv", "megatron", "0.11", 1, 3, 4, 7, 5, 6},
    {"fields/neox.tsv", "neox", "today", 1, 2, 3, -1, -1, -1},
    {"fields/nxdt.tsv", "nxdt", NULL, 0, -1, -1, -1, -1, -1},
    {"fields/xorl.tsv", "xorl", "seed", 1, 2, 3, -1, -1, -1},
    {"fields/xorl-later.tsv", "xorl", "later", 1, 2, 3, -1, -1, -1},
};
enum { N_TABLES = sizeof tables / sizeof *tables };

static nxc_arena *arena;
static char *reviewed[LINES_MAX];
static bool needed[LINES_MAX];
static size_t n_reviewed, n_bad;

/* -- deviations ------------------------------------------------------------------------------------------ */

static void read_reviewed(const char *path) {
  char line[LINE_BYTES_MAX];
  FILE *file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL && n_reviewed < LINES_MAX) {
    char *reason = strstr(line, " # ");
    if (*line == '#' || *line == '\n') continue;
    if (reason != NULL) *reason = '\0'; /* a line without a reason fits nothing */
    reviewed[n_reviewed++] = nxc_arena_strdup(arena, line);
  }
  if (file != NULL) fclose(file);
}

static void deviate(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void deviate(const char *format, ...) {
  char line[LINE_BYTES_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  size_t i = 0;
  while (i < n_reviewed && strcmp(reviewed[i], line) != 0) i++;
  if (i < n_reviewed) needed[i] = true;
  else tap_note("not reviewed: %s", line), n_bad++;
  if (getenv("UPDATE") != NULL) fprintf(stderr, "%s\n", line);
}

/* -- Python ---------------------------------------------------------------------------------------------- */

/* A literal of Python as the catalogue would show it: no quotes, no blanks, true, false and none. */
static const char *plain_literal(const char *text) {
  char *plain = nxc_arena_strdup(arena, text), *to = plain;
  for (const char *c = text; *c != '\0'; c++)
    if (strchr("'\" ", *c) == NULL) *to++ = *c;
  *to = '\0';
  static const char *const words[][2] = {
      {"True", "true"},         {"False", "false"}, {"None", "none"},          {"factory:list", "[]"},
      {"factory:dict", "none"}, {"", "none"},       {"<required>", "required"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(plain, words[i][0]) == 0) return words[i][1];
  return plain;
}

static const char *ours(const nxc_option_row *row, const char *version) {
  const nxc_value *value = nxc_option_default(row, version);
  if (value == NULL && row->required != NULL) return "required";
  return value == NULL || value->kind == NXC_NULL ? "none" : plain_literal(nxc_value_show(arena, value));
}

static bool same_literal(const char *a, const char *b) {
  char *end_a, *end_b;
  double x = strtod(a, &end_a), y = strtod(b, &end_b);
  return strcmp(a, b) == 0 || (*a != '\0' && *b != '\0' && *end_a == '\0' && *end_b == '\0' && x == y);
}

/* Optional[X] and X | None are X. */
static const char *bare_type(const char *type) {
  char *bare = nxc_arena_strdup(arena, type);
  for (char *none; (none = strstr(bare, " | None")) != NULL;) memmove(none, none + 7, strlen(none + 7) + 1);
  while (strncmp(bare, "Optional[", 9) == 0 && bare[strlen(bare) - 1] == ']') {
    bare[strlen(bare) - 1] = '\0';
    bare += 9;
  }
  return bare;
}

static bool fits_type(const char *type, nxc_type ours_is) {
  static const struct {
    const char *theirs;
    nxc_type types[5];
    size_t n_types;
  } fits[] = {
      {"int", {NXC_TYPE_INT}, 1},
      {"float", {NXC_TYPE_FLOAT}, 1},
      {"bool", {NXC_TYPE_BOOL}, 1},
      {"str", {NXC_TYPE_STR, NXC_TYPE_PATH, NXC_TYPE_ENUM}, 3},
      {"list", {NXC_TYPE_LIST, NXC_TYPE_LIST_INT, NXC_TYPE_LIST_FLOAT, NXC_TYPE_LIST_STR}, 4},
      {"dict", {NXC_TYPE_MAP}, 1},
      {"Any", {NXC_TYPE_ANY}, 1},
      {"List[str]", {NXC_TYPE_LIST_STR}, 1},
      {"List[int]", {NXC_TYPE_LIST_INT}, 1},
      {"List[Dict", {NXC_TYPE_LIST}, 1},
      {"Dict[", {NXC_TYPE_MAP}, 1},
      {"int | float", {NXC_TYPE_INT_OR_FLOAT}, 1},
      {"Union[int, float]", {NXC_TYPE_INT_OR_FLOAT, NXC_TYPE_FLOAT}, 2},
      {"Literal[", {NXC_TYPE_ENUM}, 1},
  };
  for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
    size_t n_bytes = strlen(fits[i].theirs);
    bool open = strchr(fits[i].theirs, '[') != NULL && fits[i].theirs[n_bytes - 1] != ']';
    if (open ? strncmp(type, fits[i].theirs, n_bytes) : strcmp(type, fits[i].theirs)) continue;
    for (size_t k = 0; k < fits[i].n_types; k++)
      if (fits[i].types[k] == ours_is) return true;
  }
  return false;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ['b', 'a', None] or Literal['b', 'a'] as a,b */
static const char *plain_words(const char *text) {
  const char *from = strchr(text, '['), *words[64], *joined = "";
  char *copy = nxc_arena_strdup(arena, plain_literal(from ? from + 1 : text)), *rest;
  size_t n_words = 0;
  if (*text == '\0') return "";
  for (char *word = strtok_r(copy, ",]{}", &rest); word != NULL && n_words < 64;
       word = strtok_r(NULL, ",]{}", &rest))
    if (strcmp(word, "None") != 0) words[n_words++] = word;
  qsort(words, n_words, sizeof *words, compare_texts);
  for (size_t i = 0; i < n_words; i++)
    joined = nxc_arena_printf(arena, "%s%s%s", joined, i ? "," : "", words[i]);
  return joined;
}

static const char *our_words(const nxc_option_row *row, const char *version) {
  const char *words = "";
  for (size_t i = 0; i < row->domain.n_values; i++) {
    const nxc_versioned *kept = nxc_option_word(row, row->domain.values[i]);
    if (kept == NULL || nxc_in_version(kept->versions, kept->n_versions, version))
      words = nxc_arena_printf(arena, "%s%s%s", words, *words ? "," : "", row->domain.values[i]);
  }
  return words;
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static const char *spell(const char *dialect, const char *name) {
  char *spelt = nxc_arena_strdup(arena, name + strspn(name, "-"));
  for (char *c = spelt; strcmp(dialect, "neox") == 0 && *c != '\0'; c++)
    if (*c == '-') *c = '_';
  return spelt;
}

static void compare_switch(const table *t, const nxc_option_row *row, char *const *columns) {
  const nxc_value *value = nxc_option_default(row, t->version);
  bool off = value != NULL && value->kind == NXC_BOOL && !value->boolean;
  if (row->domain.type != NXC_TYPE_BOOL || !off)
    deviate("%s@%s %s: switch, %s, %s", t->dialect, t->version, row->name, columns[t->action],
            ours(row, t->version));
}

static void compare(const table *t, const nxc_option_row *row, char *const *columns) {
  if (row->alias_of != NULL) row = nxc_option_find(nxc_dialect_find(t->dialect), row->alias_of);
  if (t->action >= 0 && strncmp(columns[t->action], "store_", 6) == 0) {
    compare_switch(t, row, columns);
    return;
  }
  const char *type = bare_type(columns[t->type]), *theirs = plain_literal(columns[t->initial]);
  bool list = t->n_args >= 0 && *columns[t->n_args] != '\0';
  if (!fits_type(list ? "list" : type, row->domain.type))
    deviate("%s@%s %s: type, %s, %s", t->dialect, t->version, row->name, type,
            nxc_type_name(row->domain.type));
  const char *mine = ours(row, t->version);
  if (!same_literal(theirs, mine))
    deviate("%s@%s %s: default, %s, %s", t->dialect, t->version, row->name, theirs, mine);
  const char *words = t->words >= 0 ? columns[t->words] : strncmp(type, "Literal[", 8) == 0 ? type : "";
  words = plain_words(words);
  mine = plain_words(our_words(row, t->version));
  if (strcmp(words, mine) != 0)
    deviate("%s@%s %s: words, %s, %s", t->dialect, t->version, row->name, words, mine);
}

static void check_name(const table *t, const char *dialect_name, const char *name, char *const *columns) {
  const nxc_dialect *dialect = nxc_dialect_find(dialect_name);
  const nxc_option_row *row = dialect ? nxc_option_find(dialect, spell(dialect_name, name)) : NULL;
  if (row == NULL) deviate("%s %s: missing", dialect_name, name);
  else if (!nxc_in_version(row->versions, row->n_versions, t->version))
    deviate("%s@%s %s: version", dialect_name, t->version, row->name);
  else if (t->type >= 0) compare(t, row, columns);
}

/* Classes of xorl, by the section that their fields stand in. */
static const char *section_of(const char *class) {
  static const char *const sections[][2] = {{"ModelArguments", "model."},
                                            {"DataArguments", "data."},
                                            {"TrainingArguments", "train."},
                                            {"LoRAArguments", "lora."},
                                            {"DistillationArguments", "distill."},
                                            {"InferArguments", "infer."},
                                            {"DatasetConfig", "data.datasets[]."}};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
    if (strcmp(sections[i][0], class) == 0) return sections[i][1];
  return NULL; /* Arguments: the sections themselves */
}

static void check_row(const table *t, char **columns) {
  const char *dialect = t->dialect ? t->dialect : columns[0], *name = columns[t->name];
  if (t->version != NULL && strcmp(dialect, "xorl") == 0) {
    const char *section = section_of(columns[0]);
    if (section != NULL) check_name(t, dialect, nxc_arena_printf(arena, "%s%s", section, name), columns);
    return;
  }
  if (strcmp(dialect, "xorl") == 0 && strncmp(name, "datasets.", 9) == 0)
    name = nxc_arena_printf(arena, "data.datasets[].%s", name + 9);
  char *names = nxc_arena_strdup(arena, name), *rest;
  for (char *one = strtok_r(names, ", ", &rest); one != NULL; one = strtok_r(NULL, ", ", &rest))
    check_name(t, dialect, one, columns);
}

static size_t check_table(const table *t) {
  char line[LINE_BYTES_MAX], path[LINE_BYTES_MAX], *columns[COLUMNS_MAX];
  size_t n_rows = 0;
  snprintf(path, sizeof path, "%s/%s", getenv("NX_SHARED"), t->file);
  FILE *file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
      columns[i] = rest ? strsep(&rest, "\t") : line + strlen(line);
    }
    bool head = n_rows == 0 && (strcmp(columns[0], "group") == 0 || strcmp(columns[0], "dialect") == 0);
    n_rows++;
    if (!head) check_row(t, columns);
  }
  if (file != NULL) fclose(file);
  return n_rows;
}

int main(int argc, char **argv) {
  const char *shared = getenv("NX_SHARED");
  if (argc != 2 || shared == NULL)
    return argc != 2 ? 2 : tap_skip_all("NX_SHARED names no folder with lists of options");
  arena = nxc_arena_new();
  read_reviewed(argv[1]);
  for (size_t i = 0; i < N_TABLES; i++) {
    n_bad = 0;
    size_t n_rows = check_table(&tables[i]);
    tap_report(n_bad == 0 && n_rows > 100, "%zu rows of %s", n_rows, tables[i].file);
  }
  size_t n_idle = 0;
  for (size_t i = 0; i < n_reviewed; i++) {
    if (!needed[i]) tap_note("not needed: %s", reviewed[i]), n_idle++;
  }
  tap_report(n_idle == 0, "every reviewed line is needed");
  nxc_arena_free(arena);
  return tap_end();
}
