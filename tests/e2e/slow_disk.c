/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that stands still before the file NX_SLOW_UNTIL is there, for the ranks in NX_SLOW_RANKS ("01"):
 * nothing is written for good where the name has NX_SLOW_PART in it, and nothing comes of what is mapped
 * where it has NX_STUCK_PART; of that, where NX_STUCK_WHEN names a file, from when it is there. Who waits for
 * a write has page faults meanwhile, as one that still copies. Or one that has a quota, which the call
 * NX_QUOTA_AT says (pwrite; fsync, as NFS does), of what has NX_SLOW_PART in its name. Loaded before a
 * program (LD_PRELOAD). */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static bool stands_still(int file, const char *part) {
  const char *rank = getenv("PMI_RANK"), *ranks = getenv("NX_SLOW_RANKS");
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, name, sizeof name - 1);
  name[n < 0 ? 0 : n] = '\0';
  return rank && ranks && part && part[0] && strstr(ranks, rank) && strstr(name, part);
}

static void await(const char *file) {
  while (file && access(file, F_OK) != 0) nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static void *real_mmap(void *at, size_t n_bytes, int rights, int flags, int file, off_t from) {
  static void *(*real)(void *, size_t, int, int, int, off_t);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "mmap");
  return real(at, n_bytes, rights, flags, file, from);
}

static void await_with_faults(const char *file) {
  while (file && access(file, F_OK) != 0) {
    volatile char *page = real_mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) *page = 1, munmap((void *)page, 1);
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}

static bool is_over_quota(int file, const char *call) {
  const char *at = getenv("NX_QUOTA_AT");
  return at && strcmp(at, call) == 0 && stands_still(file, getenv("NX_SLOW_PART"));
}

ssize_t pwrite(int file, const void *bytes, size_t n_bytes, off_t from) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
  if (is_over_quota(file, "pwrite")) return errno = EDQUOT, -1;
  return real(file, bytes, n_bytes, from);
}

int fsync(int file) {
  static int (*real)(int);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  if (is_over_quota(file, "fsync")) return errno = EDQUOT, -1;
  if (stands_still(file, getenv("NX_SLOW_PART"))) await_with_faults(getenv("NX_SLOW_UNTIL"));
  return real(file);
}

/* Who touches such a mapping waits, as in a page fault. */
static void touched(int number, siginfo_t *about, void *context) {
  uintptr_t page = (uintptr_t)about->si_addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
  (void)number, (void)context;
  await(getenv("NX_SLOW_UNTIL"));
  mprotect((void *)page, 1, PROT_READ);
}

typedef struct mapping {
  void *at;
  size_t n_bytes;
} mapping;

static void *stick(void *context) {
  mapping *own = context;
  await(getenv("NX_STUCK_WHEN"));
  mprotect(own->at, own->n_bytes, PROT_NONE);
  free(own);
  return NULL;
}

static void stick_later(void *at, size_t n_bytes) {
  pthread_t thread;
  mapping *own = malloc(sizeof *own);
  if (own == NULL) return;
  *own = (mapping){at, n_bytes};
  if (pthread_create(&thread, NULL, stick, own) != 0) free(own);
}

/* Of 64-bit offsets, as all here are built. */
void *mmap(void *at, size_t n_bytes, int rights, int flags, int file, off_t from) {
  if (file < 0 || rights != PROT_READ || !stands_still(file, getenv("NX_STUCK_PART")))
    return real_mmap(at, n_bytes, rights, flags, file, from);
  const struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  bool later = getenv("NX_STUCK_WHEN") != NULL;
  void *place = real_mmap(at, n_bytes, later ? rights : PROT_NONE, flags, file, from);
  if (later && place != MAP_FAILED) stick_later(place, n_bytes);
  return place;
}
