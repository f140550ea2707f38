/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_before.h"

#include "runtime/checkpoint/checkpoint_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool nxr_before_is_own(const char *directory, const char *load) {
  struct stat own, other;
  nxr_fault none = {""};
  return load[0] != '\0' && nxr_folder_make(directory, &none) && stat(directory, &own) == 0 &&
         stat(load, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

void nxr_before_path(const char *directory, uint64_t n, char *path, size_t room) {
  if (n == 0) snprintf(path, room, "%s", directory);
  else snprintf(path, room, "%s/before-%" PRIu64, directory, n);
}

static bool has(const char *directory, uint64_t n, const char *name) {
  char folder[NXR_PATH_BYTES], path[NXR_PATH_BYTES + 64];
  nxr_before_path(directory, n, folder, sizeof folder);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static bool move(const char *directory, uint64_t n, const char *name, nxr_fault *fault) {
  char folder[NXR_PATH_BYTES], from[NXR_PATH_BYTES + 64], to[NXR_PATH_BYTES + 64];
  nxr_before_path(directory, n, folder, sizeof folder);
  snprintf(from, sizeof from, "%s/%s", directory, name);
  snprintf(to, sizeof to, "%s/%s", folder, name);
  return rename(from, to) == 0 || errno == ENOENT ||
         nxr_fault_set(fault, "cannot name %.900s %.900s: %s", from, to, strerror(errno));
}

/* The checkpoints last: until they are there, the next start takes the same number. */
static bool move_all(const char *directory, uint64_t n, nxr_fault *fault) {
  char folder[NXR_PATH_BYTES];
  nxr_before_path(directory, n, folder, sizeof folder);
  if (!nxr_folder_make(folder, fault) || !move(directory, n, "reference.bin", fault) ||
      !move(directory, n, "checkpoints", fault))
    return false;
  snprintf(folder, sizeof folder, "%s/checkpoints", directory);
  return nxr_folder_make(folder, fault) && nxr_folder_sync(directory, fault);
}

bool nxr_before_set_aside(const char *directory, bool resume, uint64_t *n, bool *moved, nxr_fault *fault) {
  uint64_t newest, free = 1;
  char folder[NXR_PATH_BYTES];
  bool begun = has(directory, 1, "");
  while (has(directory, free, "checkpoints")) free++;
  *moved = !(resume && begun) && nxr_folder_newest(directory, UINT64_MAX, &newest);
  *n = *moved ? free : free - 1;
  if (*moved) return move_all(directory, free, fault);
  nxr_before_path(directory, 1, folder, sizeof folder); /* says that such a run has begun */
  return nxr_folder_make(folder, fault);
}
