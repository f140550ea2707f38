/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_remove.h"

#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_manifest.h"
#include "schema/signature.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MARK[] = "unfinished", MANIFEST[] = "manifest.json", ENDING[] = ".safetensors",
                  NEXT_MANIFEST[] = "manifest.json.next", REMOVED[] = "removed", WEIGHTS[] = "model";

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

static bool lists(const json_t *names, const char *name) {
  size_t i;
  json_t *at;
  json_array_foreach((json_t *)(uintptr_t)names, i, at)
    if (json_is_string(at) && strcmp(json_string_value(at), name) == 0) return true;
  return false;
}

/* A name that a checkpoint has: one of the manifest's files, or without a manifest any that could be. */
static bool is_known(const char *name, const json_t *manifest) {
  size_t length = strlen(name), ending = sizeof ENDING - 1;
  if (strcmp(name, MARK) == 0 || strcmp(name, MANIFEST) == 0 || strcmp(name, NEXT_MANIFEST) == 0 ||
      nxr_beside_is_known(name) || strcmp(name, NX_SUMS_FILE) == 0 ||
      strcmp(name, NX_SUMS_FILE NX_SIGNATURE_ENDING) == 0)
    return true;
  if (manifest)
    return json_object_get(json_object_get(manifest, "files"), name) != NULL ||
           lists(json_object_get(manifest, REMOVED), name);
  return length > ending && strcmp(name + length - ending, ENDING) == 0;
}

/* Whether all that is there are plain files with names of a checkpoint; counts them. */
static bool holds_only_known(DIR *folder, const json_t *manifest, uint32_t *n) {
  *n = 0;
  for (const char *name; (name = next_name(folder)) != NULL; ++*n) {
    struct stat status;
    bool plain = fstatat(dirfd(folder), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
    if (!plain || !is_known(name, manifest)) return false;
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
    own = json_is_object(json_object_get(manifest, "files")) && holds_only_known(folder, manifest, &n);
    json_decref(manifest);
  }
  closedir(folder);
  return own;
}

/* ---- states ---- */

static bool is_weights(const char *name) {
  return strncmp(name, WEIGHTS, sizeof WEIGHTS - 1) == 0 || strcmp(name, NXR_ADAPTER_FILE) == 0;
}

/* What a manifest says of a checkpoint without states; false where it has none. */
static bool forget_states(json_t *manifest) {
  json_t *files = json_object_get(manifest, "files"), *removed = json_array(), *file;
  const char *name;
  void *next;
  json_object_foreach_safe(files, next, name, file) {
    if (is_weights(name)) continue;
    json_array_append_new(removed, json_string(name));
    json_object_del(files, name);
  }
  bool some = json_array_size(removed) > 0;
  if (some) json_object_set(manifest, REMOVED, removed);
  json_decref(removed);
  return some;
}

static bool replace_manifest(const char *folder, json_t *manifest) {
  char from[NXR_PATH_BYTES], to[NXR_PATH_BYTES];
  nxr_fault none;
  snprintf(from, sizeof from, "%s/%s", folder, NEXT_MANIFEST);
  snprintf(to, sizeof to, "%s/%s", folder, MANIFEST);
  unlink(from); /* of a run that was killed */
  char *text = nxr_manifest_text(manifest);
  bool good = text && nxr_write_text(folder, NEXT_MANIFEST, text, &none) && rename(from, to) == 0 &&
              nxr_folder_sync(folder, &none);
  free(text);
  return good;
}

static bool remove_listed(const char *folder, const json_t *names) {
  char path[NXR_PATH_BYTES];
  size_t i;
  json_t *at;
  bool good = true;
  json_array_foreach((json_t *)(uintptr_t)names, i, at) {
    const char *name = json_string_value(at);
    if (name == NULL || strchr(name, '/') != NULL) continue;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    good = (unlink(path) == 0 || errno == ENOENT) && good;
  }
  return good;
}

bool nxr_checkpoint_remove_states(const char *folder, uint64_t step) {
  char sums[NXR_PATH_BYTES];
  json_t *manifest;
  nxr_fault none;
  snprintf(sums, sizeof sums, "%s/" NX_SUMS_FILE, folder);
  if (access(sums, F_OK) == 0) return true;
  if (!nxr_manifest_read(folder, step, &manifest, &none)) return false;
  bool good = (!forget_states(manifest) || replace_manifest(folder, manifest)) &&
              remove_listed(folder, json_object_get(manifest, REMOVED));
  json_decref(manifest);
  return good;
}

/* ---- unfinished ones ---- */

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
