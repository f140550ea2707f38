/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of a program costs: processor time and memory of its own, whatever else the machine does.
 *
 * A slower machine takes longer for everything: `measure_slowness` says how much, by a loop and by the start
 * of a program, which the machine that limits are made for (a virtual one, on AMD Zen 5) does in known times.
 * The memory of a run is at least that of the program that starts it, which should therefore be small. */
#ifndef TESTS_MEASURE_H
#define TESTS_MEASURE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct measured {
  int exit_status; /* 128 + the signal where one ended it */
  double cpu_ms, wall_ms;
  long memory_kib;
} measured;

static inline double measure_now_ms(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static inline double measure_ms_of(struct timeval time) {
  return 1e3 * (double)time.tv_sec + 1e-3 * (double)time.tv_usec;
}

/* Runs a program, its output and messages into a file (NULL: nowhere), for at most so many seconds of
 * processor time. */
static inline measured measure_run(char *const *command, const char *output, unsigned limit_s) {
  measured run = {.exit_status = 127};
  double start = measure_now_ms(CLOCK_MONOTONIC);
  pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit = {limit_s, limit_s};
    int file = open(output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(126);
    setrlimit(RLIMIT_CPU, &limit);
    unsetenv("MALLOC_PERTURB_"); /* meson's, with which every free byte is written */
    execvp(command[0], command);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return run;
  run.wall_ms = measure_now_ms(CLOCK_MONOTONIC) - start;
  run.cpu_ms = measure_ms_of(usage.ru_utime) + measure_ms_of(usage.ru_stime);
  run.memory_kib = usage.ru_maxrss;
  run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

static inline double measure_loop_ms(void) {
  enum { N_ROUNDS = 1000000 };
  static volatile uint64_t kept; /* so that the loop is run */
  uint64_t hash = 1;
  double start = measure_now_ms(CLOCK_THREAD_CPUTIME_ID);
  for (uint64_t i = 0; i < N_ROUNDS; i++) hash = (hash ^ i) * UINT64_C(0x100000001B3);
  kept = hash;
  (void)kept;
  return measure_now_ms(CLOCK_THREAD_CPUTIME_ID) - start;
}

/* At least 1: how many times as long as there work takes here and now. */
static inline double measure_slowness(void) {
  static const double usual_loop_ms = 0.9, usual_start_ms = 0.47;
  char program[] = "true";
  double loop = measure_loop_ms() / usual_loop_ms;
  double start = measure_run((char *[]){program, NULL}, NULL, 1).cpu_ms / usual_start_ms;
  double slowness = loop > start ? loop : start;
  return slowness > 1 ? slowness : 1;
}

#endif
