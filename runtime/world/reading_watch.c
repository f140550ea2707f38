/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/reading_watch.h"

#include "runtime/files/fault.h"
#include "runtime/files/mapping.h"
#include "runtime/files/reading.h"
#include "runtime/world/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double SHARE_OF_DEADLINE = 0.75, LOOKS_PER_DEADLINE = 32, LONGEST_BETWEEN_LOOKS_S = 1;

static const nxr_world *watched; /* NULL: nobody watches */
static pthread_t thread;
static pid_t reader; /* as the kernel counts threads */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended;
static bool ends;

static const char *read_path(void) {
  const void *at;
  const char *path = nxr_reading_path(&at);
  if (path == NULL) path = nxr_mapping_path(at);
  return path ? path : "a file";
}

static _Noreturn void give_up(const nxr_world *world) {
  nxr_print(stderr,
          "nxrun: rank %u (%s) reads %s: nothing has come for %g s (of run.deadline_s %g); the file system "
          "stands still, and the run ends: --resume goes on from the newest checkpoint\n",
          world->rank, nxr_world_host(world, world->rank), read_path(),
          SHARE_OF_DEADLINE * world->deadline_s, world->deadline_s);
  nxr_world_abort(1);
}

/* True where it is to end meanwhile. */
static bool nap(double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  double nanoseconds = (double)until.tv_nsec + 1e9 * seconds;
  until.tv_sec += (time_t)(nanoseconds / 1e9);
  until.tv_nsec = (long)(nanoseconds - 1e9 * (double)(time_t)(nanoseconds / 1e9));
  pthread_mutex_lock(&lock);
  if (!ends) pthread_cond_timedwait(&ended, &lock, &until);
  bool over = ends;
  pthread_mutex_unlock(&lock);
  return over;
}

/* The reader's own: a writer of checkpoints beside it has faults too, on a disk that may be another. Without
 * the kernel's word, none. */
static uint64_t count_faults(void) {
  char path[64], text[1024];
  unsigned long long minor = 0, major = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", reader);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  const char *behind_name = strrchr(text, ')'); /* a name may have spaces and brackets */
  if (behind_name) sscanf(behind_name, ") %*c %*s %*s %*s %*s %*s %*s %llu %*s %llu", &minor, &major);
  return minor + major;
}

/* What changes while something comes: pages of a large file, which one reading may have for long, too. */
static uint64_t count_signs(uint64_t n_readings) {
  return n_readings + count_faults();
}

static void *watch(void *context) {
  const nxr_world *world = context;
  double look_s = world->deadline_s / LOOKS_PER_DEADLINE;
  nxr_patience patience = {.with = NX_NONE};
  if (look_s > LONGEST_BETWEEN_LOOKS_S) look_s = LONGEST_BETWEEN_LOOKS_S;
  while (!nap(look_s)) {
    uint64_t count = nxr_reading_count();
    double seconds = nxr_patience_look(&patience, world->rank, count_signs(count));
    if (count % 2 == 1 && seconds > SHARE_OF_DEADLINE * world->deadline_s) give_up(world);
  }
  return NULL;
}

/* Signals are for the thread that trains. */
void nxr_reading_watch_begin(const nxr_world *world) {
  sigset_t all, before;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&ended, &clock);
  pthread_condattr_destroy(&clock);
  ends = false;
  reader = gettid();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, watch, (void *)(uintptr_t)world) == 0) watched = world;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void nxr_reading_watch_end(void) {
  if (watched == NULL) return;
  pthread_mutex_lock(&lock);
  ends = true;
  pthread_cond_signal(&ended);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  pthread_cond_destroy(&ended);
  watched = NULL;
}
