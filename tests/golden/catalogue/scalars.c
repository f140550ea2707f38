/* SPDX-License-Identifier: Apache-2.0 */
/* What each dialect's loader makes of a scalar, as TAP: a line of scalars.txt is
 *
 *   TEXT | dialect | what a text, an integer, a number and a switch get of it | findings
 *
 * where ! is a value that the option refuses, and findings are their ids, each once. Every text is tried in
 * every dialect; UPDATE=1 rewrites the file. Usage: scalars SCALARS.TXT */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/fronts.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
    "3e-4", "3.0e-4", "1e5",   "1.5e3", "1e+3",       "1.0e+3", "1:30", "010",   "08",    "0o10", "0x10",
    "0b11", "1_000",  "_1",    "yes",   "on",         "y",      "True", "true",  "TRUE",  "no",   "None",
    "null", "~",      ".5",    "1.",    "+1",         "-1",     "-0",   ".inf",  "inf",   ".nan", "nan",
    "=",    "???",    "1,000", "1.2.3", "2024-01-01", "\"1\"",  "''",   "'yes'"};
enum { N_TEXTS = sizeof texts / sizeof *texts, N_KINDS = 4, LINE_BYTES_MAX = 512 };

typedef struct form {
  const char *name, *dialect;
  const char *format; /* %1$s is the text */
  const char *options[N_KINDS]; /* that take a text, an integer, a number and a switch; NULL: none */
} form;

static const form forms[] = {
    {"nx", "nx",
     "run:\n  directory: %1$s\n  seed: %1$s\noptimizer:\n  lr: %1$s\nmodel:\n  tied_embeddings: %1$s\n",
     {"run.directory", "run.seed", "optimizer.lr", "model.tied_embeddings"}},
    {"nxdt", "nxdt",
     "name: %1$s\nseed: %1$s\nmodel:\n  optim:\n    lr: %1$s\nexp_manager:\n  resume_if_exists: %1$s\n",
     {"name", "seed", "model.optim.lr", "exp_manager.resume_if_exists"}},
    {"neox", "neox", "comment: %1$s\nseed: %1$s\nmin_lr: %1$s\nno_weight_tying: %1$s\n",
     {"comment", "seed", "min_lr", "no_weight_tying"}},
    {"xorl", "xorl", "train:\n  wandb_name: %1$s\n  seed: %1$s\n  lr: %1$s\n  use_wandb: %1$s\n",
     {"train.wandb_name", "train.seed", "train.lr", "train.use_wandb"}},
    {"megatron", "megatron", "--wandb-project %1$s\n--seed %1$s\n--lr %1$s\n",
     {"wandb-project", "seed", "lr", NULL}},
    {"megatron MODEL_ARGS", "megatron",
     "MODEL_ARGS:\n  --wandb-project: %1$s\n  --seed: %1$s\n  --lr: %1$s\n  --bf16: %1$s\n",
     {"wandb-project", "seed", "lr", "bf16"}},
    {"megatron --yaml-cfg", "megatron",
     "language_model:\n  num_layers: 1\nmodel_parallel:\n  bf16: %1$s\nwandb_project: %1$s\nseed: %1$s\n"
     "lr: %1$s\n",
     {"wandb-project", "seed", "lr", "bf16"}},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static int compare_ids(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *list_findings(nxc_arena *arena, const nxc_sink *sink) {
  const char *ids[256], *list = "";
  size_t n_ids = 0;
  for (size_t i = 0; i < nxc_sink_n_findings(sink) && n_ids < 256; i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool about_value = finding->severity != NXC_SEVERITY_NOTE && strcmp(finding->id, "NX1307") != 0;
    if (about_value) ids[n_ids++] = finding->id;
  }
  qsort(ids, n_ids, sizeof *ids, compare_ids);
  for (size_t i = 0; i < n_ids; i++)
    if (i == 0 || strcmp(ids[i], ids[i - 1]) != 0) list = nxc_arena_printf(arena, "%s %s", list, ids[i]);
  return list;
}

static const char *show(nxc_arena *arena, const nxc_binding *binding, const char *option) {
  const nxc_bound *bound = option ? nxc_binding_find(binding, option) : NULL;
  if (bound == NULL || !bound->given) return "-";
  if (bound->value == NULL) return "!";
  bool text = bound->value->kind == NXC_STRING;
  return text ? nxc_arena_printf(arena, "\"%s\"", bound->value->text) : nxc_value_show(arena, bound->value);
}

static const char *judge(nxc_arena *arena, const char *text, const form *as) {
  const char *version, *line = nxc_arena_printf(arena, "%s | %s |", text, as->name);
  char written[LINE_BYTES_MAX];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(written, sizeof written, as->format, text);
#pragma GCC diagnostic pop
  const nxc_front *front = nxc_front_find(arena, as->dialect, &version);
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_front_texts given = {.arena = arena,
                                 .sink = sink,
                                 .first = nxc_source_new(arena, "scalars", written, strlen(written)),
                                 .version = version};
  nxc_document *document = front->read(&given);
  nxc_settings *settings = nxc_settings_new(arena);
  const nxc_origin origin = {.first = given.first};
  const nxc_dialect *dialect = nxc_dialect_find(as->dialect);
  nxc_settings_speak(settings, dialect);
  nxc_binding *binding = nxc_binding_new(arena, dialect, version, document, &origin, settings, sink);
  if (document->complete) {
    const nxc_resolving resolving = {0};
    front->resolve(document, &resolving, sink);
    nxc_binding_read(binding);
    if (front->prepare != NULL) front->prepare(binding);
    binding->partial = true;
    nxc_binding_apply(binding);
  }
  for (size_t i = 0; i < N_KINDS; i++)
    line = nxc_arena_printf(arena, "%s %s", line,
                            document->complete ? show(arena, binding, as->options[i]) : "!");
  return nxc_arena_printf(arena, "%s |%s", line, list_findings(arena, sink));
}

/* The next line that is no comment; "" at the end. */
static void next_line(FILE *file, char *line) {
  do {
    *line = '\0';
    if (file == NULL || fgets(line, LINE_BYTES_MAX, file) == NULL) return;
    line[strcspn(line, "\n")] = '\0';
  } while (*line == '#' || *line == '\0');
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  bool update = getenv("UPDATE") != NULL;
  FILE *file = fopen(argv[1], update ? "w" : "r");
  if (file == NULL) tap_bail("cannot open %s", argv[1]);
  if (update)
    fputs("# TEXT | dialect | what a text, an integer, a number and a switch get; ! is refused | findings\n",
          file);
  for (size_t i = 0; i < N_TEXTS; i++) {
    bool good = true;
    for (size_t k = 0; k < N_FORMS; k++) {
      char wanted[LINE_BYTES_MAX];
      nxc_arena *arena = nxc_arena_new();
      const char *found = judge(arena, texts[i], &forms[k]);
      if (update) fprintf(file, "%s\n", found);
      else next_line(file, wanted);
      bool same = update || strcmp(wanted, found) == 0;
      if (!same) tap_note("wanted %s", wanted), tap_note("found  %s", found);
      good = good && same;
      nxc_arena_free(arena);
    }
    tap_report(good, "%s", texts[i]);
  }
  fclose(file);
  return tap_end();
}
