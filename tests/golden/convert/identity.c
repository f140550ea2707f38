/* SPDX-License-Identifier: Apache-2.0 */
/* What an option sets, its dialect can say again: each option that sets something or has a `from` is given
 * samples of its values, over a file that is valid; the training is composed anew in the same dialect and
 * read back. Every setting must be the same. Exceptions stand in the reviewed LISTING, "OPTION=VALUE:
 * SETTINGS"; UPDATE=1 prints them. TAP, a test for each dialect. Usage: identity LISTING FILE... */
#include "compiler/convert/convert.h"
#include "compiler/config/fronts.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 64, SAMPLES_MIN = 60, LINE_MAX_BYTES = 1024 };

typedef struct samples {
  const char *texts[SAMPLES_MAX];
  int n_texts;
} samples;

static void add(samples *to, const char *text) {
  for (int i = 0; i < to->n_texts; i++)
    if (strcmp(to->texts[i], text) == 0) return;
  if (to->n_texts < SAMPLES_MAX) to->texts[to->n_texts++] = text;
}

static void add_number(nxc_arena *arena, samples *to, const nxc_domain *domain, nxc_value number) {
  const nxc_verdict verdict = nxc_domain_judge(arena, domain, &number, false);
  if (verdict.misfit == NXC_FITS) add(to, nxc_value_show(arena, verdict.value));
}

/* The option is nothing but a setting: what a number amounts to does not hang on which it is. */
static bool is_plain(const nxc_option_row *row) {
  return row->n_sets == 1 && row->from == NULL && strcmp(row->sets[0].expression, "value") == 0;
}

static samples samples_of(nxc_arena *arena, const nxc_option_row *row, const char *version) {
  static const int64_t integers[] = {0, 1, 2, 96, 3, 4, 6, 64};
  static const double numbers[] = {0.25, 1.0, 0.5, 0.9, 2.0};
  const size_t n_integers = is_plain(row) ? 4 : sizeof integers / sizeof *integers,
               n_numbers = is_plain(row) ? 2 : sizeof numbers / sizeof *numbers;
  samples found = {.n_texts = 0};
  for (size_t i = 0; i < row->domain.n_values; i++) {
    const nxc_versioned *kept = nxc_option_word(row, row->domain.values[i]);
    if (kept == NULL || nxc_in_version(kept->versions, kept->n_versions, version))
      add(&found, row->domain.values[i]);
  }
  if (row->domain.type == NXC_TYPE_BOOL) {
    add(&found, "true");
    add(&found, "false");
  }
  bool integer = row->domain.type == NXC_TYPE_INT || row->domain.type == NXC_TYPE_INT_OR_FLOAT;
  bool real = row->domain.type == NXC_TYPE_FLOAT || row->domain.type == NXC_TYPE_INT_OR_FLOAT;
  for (size_t i = 0; integer && i < n_integers; i++)
    add_number(arena, &found, &row->domain, (nxc_value){.kind = NXC_INT, .integer = integers[i]});
  for (size_t i = 0; real && i < n_numbers; i++)
    add_number(arena, &found, &row->domain, (nxc_value){.kind = NXC_FLOAT, .number = numbers[i]});
  return found;
}

/* -- listing --------------------------------------------------------------------------------------------- */

static char *listing;

static bool is_listed(const char *line) {
  const char *found = listing ? strstr(listing, line) : NULL;
  return found != NULL && (found == listing || found[-1] == '\n') && found[strlen(line)] == '\n';
}

static char *read_all(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = calloc(1, 1 << 20);
  if (file == NULL || text == NULL) return text;
  size_t n_bytes = fread(text, 1, (1 << 20) - 1, file);
  text[n_bytes] = '\0';
  fclose(file);
  return text;
}

/* -- trying ---------------------------------------------------------------------------------------------- */

typedef struct trying {
  nxc_request base;
  const char *to, *name; /* the dialect, with its version and without */
  int n_tried, n_bad;
} trying;

/* Samples that the system refuses, over this file, say nothing. */
static void try_sample(trying *t, const nxc_option_row *row, const char *text) {
  nxc_arena *arena = nxc_arena_new();
  const char *sets[] = {nxc_arena_printf(arena, "%s=%s", row->name, text)};
  nxc_conversion_request request = {
      .from = t->base, .to = t->to, .anew = true, .reveal = true, .model_path = "config.json"};
  request.from.sets = sets;
  request.from.n_sets = 1;
  nxc_conversion conversion;
  char line[LINE_MAX_BYTES];
  int n = snprintf(line, sizeof line, "%s %s:", t->name, sets[0]);
  bool good = nxc_convert(arena, &request, nxc_sink_new(arena), &conversion);
  bool differs = false;
  for (size_t i = 0; good && i < conversion.n_unsaid; i++) {
    const char *name = conversion.unsaid[i].name;
    if (name == NULL || nxc_setting_find(name) == NX_N_SETTINGS) continue;
    bool outside = strcmp(name, "mesh.world") == 0 || strcmp(name, "data.kind") == 0; /* xorl's, as ever */
    if (outside && strcmp(t->name, "xorl") == 0) continue;
    n += snprintf(line + n, sizeof line - (size_t)n, " %s", name);
    differs = true;
  }
  t->n_tried += good;
  if (differs && getenv("UPDATE")) fprintf(stderr, "%s\n", line);
  if (differs && !is_listed(line)) {
    tap_note("%s", line);
    t->n_bad++;
  }
  nxc_arena_free(arena);
}

static void try_dialect(trying *t) {
  const nxc_dialect *dialect = nxc_dialect_find(t->to);
  nxc_arena *arena = nxc_arena_new();
  const char *version;
  nxc_front_find(arena, t->to, &version);
  if (version != NULL) t->base.dialect = t->to = nxc_arena_printf(arena, "%s@%s", dialect->name, version);
  t->name = dialect->name;
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    bool here = row->alias_of == NULL && nxc_in_version(row->versions, row->n_versions, version);
    if (!here || (row->n_sets == 0 && row->from == NULL)) continue;
    samples found = samples_of(arena, row, version);
    for (int k = 0; k < found.n_texts; k++) try_sample(t, row, found.texts[k]);
  }
  nxc_arena_free(arena);
}

int main(int argc, char **argv) {
  static const char *const dialects[] = {"nx", "nxdt", "megatron", "neox", "xorl"};
  if (argc < 2) return 2;
  listing = read_all(argv[1]);
  for (int i = 2; i < argc; i++) {
    for (size_t d = 0; d < sizeof dialects / sizeof *dialects; d++) {
      char folder[32];
      snprintf(folder, sizeof folder, "/%s/", dialects[d]);
      if (strstr(argv[i], folder) == NULL) continue;
      trying t = {.base = {.file = argv[i], .dialect = dialects[d]}, .to = dialects[d]};
      if (strcmp(dialects[d], "xorl") == 0) t.base.world_size = "2";
      try_dialect(&t);
      bool good = t.n_bad == 0 && t.n_tried >= SAMPLES_MIN;
      tap_report(good, "%s, %d samples", dialects[d], t.n_tried);
    }
  }
  free(listing);
  return tap_end();
}
