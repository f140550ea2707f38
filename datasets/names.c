/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/names.h"

#include "datasets/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct names {
  char from[NXD_PATH_BYTES + 16], to[NXD_PATH_BYTES + 16];
} names;

static names names_of(const char *folder, const char *prefix, const char *part) {
  names are;
  snprintf(are.from, sizeof are.from, "%s/%s", folder, part);
  snprintf(are.to, sizeof are.to, "%s.%s", prefix, part);
  return are;
}

bool nxd_dataset_exists(const char *prefix, nxr_fault *fault) {
  static const char *const parts[] = {"bin", "idx"};
  for (size_t i = 0; i < 2; i++) {
    names are = names_of("", prefix, parts[i]);
    if (access(are.to, F_OK) != 0) continue;
    nxr_fault_set(fault, "%s exists: remove it, choose another name, or give --force", are.to);
    return true;
  }
  return false;
}

/* Whoever gives names in this folder waits for the others; where nothing can be locked, nobody does. */
static int lock_folder(const char *prefix) {
  char folder[NXD_PATH_BYTES];
  const char *slash = strrchr(prefix, '/');
  int length = slash == prefix ? 1 : slash ? (int)(slash - prefix) : 1;
  snprintf(folder, sizeof folder, "%.*s", length, slash ? prefix : ".");
  int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX);
  return lock;
}

static bool move(const nxd_naming *naming, const char *part, nxr_fault *fault) {
  names are = names_of(naming->folder, naming->prefix, part);
  bool moved = naming->again && access(are.from, F_OK) != 0 && access(are.to, F_OK) == 0;
  if (moved || rename(are.from, are.to) == 0) return true;
  return nxr_fault_set(fault, "cannot name %s %s: %s", are.from, are.to, strerror(errno));
}

static bool unname(const char *prefix, const char *part, nxr_fault *fault) {
  names are = names_of("", prefix, part);
  return unlink(are.to) == 0 || errno == ENOENT ||
         nxr_fault_set(fault, "cannot replace %s: %s", are.to, strerror(errno));
}

/* The folder that was beside an earlier dataset does not fit this one. */
static bool move_beside(const nxd_naming *naming, nxr_fault *fault) {
  names are = names_of(naming->folder, naming->prefix, "tokenizer");
  bool is_there = access(are.from, F_OK) == 0;
  if (is_there || !naming->again) nxd_remove_beside(are.to);
  return !is_there || move(naming, "tokenizer", fault);
}

static bool give(const nxd_naming *naming, nxr_fault *fault) {
  names index = names_of(naming->folder, naming->prefix, "idx");
  if (naming->again && access(index.from, F_OK) != 0) return true; /* the last one: all have their names */
  return (naming->force || naming->again || !nxd_dataset_exists(naming->prefix, fault)) &&
         unname(naming->prefix, "idx", fault) &&
         (naming->weights || unname(naming->prefix, "weights", fault)) &&
         (naming->rewards || unname(naming->prefix, "rewards", fault)) && move(naming, "bin", fault) &&
         (!naming->weights || move(naming, "weights", fault)) &&
         (!naming->rewards || move(naming, "rewards", fault)) && move_beside(naming, fault) &&
         move(naming, "idx", fault);
}

bool nxd_give_names(const nxd_naming *naming, nxr_fault *fault) {
  int lock = lock_folder(naming->prefix);
  bool good = give(naming, fault);
  if (lock >= 0) close(lock);
  return good;
}
