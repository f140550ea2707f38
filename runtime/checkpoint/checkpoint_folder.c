/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_folder.h"

#include "runtime/checkpoint/checkpoint_link.h"
#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/checkpoint/checkpoint_remove.h"
#include "runtime/files/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 100 };

/* Of this process's run; the locks go with it. */
static int lock_file = -1, lock_elsewhere = -1;

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

bool nxr_folder_newest(const char *directory, uint64_t below, uint64_t *step) {
  char path[NXR_PATH_BYTES];
  parent_path(directory, path);
  DIR *folder = opendir(path);
  bool found = false;
  uint64_t at;
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    if (!parse_name(entry->d_name, "", &at) || at >= below || (found && at < *step)) continue;
    *step = at;
    found = true;
  }
  if (folder) closedir(folder);
  return found;
}

/* The name under which a checkpoint is written or removed, when `attempt - 1` others were taken. */
static void temporary_path(const char *directory, uint64_t step, uint32_t attempt,
                           char path[NXR_PATH_BYTES]) {
  char rest[32] = ".tmp";
  if (attempt > 1) snprintf(rest, sizeof rest, ".tmp-%u", attempt);
  nxr_folder_path(directory, step, rest, path);
}

static bool is_temporary_name(const char *name) {
  char expected[64], rest[32] = ".tmp";
  uint64_t step;
  uint32_t attempt;
  int n = sscanf(name, "step-%19" SCNu64 ".tmp-%9u", &step, &attempt);
  if (n == 2) snprintf(rest, sizeof rest, ".tmp-%u", attempt);
  if (n >= 1) snprintf(expected, sizeof expected, "step-%06" PRIu64 "%s", step, rest);
  return n >= 1 && strcmp(name, expected) == 0;
}

static void clear_away(const char *parent, const char *name, uint64_t step, bool finished) {
  char path[NXR_PATH_BYTES + 256];
  snprintf(path, sizeof path, "%s/%s", parent, name);
  if (finished ? nxr_checkpoint_is_own(path, step) : nxr_unfinished_remove(path)) return;
  nxr_print(stderr, "nxrun: %s is damaged, a link, or not only of nxrun: %s\n", path,
            finished ? "it is never removed" : "it is left as it is");
}

/* Removes what a killed run left, and says what stays because it is not of nxrun. */
static void look_around(const char *directory) {
  char parent[NXR_PATH_BYTES];
  uint64_t step;
  parent_path(directory, parent);
  DIR *folder = opendir(parent);
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    bool finished = parse_name(entry->d_name, "", &step);
    if (finished || is_temporary_name(entry->d_name)) clear_away(parent, entry->d_name, step, finished);
  }
  if (folder) closedir(folder);
}

static bool lock(int file, const char *directory, nxr_fault *fault) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return true; /* not every file system locks */
  return nxr_fault_set(fault, "another run is using the folder %s: wait for it, or choose another (--dir)",
                       directory);
}

static bool take_lock(const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  if (lock_file >= 0) close(lock_file);
  snprintf(path, sizeof path, "%s/lock", directory);
  lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_file < 0)
    return nxr_fault_set(fault, "cannot write in the run's folder: %s: %s", path, strerror(errno));
  return lock(lock_file, directory, fault);
}

/* The plan may name a folder of another machine or user. */
static bool make_own(const char *path, nxr_fault *fault) {
  nxr_fault why = {""};
  return nxr_folder_make(path, &why) ||
         nxr_fault_set(fault, "%.800s: choose another folder for the run (run.directory, --dir)", why.text);
}

/* Has PATH be a link to the folder `elsewhere`, which two runs may name; checkpoints that are there stay. */
static bool link_elsewhere(const char *path, const char *elsewhere, nxr_fault *fault) {
  char wanted[PATH_MAX], there[PATH_MAX];
  if (!make_own(elsewhere, fault)) return false;
  if (realpath(elsewhere, wanted) == NULL)
    return nxr_fault_set(fault, "cannot find the folder %s: %s", elsewhere, strerror(errno));
  if (lock_elsewhere >= 0) close(lock_elsewhere);
  lock_elsewhere = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_elsewhere >= 0 && !lock(lock_elsewhere, wanted, fault)) return false;
  rmdir(path); /* where nothing is in it */
  if (symlink(wanted, path) == 0) return true;
  if (errno != EEXIST) return nxr_fault_set(fault, "cannot make the link %s: %s", path, strerror(errno));
  return (realpath(path, there) && strcmp(there, wanted) == 0) ||
         nxr_fault_set(fault,
                       "%s is not %s (checkpoint.directory): move its checkpoints there and remove it, or "
                       "leave the setting out",
                       path, wanted);
}

bool nxr_folder_open(const char *directory, const char *elsewhere, bool resume, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  uint64_t newest;
  if (strlen(directory) > NXR_PATH_BYTES - 128)
    return nxr_fault_set(fault, "the name of the run's folder is too long");
  bool apart = elsewhere && elsewhere[0] != '\0';
  parent_path(directory, path);
  if (!make_own(apart ? directory : path, fault) || !take_lock(directory, fault) ||
      (apart && !link_elsewhere(path, elsewhere, fault)))
    return false;
  if (!resume && nxr_folder_newest(directory, UINT64_MAX, &newest))
    return nxr_fault_set(fault,
                         "the folder %s has a run already, of %" PRIu64 " step%s: continue it with --resume, "
                         "or choose another folder (run.directory, --dir)",
                         directory, newest, newest == 1 ? "" : "s");
  look_around(directory);
  return true;
}

bool nxr_folder_may_grow(const char *directory, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  parent_path(directory, path);
  return access(path, W_OK | X_OK) == 0 ||
         nxr_fault_set(fault,
                       "no checkpoint can be written in %s: %s: choose another folder for the run "
                       "(run.directory, --dir)",
                       path, strerror(errno));
}

bool nxr_folder_begin(const char *directory, uint64_t step, char path[NXR_PATH_BYTES], nxr_fault *fault) {
  for (uint32_t attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    temporary_path(directory, step, attempt, path);
    nxr_unfinished_remove(path);
    if (mkdir(path, 0777) == 0 && nxr_unfinished_mark(path)) return true;
    if (errno != EEXIST) break;
    nxr_print(stderr, "nxrun: %s is in the way: another name is taken\n", path);
  }
  bool gone = errno == ENOENT || errno == ENOTDIR;
  nxr_fault_set(fault, "cannot make the folder %s: %s%s", path, strerror(errno),
                gone ? ": was the run's folder moved or removed while it went on?" : "");
  nxr_unfinished_remove(path);
  return false;
}

bool nxr_folder_publish(const char *directory, uint64_t step, const char *temporary, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, "", path);
  if (!nxr_folder_sync(temporary, fault)) return false;
  if (rename(temporary, path) != 0)
    return nxr_fault_set(fault, "cannot name %s %s: %s", temporary, path, strerror(errno));
  nxr_unfinished_unmark(path);
  parent_path(directory, path);
  return nxr_folder_sync(path, fault);
}

/* Renamed first, so that half of a checkpoint never has its name. */
static bool remove_checkpoint(const char *directory, uint64_t step) {
  char temporary[NXR_PATH_BYTES], path[NXR_PATH_BYTES];
  nxr_folder_path(directory, step, "", path);
  if (!nxr_unfinished_mark(path)) return false;
  for (uint32_t attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    temporary_path(directory, step, attempt, temporary);
    if (rename(path, temporary) == 0) {
      nxr_link_remove(directory, step);
      return nxr_unfinished_remove(temporary);
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) return false;
  }
  return false;
}

/* ---- which stay ---- */

typedef struct own {
  uint64_t step;
  nxr_score score;
  bool stays;
} own;

static int compare_steps(const void *left, const void *right) {
  const own *a = left, *b = right;
  return a->step < b->step ? -1 : a->step > b->step;
}

static nxr_score read_score(const char *path, uint64_t step) {
  json_t *manifest;
  nxr_fault none;
  nxr_score score = {0};
  if (!nxr_manifest_read(path, step, &manifest, &none)) return score;
  nxr_manifest_score(manifest, &score);
  json_decref(manifest);
  return score;
}

/* Oldest first; the caller's to free. */
static own *list_own(const char *directory, size_t *n) {
  char path[NXR_PATH_BYTES];
  own *list = NULL;
  uint64_t step;
  parent_path(directory, path);
  DIR *folder = opendir(path);
  *n = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    if (!parse_name(entry->d_name, "", &step)) continue;
    nxr_folder_path(directory, step, "", path);
    own *longer = nxr_checkpoint_is_own(path, step) ? realloc(list, (*n + 1) * sizeof *list) : NULL;
    if (longer == NULL) continue;
    list = longer;
    list[(*n)++] = (own){.step = step, .score = read_score(path, step)};
  }
  if (folder) closedir(folder);
  if (*n) qsort(list, *n, sizeof *list, compare_steps);
  return list;
}

/* Of equal ones the oldest. */
static own *find_best(own *list, size_t n, bool greatest) {
  own *best = NULL;
  for (own *at = list; at < list + n; at++) {
    if (at->stays || !at->score.known) continue;
    bool better =
        best == NULL || (greatest ? at->score.loss > best->score.loss : at->score.loss < best->score.loss);
    if (better) best = at;
  }
  return best;
}

/* The best are counted whether they are among the newest or not. */
static void choose(own *list, size_t n, const nx_run_names *names) {
  size_t least = names->best != 0 ? 0 : 1;
  size_t n_newest = names->keep < 0 ? n : (size_t)names->keep < least ? least : (size_t)names->keep;
  for (int32_t i = 0; i != names->best; i++) {
    own *best = find_best(list, n, names->rules & NX_RUN_BEST_IS_GREATEST);
    if (best == NULL) break;
    best->stays = true;
  }
  for (size_t i = n > n_newest ? n - n_newest : 0; i < n; i++) list[i].stays = true;
  for (size_t i = 0; i < n && names->retain_every; i++)
    if (list[i].step % names->retain_every == 0) list[i].stays = true;
}

static void warn(const char *directory, uint64_t step, const char *what) {
  char path[NXR_PATH_BYTES];
  int error = errno;
  nxr_folder_path(directory, step, "", path);
  nxr_print(stderr, "nxrun: cannot remove %s %s: %s; the training goes on\n", what, path, strerror(error));
}

static void remove_states(const char *directory, const own *list, size_t n, size_t n_newest) {
  char path[NXR_PATH_BYTES];
  for (size_t i = 0; n_newest > 0 && i + n_newest < n; i++) {
    nxr_folder_path(directory, list[i].step, "", path);
    if (!list[i].stays || nxr_checkpoint_remove_states(path, list[i].step)) continue;
    warn(directory, list[i].step, "the optimizer's state from");
    break;
  }
}

/* Frees the list. */
static void remove_others(const char *directory, own *list, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (list[i].stays || remove_checkpoint(directory, list[i].step)) continue;
    warn(directory, list[i].step, "the old checkpoint");
    break;
  }
  free(list);
}

void nxr_folder_prune(const char *directory, const nx_run_names *names) {
  size_t n = 0;
  if (names->keep < 0 && names->keep_states == 0) return;
  own *list = list_own(directory, &n);
  choose(list, n, names);
  remove_states(directory, list, n, names->keep_states);
  remove_others(directory, list, n);
}

static void remove_all_but(const char *directory, size_t n_newest) {
  size_t n = 0;
  own *list = list_own(directory, &n);
  for (size_t i = n > n_newest ? n - n_newest : 0; i < n; i++) list[i].stays = true;
  remove_others(directory, list, n);
}

void nxr_folder_keep_newest(const char *directory) {
  remove_all_but(directory, 1);
}

bool nxr_folder_open_temporary(const char *directory, bool resume, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  if (strlen(directory) > NXR_PATH_BYTES - 128)
    return nxr_fault_set(fault, "the name of the folder of temporary checkpoints is too long");
  parent_path(directory, path);
  if (!make_own(path, fault)) return false;
  look_around(directory);
  if (!resume) remove_all_but(directory, 0);
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
