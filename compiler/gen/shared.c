/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/shared.h"

#include "compiler/gen/literal.h"

#include <stdio.h>
#include <string.h>

static nxc_arena *keep;
static const nxc_value **values;
static const char **texts;
static size_t n_values, n_texts;

void gen_shared_begin(nxc_arena *arena) {
  keep = arena;
  puts("extern const nxc_value nxc_catalogue_values[];\nextern const char *const nxc_catalogue_texts[];\n");
}

void gen_shared_value(const nxc_value *value) {
  size_t i = 0;
  while (i < n_values && !nxc_value_equal(values[i], value)) i++;
  if (i == n_values) {
    values = nxc_arena_grow(keep, values, n_values, sizeof *values);
    values[n_values++] = value;
  }
  printf("nxc_catalogue_values + %zu", i);
}

static bool stand_at(size_t at, char *const *run, unsigned n_run) {
  for (unsigned i = 0; i < n_run; i++)
    if (strcmp(texts[at + i], run[i]) != 0) return false;
  return true;
}

void gen_shared_texts(char *const *run, unsigned n_run) {
  size_t at = 0;
  while (at + n_run <= n_texts && !stand_at(at, run, n_run)) at++;
  if (at + n_run > n_texts) {
    at = n_texts;
    for (unsigned i = 0; i < n_run; i++) {
      texts = nxc_arena_grow(keep, texts, n_texts, sizeof *texts);
      texts[n_texts++] = nxc_arena_strdup(keep, run[i]);
    }
  }
  printf("nxc_catalogue_texts + %zu", at);
}

void gen_shared_end(void) {
  puts("const nxc_value nxc_catalogue_values[] = {");
  for (size_t i = 0; i < n_values; i++) {
    fputs("  ", stdout);
    gen_write_value(values[i]);
    puts(",");
  }
  puts("};\n\nconst char *const nxc_catalogue_texts[] = {");
  for (size_t i = 0; i < n_texts; i++) {
    fputs("  ", stdout);
    gen_write_text(texts[i]);
    puts(",");
  }
  puts("};");
}
