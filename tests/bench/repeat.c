/* SPDX-License-Identifier: Apache-2.0 */
/* `repeat N PROGRAM ARGUMENT...` runs a program N times, its output discarded, and prints the least of its
 * processor times and the median of its times in milliseconds, and the largest of its memory in KiB. */
#include "tests/measure.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  enum { LIMIT_S = 600 };
  int n_runs = argc > 2 ? atoi(argv[1]) : 0;
  if (n_runs < 1) return 2;
  double *times = calloc((size_t)n_runs, sizeof *times);
  double least_cpu_ms = 1e300;
  long memory_kib = 0;
  if (times == NULL) return 1;
  for (int i = 0; i < n_runs; i++) {
    measured run = measure_run(argv + 2, NULL, LIMIT_S);
    if (run.exit_status != 0)
      return fprintf(stderr, "repeat: %s ends with %d\n", argv[2], run.exit_status), 1;
    if (run.memory_kib > memory_kib) memory_kib = run.memory_kib;
    if (run.cpu_ms < least_cpu_ms) least_cpu_ms = run.cpu_ms;
    times[i] = run.wall_ms;
  }
  qsort(times, (size_t)n_runs, sizeof *times, compare);
  printf("%.3f %.3f %ld\n", least_cpu_ms, times[n_runs / 2], memory_kib);
  free(times);
  return 0;
}
