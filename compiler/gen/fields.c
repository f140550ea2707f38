/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/fields.h"

#include "compiler/gen/check.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/shared.h"
#include "compiler/gen/values.h"

#include <stdio.h>
#include <string.h>

static const char *type_constant(nxc_type type) {
  static const char *const names[] = {
      [NXC_TYPE_INT] = "INT",
      [NXC_TYPE_FLOAT] = "FLOAT",
      [NXC_TYPE_INT_OR_FLOAT] = "INT_OR_FLOAT",
      [NXC_TYPE_BOOL] = "BOOL",
      [NXC_TYPE_BIT] = "BIT",
      [NXC_TYPE_STR] = "STR",
      [NXC_TYPE_PATH] = "PATH",
      [NXC_TYPE_ENUM] = "ENUM",
      [NXC_TYPE_LIST] = "LIST",
      [NXC_TYPE_LIST_INT] = "LIST_INT",
      [NXC_TYPE_LIST_FLOAT] = "LIST_FLOAT",
      [NXC_TYPE_LIST_STR] = "LIST_STR",
      [NXC_TYPE_MAP] = "MAP",
      [NXC_TYPE_ANY] = "ANY",
  };
  return names[type];
}

bool gen_is_yes(const char *word) {
  return word != NULL && (strcmp(word, "yes") == 0 || strcmp(word, "true") == 0);
}

void gen_field_texts(const char *name, char *const *texts, unsigned n_texts) {
  if (n_texts == 0) return;
  printf(", .%s = ", name);
  gen_shared_texts(texts, n_texts);
  printf(", .n_%s = %u", name, n_texts);
}

void gen_field_flag(const char *name, const char *word) {
  if (gen_is_yes(word)) printf(", .%s = true", name);
}

static void field_literal(nxc_arena *arena, const char *name, nxc_type type, const char *text) {
  if (text == NULL) return;
  printf(", .%s = ", name);
  gen_shared_value(gen_literal(arena, type, text));
}

/* "VALUE in VERSION, VERSION" */
void gen_field_versioned(nxc_arena *arena, const char *name, nxc_type type, char *const *texts,
                            unsigned n_texts) {
  if (n_texts == 0) return;
  printf(", .%s = (const nxc_versioned[]){", name);
  for (unsigned i = 0; i < n_texts; i++) {
    const char *value, *names;
    char *rest, *versions[8];
    unsigned n_versions = 0;
    gen_versioned_split(arena, texts[i], &value, &names);
    char *version = strtok_r(nxc_arena_strdup(arena, names), ", ", &rest);
    for (; version != NULL && n_versions < 8; version = strtok_r(NULL, ", ", &rest))
      versions[n_versions++] = version;
    fputs("{.value = ", stdout);
    gen_shared_value(gen_literal(arena, type, value));
    gen_field_texts("versions", versions, n_versions);
    fputs("}, ", stdout);
  }
  printf("}, .n_%s = %u", name, n_texts);
}

void gen_field_domain(nxc_arena *arena, const gen_domain_texts *texts) {
  nxc_type type = NXC_TYPE_ANY;
  gen_type_find(texts->type, &type);
  bool nullable = gen_is_yes(texts->nullable) || (texts->initial && strcmp(texts->initial, "null") == 0);
  printf(", .domain = {.type = NXC_TYPE_%s", type_constant(type));
  if (nullable) fputs(", .nullable = true", stdout);
  gen_field_texts("values", texts->values, texts->n_values);
  field_literal(arena, "min", type, texts->min);
  field_literal(arena, "max", type, texts->max);
  field_literal(arena, "above", type, texts->above);
  putchar('}');
  field_literal(arena, "initial", type, texts->initial);
}
