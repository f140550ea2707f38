/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of nxcfg costs: processor time and memory of the whole process, and the size of the plan that
 * it writes. Usage: cost MAX_MS MAX_KIB MAX_PLAN_BYTES NXCFG ARGUMENT...
 * with -o PLAN among the arguments where MAX_PLAN_BYTES is not 0.
 *
 * Other work on the machine only adds to the time, so the least of many runs is judged. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { N_RUNS = 40, LONGEST_MS = 4000 /* of all runs together, unless one takes as long */ };

extern char **environ;

static double ms_of(struct timeval time) {
  return (double)time.tv_sec * 1e3 + (double)time.tv_usec * 1e-3;
}

/* False when the program cannot be run, or fails. */
static int run(char **arguments, double *cpu_ms, long *rss_kib) {
  posix_spawn_file_actions_t actions;
  struct rusage usage;
  pid_t child;
  int status;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  int failed = posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed || wait4(child, &status, 0, &usage) != child || status != 0) return 0;
  *cpu_ms = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
  *rss_kib = usage.ru_maxrss;
  return 1;
}

/* Of the file behind -o; -1 where there is none. */
static long plan_bytes(char **arguments) {
  struct stat plan;
  while (*arguments != NULL && strcmp(*arguments, "-o") != 0) arguments++;
  return *arguments != NULL && stat(arguments[1], &plan) == 0 ? (long)plan.st_size : -1;
}

static int judge(int number, double found, double most, const char *what) {
  int good = found >= 0 && found <= most;
  printf("%sok %d - %.2f %s, at most %.0f\n", good ? "" : "not ", number, found, what, most);
  return good;
}

int main(int argc, char **argv) {
  double least_ms = 1e9, all_ms = 0;
  long most_kib = 0;
  if (argc < 6) return EXIT_FAILURE;
  for (int i = 0; i < N_RUNS && all_ms < LONGEST_MS; i++) {
    double cpu_ms;
    long rss_kib;
    if (!run(argv + 4, &cpu_ms, &rss_kib)) {
      printf("Bail out! %s %s fails\n", argv[4], argv[5]);
      return EXIT_FAILURE;
    }
    all_ms += cpu_ms;
    if (cpu_ms < least_ms) least_ms = cpu_ms;
    if (rss_kib > most_kib) most_kib = rss_kib;
  }
  double most_bytes = atof(argv[3]);
  printf("1..%d\n", most_bytes > 0 ? 3 : 2);
  int good = judge(1, least_ms, atof(argv[1]), "ms of processor time");
  good &= judge(2, (double)most_kib, atof(argv[2]), "KiB of memory");
  if (most_bytes > 0) good &= judge(3, (double)plan_bytes(argv + 4), most_bytes, "bytes of plan");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
