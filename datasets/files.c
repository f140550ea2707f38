/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/files.h"

#include "schema/regular.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool add(nxd_files *files, const char *path, const nxd_input_kind *kind, nxr_fault *fault) {
  if (files->n == files->room) {
    size_t room = files->room ? 2 * files->room : 16;
    char **paths = reallocarray(files->paths, room, sizeof *paths);
    if (paths) files->paths = paths;
    const nxd_input_kind **kinds = reallocarray(files->kinds, room, sizeof *kinds);
    if (kinds) files->kinds = kinds;
    if (paths == NULL || kinds == NULL) return nxr_fault_set(fault, "out of memory");
    files->room = room;
  }
  if ((files->paths[files->n] = strdup(path)) == NULL) return nxr_fault_set(fault, "out of memory");
  files->kinds[files->n++] = kind;
  return true;
}

bool nxd_files_add_made_up(nxd_files *files, const nxd_input_kind *kind, nxr_fault *fault) {
  return add(files, kind->name, kind, fault);
}

static bool add_file(nxd_files *files, const char *path, const nxd_input_kind *kind, nxr_fault *fault) {
  struct stat is;
  if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
    return nxr_fault_set(fault, "cannot read %s: %s", path, strerror(errno));
  if (kind == NULL) kind = nxd_input_kind_of(path, fault);
  if (kind == NULL) return false;
  if (stat(path, &is) == 0 && S_ISREG(is.st_mode)) files->n_bytes += (uint64_t)is.st_size;
  return add(files, path, kind, fault);
}

static bool join(char to[PATH_BYTES], const char *folder, const char *name, nxr_fault *fault) {
  return snprintf(to, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES ||
         nxr_fault_set(fault, "the path %s/%s is too long", folder, name);
}

/* -- folders that Hugging Face datasets saved
 * ------------------------------------------------------------------ */

/* A JSON file of a folder; NULL where there is none. */
static json_t *load_json(const char *folder, const char *name) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return NULL;
  return nx_json_read(path, 0, NULL);
}

/* state.json: which files, in order; and whether rows are picked among theirs. */
static bool add_saved(nxd_files *files, const char *folder, const json_t *state, nxr_fault *fault) {
  const json_t *entry;
  size_t i;
  char path[PATH_BYTES];
  if (json_array_size(json_object_get(state, "_indices_data_files")) > 0)
    return nxr_fault_set(fault,
                         "%s/state.json picks rows by indices, which are not read: save it after "
                         "flatten_indices()",
                         folder);
  const json_t *entries = json_object_get(state, "_data_files");
  if (json_array_size(entries) == 0) return nxr_fault_set(fault, "%s/state.json names no data files", folder);
  json_array_foreach(entries, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "filename"));
    if (name == NULL) return nxr_fault_set(fault, "%s/state.json is damaged: a file has no filename", folder);
    if (!join(path, folder, name, fault) ||
        !add_file(files, path, nxd_input_kind_named("arrow"), fault))
      return false;
  }
  return true;
}

/* dataset_dict.json: a folder for each split. */
static bool add_split(nxd_files *files, const char *folder, const json_t *dict, const char *split,
                      nxr_fault *fault) {
  const json_t *name;
  size_t i;
  char names[256] = "", path[PATH_BYTES];
  const char *wanted = split ? split : "train";
  json_array_foreach(json_object_get(dict, "splits"), i, name) {
    const char *has = json_string_value(name);
    if (has == NULL) continue;
    if (strcmp(has, wanted) == 0)
      return join(path, folder, has, fault) && nxd_files_add(files, path, NULL, NULL, fault);
    size_t n = strlen(names);
    snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", has);
  }
  return nxr_fault_set(fault, "%s has no split %s, it has: %s", folder, wanted, names);
}

/* -- other folders
 * ---------------------------------------------------------------------------------------------- */

static int is_data_file(const struct dirent *entry) {
  static const char *const endings[] = {".txt", ".jsonl", ".ndjson", ".json", ".arrow", ".idx",
                                        ".gz",  ".zst",   ".parquet", ".csv"};
  if (entry->d_name[0] == '.') return 0;
  const char *ending = strrchr(entry->d_name, '.');
  for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
    if (strcmp(ending, endings[i]) == 0) return 1;
  return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_folder(nxd_files *files, const char *folder, const nxd_input_kind *kind, nxr_fault *fault) {
  struct dirent **entries = NULL;
  char path[PATH_BYTES];
  int n = scandir(folder, &entries, is_data_file, by_name);
  bool good = n > 0 || nxr_fault_set(fault, "%s holds no file of data: .jsonl, .txt, .arrow, .idx", folder);
  for (int i = 0; i < n; i++) {
    good = good && join(path, folder, entries[i]->d_name, fault) && add_file(files, path, kind, fault);
    free(entries[i]);
  }
  free(entries);
  return good;
}

bool nxd_files_add(nxd_files *files, const char *path, const nxd_input_kind *kind, const char *split,
                   nxr_fault *fault) {
  struct stat is;
  if (stat(path, &is) != 0 || !S_ISDIR(is.st_mode)) return add_file(files, path, kind, fault);
  json_t *dict = load_json(path, "dataset_dict.json"), *state = load_json(path, "state.json");
  bool good = dict    ? add_split(files, path, dict, split, fault)
              : state ? add_saved(files, path, state, fault)
                      : add_folder(files, path, kind, fault);
  json_decref(dict);
  json_decref(state);
  return good;
}

void nxd_files_free(nxd_files *files) {
  for (size_t i = 0; i < files->n; i++) free(files->paths[i]);
  free(files->paths);
  free(files->kinds);
  *files = (nxd_files){0};
}
