/* SPDX-License-Identifier: Apache-2.0 */
/* How long `nxcfg validate` takes on one core, and how much memory: limits of the whole process, for files of
 * three sizes and several kinds, with findings and without. TAP. Usage: speed NXCFG SOURCE_ROOT
 *
 * Processor time is judged, so that other work does not count, and a run that is too slow is repeated: the
 * least time is what the program needs. On a slower machine the limits are longer (measure.h). */
#include "tests/measure.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_MS = 10000 /* of all tries together */, LIMIT_S = 60 };

typedef struct kind {
  const char *name, *dialect;
  const char *head, *tail; /* around the lines */
  const char *line;        /* %1$d is its number, and %2$d half of it; or two lines */
  int exit_status;
} kind;

static const char nx_head[] = "mesh: {world: 2, tensor: 2}\n"
                              "batch: {micro: 1, global: 2}\n"
                              "model: {layers: 1, hidden: 16, heads: 4, sequence: 8, vocab: 25}\n"
                              "data: {path: [x]}\n"
                              "vars:\n  first: 1\n";

static const kind kinds[] = {
    {"variables", "nx", nx_head, "", "  name_%1$d: value %2$d\n", 0},
    {"quoted texts", "nx", nx_head, "", "  name_%1$d: \"value %2$d\"\n", 0},
    {"a list", "nx", "vars:\n  list:\n", "", "    - item %1$d\n", 0},
    {"maps", "nx", nx_head, "", "  map_%1$d:\n    number: %2$d\n", 0},
    {"interpolations", "nx", nx_head, "", "  name_%1$d: ${.first}\n", 0},
    {"a chain", "nx", nx_head, "", "  name_%1$d: ${vars.first} of ${vars.first}\n", 0},
    {"unknown keys", "nxdt", "mine: 1\n", "", "name_%1$d: 1\n", 1},
    {"misspelt keys", "nxdt", "trainer:\n", "", "  gradient_clip_%1$d: 1\n", 1},
    {"keys given twice", "nx", nx_head, "", "  name_%2$d: 1\n", 1},
    {"odd scalars", "nx", nx_head, "", "  name_%1$d: yes\n", 0},
    {"a flow map", "neox", "{\n", "}\n", "  \"name-%1$d\": %2$d,\n", 1},
    {"arguments", "megatron", "--num-layers 2\n", "", "--name-%1$d %2$d\n", 1},
    {"sections", "xorl", "model:\n  model_path: x\n", "", "mine_%1$d: {a: 1}\n", 1},
};

static const struct {
  int n_lines;
  double cpu_ms;
} sizes[] = {{10000, 25}, {100000, 250}};

static void report(bool good, const char *name, const measured *run, double limit_ms, double slowness) {
  if (!good)
    tap_note("exit status %d; the machine is %.2f times as slow as the one of the limits", run->exit_status,
             slowness);
  tap_report(good, "%s: %.2f ms of at most %.0f, %ld KiB", name, run->cpu_ms, limit_ms, run->memory_kib);
}

/* Runs until the limits are kept, or the time for tries is used up: a short run is tried more often. */
static void judge(const char *name, char *const *command, double limit_ms, long limit_kib, int exit_status) {
  measured run = {0};
  double slowness = 1;
  bool good = false;
  double begin = measure_now_ms(CLOCK_MONOTONIC);
  while (!good && measure_now_ms(CLOCK_MONOTONIC) - begin < TRIES_MS) {
    double before = measure_slowness();
    run = measure_run(command, NULL, LIMIT_S);
    double after = measure_slowness();
    slowness = before > after ? before : after;
    good = run.exit_status == exit_status && run.cpu_ms <= limit_ms * slowness && run.memory_kib <= limit_kib;
    if (run.exit_status != exit_status) break;
  }
  report(good, name, &run, limit_ms, slowness);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool write_lines(const char *path, const kind *of, int n_lines) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return false;
  fputs(of->head, file);
  for (int i = 0; i < n_lines; i += 1 + (strchr(of->line, '\n')[1] != '\0'))
    fprintf(file, of->line, i, i / 2);
  fputs(of->tail, file);
  return fclose(file) == 0;
}
#pragma GCC diagnostic pop

int main(int argc, char **argv) {
  char folder[] = "/tmp/nxcfg-speed-XXXXXX", path[64], name[128], small[4096];
  if (argc != 3 || mkdtemp(folder) == NULL) return EXIT_FAILURE;
  snprintf(small, sizeof small, "%s/conf/nxdt/llama-7b.yaml", argv[2]);
  char validate[] = "validate", option[] = "--dialect";
  judge("150 lines", (char *[]){argv[1], validate, small, NULL}, 2.0, 6 * 1024, 0);
  snprintf(path, sizeof path, "%s/file.yaml", folder);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
      char dialect[16];
      snprintf(dialect, sizeof dialect, "%s", kinds[i].dialect);
      snprintf(name, sizeof name, "%d lines, %s", sizes[j].n_lines, kinds[i].name);
      if (!write_lines(path, &kinds[i], sizes[j].n_lines)) return EXIT_FAILURE;
      judge(name, (char *[]){argv[1], validate, option, dialect, path, NULL}, sizes[j].cpu_ms, 256 * 1024,
            kinds[i].exit_status);
    }
  }
  unlink(path);
  rmdir(folder);
  return tap_end();
}
