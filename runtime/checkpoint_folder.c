/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of this process's run; the lock goes with it. */
static int lock_file = -1;

bool nxr_folder_make(const char *path, nxr_fault *fault) {
  char part[NXR_PATH_BYTES];
  size_t length = strlen(path);
  if (length == 0 || length >= NXR_PATH_BYTES)
    return nxr_fault_set(fault, "no name for a folder: \"%.100s\"", path);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return nxr_fault_set(fault, "cannot make the folder %s: %s", part, strerror(errno));
  }
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
    return nxr_fault_set(fault, "%s is no folder", path);
  return true;
}

bool nxr_folder_sync(const char *path, nxr_fault *fault) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
  if (!good) nxr_fault_set(fault, "cannot sync the folder %s: %s", path, strerror(errno));
  if (folder >= 0) close(folder);
  return good;
}

static void parent_path(const char *directory, char path[NXR_PATH_BYTES]) {
  snprintf(path, NXR_PATH_BYTES, "%s/checkpoints", directory);
}

void nxr_folder_path(const char *directory, uint64_t step, const char *rest, char path[NXR_PATH_BYTES]) {
  snprintf(path, NXR_PATH_BYTES, "%s/checkpoints/step-%06" PRIu64 "%s", directory, step, rest);
}

/* Whether the name is that of a checkpoint followed by `rest`. */
static bool parse_name(const char *name, const char *rest, uint64_t *step) {
  char expected[64];
  if (sscanf(name, "step-%19" SCNu64, step) != 1) return false;
  snprintf(expected, sizeof expected, "step-%06" PRIu64 "%s", *step, rest);
  return strcmp(name, expected) == 0;
}

bool nxr_folder_has(const char *directory, uint64_t step) {
  char path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, "", path);
  return access(path, F_OK) == 0;
}

/* The checkpoint of fewer steps than `below` with the most steps (or fewest); counts all of them. */
static uint64_t find(const char *directory, uint64_t below, bool newest, uint64_t *step) {
  char path[NXR_PATH_BYTES];
  parent_path(directory, path);
  DIR *folder = opendir(path);
  uint64_t n = 0, at;
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    if (!parse_name(entry->d_name, "", &at) || at >= below) continue;
    if (n++ == 0 || (newest ? at > *step : at < *step)) *step = at;
  }
  if (folder) closedir(folder);
  return n;
}

bool nxr_folder_newest(const char *directory, uint64_t below, uint64_t *step) {
  return find(directory, below, true, step) > 0;
}

/* Removes a folder and the files in it; there are no folders in a checkpoint. */
static bool remove_folder(const char *path) {
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      unlinkat(dirfd(folder), entry->d_name, 0);
  if (folder) closedir(folder);
  return rmdir(path) == 0;
}

static void remove_leftovers(const char *directory) {
  char path[NXR_PATH_BYTES];
  uint64_t step;
  parent_path(directory, path);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    if (!parse_name(entry->d_name, ".tmp", &step)) continue;
    nxr_folder_path(directory, step, ".tmp", path);
    remove_folder(path);
  }
  if (folder) closedir(folder);
}

static bool take_lock(const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  if (lock_file >= 0) close(lock_file);
  snprintf(path, sizeof path, "%s/lock", directory);
  lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_file < 0)
    return nxr_fault_set(fault, "cannot write in the run's folder: %s: %s", path, strerror(errno));
  if (flock(lock_file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return true; /* not every file system locks */
  return nxr_fault_set(fault, "another run is using the folder %s: wait for it, or choose another (--dir)",
                       directory);
}

bool nxr_folder_open(const char *directory, bool resume, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  uint64_t newest;
  if (strlen(directory) > NXR_PATH_BYTES - 128)
    return nxr_fault_set(fault, "the name of the run's folder is too long");
  parent_path(directory, path);
  if (!nxr_folder_make(path, fault) || !take_lock(directory, fault)) return false;
  if (!resume && nxr_folder_newest(directory, UINT64_MAX, &newest))
    return nxr_fault_set(fault,
                         "the folder %s has a run already, of %" PRIu64 " step%s: continue it with --resume, "
                         "or choose another folder (run.directory, --dir)",
                         directory, newest, newest == 1 ? "" : "s");
  remove_leftovers(directory);
  return true;
}

bool nxr_folder_begin(const char *directory, uint64_t step, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  nxr_folder_discard(directory, step);
  nxr_folder_path(directory, step, ".tmp", path);
  if (mkdir(path, 0777) == 0) return true;
  return nxr_fault_set(fault, "cannot make the folder %s: %s", path, strerror(errno));
}

bool nxr_folder_publish(const char *directory, uint64_t step, nxr_fault *fault) {
  char temporary[NXR_PATH_BYTES], path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, ".tmp", temporary);
  nxr_folder_path(directory, step, "", path);
  if (!nxr_folder_sync(temporary, fault)) return false;
  if (rename(temporary, path) != 0)
    return nxr_fault_set(fault, "cannot name %s %s: %s", temporary, path, strerror(errno));
  parent_path(directory, path);
  return nxr_folder_sync(path, fault);
}

void nxr_folder_discard(const char *directory, uint64_t step) {
  char path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, ".tmp", path);
  remove_folder(path);
}

/* Renamed first, so that half of a checkpoint never has its name. */
static bool remove_checkpoint(const char *directory, uint64_t step, nxr_fault *fault) {
  char temporary[NXR_PATH_BYTES], path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, ".tmp", temporary);
  nxr_folder_path(directory, step, "", path);
  if (rename(path, temporary) == 0 && remove_folder(temporary)) return true;
  return nxr_fault_set(fault, "cannot remove the old checkpoint %s: %s", path, strerror(errno));
}

bool nxr_folder_prune(const char *directory, int64_t keep, nxr_fault *fault) {
  uint64_t n_left = keep < 1 ? 1 : (uint64_t)keep, oldest;
  while (keep >= 0 && find(directory, UINT64_MAX, false, &oldest) > n_left)
    if (!remove_checkpoint(directory, oldest, fault)) return false;
  return true;
}

bool nxr_folder_set_aside(const char *directory, uint64_t step, nxr_fault *fault) {
  char path[NXR_PATH_BYTES], aside[NXR_PATH_BYTES], rest[32] = ".damaged";
  nxr_folder_path(directory, step, "", path);
  nxr_folder_path(directory, step, rest, aside);
  for (int i = 2; access(aside, F_OK) == 0; i++) {
    snprintf(rest, sizeof rest, ".damaged-%d", i);
    nxr_folder_path(directory, step, rest, aside);
  }
  if (rename(path, aside) == 0) return true;
  return nxr_fault_set(fault, "cannot set the damaged checkpoint %s aside: %s", path, strerror(errno));
}
