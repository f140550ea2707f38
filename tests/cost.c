/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of nxcfg costs: processor time and memory of the whole process, and the size of the plan that
 * it writes. Usage: cost MAX_MS MAX_KIB MAX_PLAN_BYTES NXCFG ARGUMENT... -o PLAN
 *
 * Other work on the machine only adds to the time, so the least of many runs is judged; on a slower machine
 * the limit is longer (measure.h). */
#include "tests/measure.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N_RUNS = 40, LONGEST_MS = 4000 /* of all runs together, unless one takes as long */, LIMIT_S = 60 };

/* Of the file behind -o; -1 where there is none. */
static long plan_bytes(char **arguments) {
  struct stat plan;
  while (*arguments != NULL && strcmp(*arguments, "-o") != 0) arguments++;
  return *arguments != NULL && stat(arguments[1], &plan) == 0 ? (long)plan.st_size : -1;
}

static void judge(double found, double most, const char *what) {
  tap_report(found >= 0 && found <= most, "%.2f %s, at most %.0f", found, what, most);
}

int main(int argc, char **argv) {
  double least_ms = 1e9, all_ms = 0;
  long most_kib = 0;
  if (argc < 6) return EXIT_FAILURE;
  for (int i = 0; i < N_RUNS && all_ms < LONGEST_MS; i++) {
    double slowness = measure_slowness();
    measured run = measure_run(argv + 4, NULL, LIMIT_S);
    if (run.exit_status != 0) tap_bail("%s %s fails", argv[4], argv[5]);
    all_ms += run.cpu_ms;
    if (run.cpu_ms / slowness < least_ms) least_ms = run.cpu_ms / slowness;
    if (run.memory_kib > most_kib) most_kib = run.memory_kib;
  }
  judge(least_ms, atof(argv[1]), "ms of processor time");
  judge((double)most_kib, atof(argv[2]), "KiB of memory");
  judge((double)plan_bytes(argv + 4), atof(argv[3]), "bytes of plan");
  return tap_end();
}
