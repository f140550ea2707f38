/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_remove.h"

#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/checkpoint/checkpoint_manifest.h"
#include "schema/signature.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MARK[] = "unfinished", MANIFEST[] = "manifest.json", ENDING[] = ".safetensors";

/* NULL where it is a link, or no folder. */
static DIR *open_folder(const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *opened = folder >= 0 ? fdopendir(folder) : NULL;
  if (folder >= 0 && opened == NULL) close(folder);
  return opened;
}

/* The next entry but the folder itself and the one above; NULL at the end. */
static const char *next_name(DIR *folder) {
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
  return NULL;
}

/* A name that a checkpoint has: one of the manifest's files, or without a manifest any that could be. */
static bool is_known(const char *name, const json_t *files) {
  size_t length = strlen(name), ending = sizeof ENDING - 1;
  if (strcmp(name, MARK) == 0 || strcmp(name, MANIFEST) == 0 || nxr_beside_is_known(name) ||
      strcmp(name, NX_SUMS_FILE) == 0 || strcmp(name, NX_SUMS_FILE NX_SIGNATURE_ENDING) == 0)
    return true;
  if (files) return json_object_get(files, name) != NULL;
  return length > ending && strcmp(name + length - ending, ENDING) == 0;
}

/* Whether all that is there are plain files with names of a checkpoint; counts them. */
static bool holds_only_known(DIR *folder, const json_t *files, uint32_t *n) {
  *n = 0;
  for (const char *name; (name = next_name(folder)) != NULL; ++*n) {
    struct stat status;
    bool plain = fstatat(dirfd(folder), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
    if (!plain || !is_known(name, files)) return false;
  }
  return true;
}

bool nxr_checkpoint_is_own(const char *path, uint64_t step) {
  json_t *manifest;
  nxr_fault none;
  uint32_t n;
  DIR *folder = open_folder(path);
  if (folder == NULL) return false;
  bool own = nxr_manifest_read(path, step, &manifest, &none);
  if (own) {
    const json_t *files = json_object_get(manifest, "files");
    own = json_is_object(files) && holds_only_known(folder, files, &n);
    json_decref(manifest);
  }
  closedir(folder);
  return own;
}

static void mark_path(const char *folder, char path[NXR_PATH_BYTES]) {
  snprintf(path, NXR_PATH_BYTES, "%s/%s", folder, MARK);
}

bool nxr_unfinished_mark(const char *folder) {
  char path[NXR_PATH_BYTES];
  mark_path(folder, path);
  int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  return file >= 0 && close(file) == 0;
}

bool nxr_unfinished_unmark(const char *folder) {
  char path[NXR_PATH_BYTES];
  mark_path(folder, path);
  return unlink(path) == 0;
}

/* The mark goes last, so that a removal that is cut short can be ended by the next run. */
static void remove_files(DIR *folder) {
  rewinddir(folder);
  for (const char *name; (name = next_name(folder)) != NULL;)
    if (strcmp(name, MARK) != 0) unlinkat(dirfd(folder), name, 0);
  unlinkat(dirfd(folder), MARK, 0);
}

bool nxr_unfinished_remove(const char *path) {
  uint32_t n;
  DIR *folder = open_folder(path);
  if (folder == NULL) return false;
  bool own = holds_only_known(folder, NULL, &n) &&
             (n == 0 || faccessat(dirfd(folder), MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
              nxr_manifest_is_there(path));
  if (own) remove_files(folder);
  closedir(folder);
  return own && rmdir(path) == 0;
}
