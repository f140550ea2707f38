/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that has nothing written for good before the file NX_SLOW_UNTIL is there, where what is written has
 * NX_SLOW_PART in its name; of the ranks in NX_SLOW_RANKS ("01"). Loaded before a program (LD_PRELOAD). */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_slow(int file) {
  const char *rank = getenv("PMI_RANK"), *ranks = getenv("NX_SLOW_RANKS"), *part = getenv("NX_SLOW_PART");
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, name, sizeof name - 1);
  name[n < 0 ? 0 : n] = '\0';
  return rank && ranks && part && strstr(ranks, rank) && strstr(name, part);
}

int fsync(int file) {
  static int (*real)(int);
  const char *until = getenv("NX_SLOW_UNTIL");
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  while (until && is_slow(file) && access(until, F_OK) != 0) nanosleep(&(struct timespec){0, 10000000}, NULL);
  return real(file);
}
