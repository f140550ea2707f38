/* SPDX-License-Identifier: Apache-2.0 */
/* `repeat N PROGRAM ARGUMENT...` runs a program N times, its output discarded, and prints the least and the median of
 * its times in milliseconds and the largest of its memory in KiB. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* The time of one run; negative when the program failed. */
static double run_once(char **command, long *memory_kib) {
  double start = now_ms();
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    execvp(command[0], command);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) return -1;
  if (usage.ru_maxrss > *memory_kib) *memory_kib = usage.ru_maxrss;
  return now_ms() - start;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int n_runs = argc > 2 ? atoi(argv[1]) : 0;
  if (n_runs < 1) return 2;
  double *times = calloc((size_t)n_runs, sizeof *times);
  long memory_kib = 0;
  if (times == NULL) return 1;
  for (int i = 0; i < n_runs; i++) {
    times[i] = run_once(argv + 2, &memory_kib);
    if (times[i] < 0) return fprintf(stderr, "repeat: %s failed\n", argv[2]), 1;
  }
  qsort(times, (size_t)n_runs, sizeof *times, compare);
  printf("%.3f %.3f %ld\n", times[0], times[n_runs / 2], memory_kib);
  free(times);
  return 0;
}
