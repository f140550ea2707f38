/* SPDX-License-Identifier: Apache-2.0 */
/* What one `nxcfg validate FILE` costs: processor time and memory of the whole process. Usage: cost NXCFG
 * FILE
 *
 * Other work on the machine only adds to the time, so the least of many runs is judged. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>

enum { N_RUNS = 40, RSS_MAX_KIB = 8 * 1024 };
static const double time_max_ms = 3.0;

extern char **environ;

static double ms_of(struct timeval time) {
  return (double)time.tv_sec * 1e3 + (double)time.tv_usec * 1e-3;
}

/* False when the program cannot be run, or finds the file wrong. */
static int run(char *nxcfg, char *file, double *cpu_ms, long *rss_kib) {
  static char command[] = "validate";
  char *arguments[] = {nxcfg, command, file, NULL};
  posix_spawn_file_actions_t actions;
  struct rusage usage;
  pid_t child;
  int status;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  int failed = posix_spawn(&child, nxcfg, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed || wait4(child, &status, 0, &usage) != child || status != 0) return 0;
  *cpu_ms = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
  *rss_kib = usage.ru_maxrss;
  return 1;
}

int main(int argc, char **argv) {
  double least_ms = 1e9;
  long most_kib = 0;
  if (argc != 3) return EXIT_FAILURE;
  for (int i = 0; i < N_RUNS; i++) {
    double cpu_ms;
    long rss_kib;
    if (!run(argv[1], argv[2], &cpu_ms, &rss_kib)) {
      printf("Bail out! %s validate %s fails\n", argv[1], argv[2]);
      return EXIT_FAILURE;
    }
    if (cpu_ms < least_ms) least_ms = cpu_ms;
    if (rss_kib > most_kib) most_kib = rss_kib;
  }
  int quick = least_ms <= time_max_ms, small = most_kib <= RSS_MAX_KIB;
  printf("1..2\n%sok 1 - %.2f ms of processor time, at most %.0f\n", quick ? "" : "not ", least_ms,
         time_max_ms);
  printf("%sok 2 - %ld KiB, at most %d\n", small ? "" : "not ", most_kib, RSS_MAX_KIB);
  return quick && small ? EXIT_SUCCESS : EXIT_FAILURE;
}
