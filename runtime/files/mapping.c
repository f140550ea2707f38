/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/mapping.h"

#include "runtime/files/fence.h"
#include "runtime/files/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of a list. The signal's handler walks it without the lock: its own thread reads, so it holds none. */
struct nxr_mapped_file {
  nxr_mapped_file *next;
  const uint8_t *bytes;
  uint64_t n_bytes;
  struct stat status; /* when it was mapped */
  bool changed;       /* since then, and told */
  char path[];
};

static nxr_mapped_file *mapped_files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool remember(nxr_mapping *mapping, const char *path, const struct stat *status) {
  size_t length = strlen(path) + 1;
  nxr_mapped_file *file = malloc(sizeof *file + length);
  if (file == NULL) return false;
  *file = (nxr_mapped_file){.bytes = mapping->bytes, .n_bytes = mapping->n_bytes, .status = *status};
  memcpy(file->path, path, length);
  pthread_mutex_lock(&lock);
  file->next = mapped_files;
  mapping->file = mapped_files = file;
  pthread_mutex_unlock(&lock);
  return true;
}

static void forget(nxr_mapped_file *file) {
  nxr_mapped_file **at = &mapped_files;
  pthread_mutex_lock(&lock);
  while (*at != file) at = &(*at)->next;
  *at = file->next;
  pthread_mutex_unlock(&lock);
  free(file);
}

static bool map(const char *path, nxr_mapping *mapping, nxr_fault *fault) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    nxr_fault_set(fault, "cannot open %s: %s", path, file < 0 ? strerror(errno) : "it is no file");
    if (file >= 0) close(file);
    return false;
  }
  if (!nxr_fence_allows_open(file, path, fault)) return close(file), false;
  uint64_t n_bytes = (uint64_t)status.st_size;
  void *bytes = n_bytes ? mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, file, 0) : NULL;
  int mapping_error = errno;
  close(file);
  if (bytes == MAP_FAILED) return nxr_fault_set(fault, "cannot map %s: %s", path, strerror(mapping_error));
  *mapping = (nxr_mapping){.bytes = bytes, .n_bytes = n_bytes};
  if (remember(mapping, path, &status)) return true;
  nxr_mapping_close(mapping);
  return nxr_fault_set(fault, "out of memory");
}

bool nxr_mapping_open(const char *path, nxr_mapping *mapping, nxr_fault *fault) {
  *mapping = (nxr_mapping){0};
  nxr_reading_begin(path, NULL);
  bool good = map(path, mapping, fault);
  nxr_reading_end();
  return good;
}

void nxr_mapping_close(nxr_mapping *mapping) {
  if (mapping->bytes) munmap((void *)(uintptr_t)mapping->bytes, mapping->n_bytes);
  if (mapping->file) forget(mapping->file);
  *mapping = (nxr_mapping){0};
}

static bool was_written(const nxr_mapped_file *file) {
  const struct stat *then = &file->status;
  struct stat now;
  return stat(file->path, &now) == 0 && now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
         (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
          now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

const char *nxr_mapping_changed(void) {
  const char *path = NULL;
  pthread_mutex_lock(&lock);
  for (nxr_mapped_file *file = mapped_files; file != NULL && path == NULL; file = file->next)
    if (!file->changed && (file->changed = was_written(file))) path = file->path;
  pthread_mutex_unlock(&lock);
  return path;
}

/* ---- the guard ---- */

enum { STATUS_FAILED = 1, TURN_MS = 500, MOST_TURNS = 20, LAUNCHER_READS_MS = 300 };

static const char *guard_program;
static uint32_t guard_rank;

static const char *find_path(const void *address) {
  const uint8_t *at = address;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (const nxr_mapped_file *file = mapped_files; file != NULL; file = file->next)
    if (at >= file->bytes && (uintptr_t)(at - file->bytes) < (file->n_bytes + page - 1) / page * page)
      return file->path;
  return NULL;
}

const char *nxr_mapping_path(const void *address) {
  pthread_mutex_lock(&lock);
  const char *path = find_path(address);
  pthread_mutex_unlock(&lock);
  return path;
}

static void say(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(STATUS_FAILED);
}

/* Calls nothing that is not safe in a handler. */
static void on_bus_error(int number, siginfo_t *about, void *context) {
  const char *path = find_path(about->si_addr);
  (void)context;
  poll(NULL, 0, TURN_MS * (int)(guard_rank < MOST_TURNS ? guard_rank : MOST_TURNS));
  say(guard_program);
  if (path == NULL) {
    say(": memory that was promised could not be had: is /dev/shm full, or a memory limit reached?\n");
    signal(number, SIG_DFL); /* and the instruction is tried again */
    return;
  }
  say(": ");
  say(path);
  say(" was cut short, or cannot be read any more, while it was in use: restore it, let nothing write to it, "
      "and start again\n");
  poll(NULL, 0, LAUNCHER_READS_MS); /* it drops what it has not read when a rank ends */
  _exit(STATUS_FAILED);
}

void nxr_mapping_guard(const char *program, uint32_t rank) {
  const struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
  guard_program = program;
  guard_rank = rank;
  sigaction(SIGBUS, &action, NULL);
}
