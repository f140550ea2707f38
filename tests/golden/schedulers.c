/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates of whole configurations against those of the systems' own schedulers. argv[1]:
 * schedulers.txt, made by tests/parity/record_schedules.py; each line is a dialect, options, a colon, and a
 * rate for each step. */
#include "compiler/config/compile_settings.h"
#include "compiler/program/records/learning_rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 16, MOST_BYTES = 1 << 13 };

typedef struct base {
  const char *dialect, *text; /* of what does not concern the schedule */
} base;

static const base bases[] = {
    {"nxdt", "name: base\nmodel_source: hf\ntrainer: {max_steps: 50, devices: 1, num_nodes: 1}\n"
             "model: {optim: {name: adamw, lr: 0.003, sched: {name: WarmupPolicy}}}\n"},
    {"megatron", ""},
    {"neox", "{\"train_micro_batch_size_per_gpu\": 1, \"optimizer\": {\"type\": \"Adam\", \"params\": "
             "{\"lr\": 0.1}}}\n"},
    {"xorl", "train: {lr: 0.1}\n"},
};

static const base *find_base(const char *dialect) {
  size_t i = 0;
  while (strcmp(bases[i].dialect, dialect) != 0) i++;
  return &bases[i];
}

/* Options of Megatron are arguments; those of the others lie over the base. */
static bool compile(nxc_arena *arena, const char *dialect, const char *const *options, size_t n_options,
                    nxc_compiled *compiled) {
  const base *of = find_base(dialect);
  const char *arguments[MOST_OPTIONS + 2] = {"--micro-batch-size=1", "--global-batch-size=8"};
  nxc_request request = {.dialect = dialect, .world_size = "1", .assumes_defaults = true};
  if (of->text[0] == '\0') {
    for (size_t i = 0; i < n_options; i++) arguments[i + 2] = nxc_arena_printf(arena, "--%s", options[i]);
    request.arguments = arguments, request.n_arguments = n_options + 2;
  } else {
    request.file = "base.yaml";
    request.text = nxc_source_new(arena, request.file, of->text, strlen(of->text));
    request.sets = options, request.n_sets = n_options;
  }
  nxc_compile_settings(arena, &request, nxc_sink_new(arena), compiled);
  return compiled->settings != NULL;
}

static bool check_rates(const nxc_learning_rate *rate, char *rates, char **rest) {
  bool good = true;
  int64_t step = 0;
  for (char *word = strtok_r(rates, " \n", rest); word != NULL; word = strtok_r(NULL, " \n", rest), step++) {
    double expected = strtod(word, NULL), found = nxc_learning_rate_at(rate, step);
    if (fabs(found - expected) <= 1e-14 * fmax(fabs(expected), 1e-3)) continue;
    if (good) printf("# step %lld: %.17g, recorded %s\n", (long long)step, found, word);
    good = false;
  }
  if (step < 50) printf("# %lld rates\n", (long long)step);
  return good && step >= 50;
}

static bool check_line(char *line) {
  const char *options[MOST_OPTIONS];
  size_t n_options = 0;
  char *rest, *dialect = strtok_r(line, " ", &rest);
  for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL && strcmp(word, ":") != 0;)
    options[n_options++] = word;
  nxc_arena *arena = nxc_arena_new();
  nxc_compiled compiled;
  bool good = compile(arena, dialect, options, n_options, &compiled);
  if (good) {
    const nxc_learning_rate rate = nxc_learning_rate_read(compiled.settings);
    good = rate.max_steps == 50 && check_rates(&rate, NULL, &rest);
  }
  nxc_arena_free(arena);
  return good;
}

int main(int argc, char **argv) {
  static char line[MOST_BYTES], name[MOST_BYTES];
  FILE *file = fopen(argc > 1 ? argv[1] : "", "r");
  int n_lines = 0, n_bad = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    snprintf(name, sizeof name, "%.*s", (int)strcspn(line, ":") - 1, line);
    bool good = check_line(line);
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_lines, name);
    n_bad += !good;
  }
  if (file != NULL) fclose(file);
  printf("1..%d\n", n_lines);
  return n_bad > 0 || n_lines < 50;
}
