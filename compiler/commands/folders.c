/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 64 };

static void append(nxc_arena *arena, nxc_texts *list, const char *text) {
  list->items = nxc_arena_grow(arena, list->items, list->n_items, sizeof *list->items);
  list->items[list->n_items++] = text;
}

static bool is_configuration(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_names(nxc_arena *arena, const char *command, const char *folder, nxc_texts *names) {
  DIR *open = opendir(folder);
  if (open == NULL) {
    fprintf(stderr, "nxcfg %s: cannot read the folder %s: %s\n", command, folder, strerror(errno));
    return false;
  }
  for (const struct dirent *entry; (entry = readdir(open)) != NULL;)
    if (entry->d_name[0] != '.') append(arena, names, nxc_arena_strdup(arena, entry->d_name));
  closedir(open);
  if (names->n_items > 0) qsort(names->items, names->n_items, sizeof *names->items, compare_names);
  return true;
}

static bool walk(nxc_arena *arena, const char *command, const char *folder, int depth, nxc_texts *found) {
  nxc_texts names = {0};
  if (depth > DEPTH_MAX) {
    fprintf(stderr, "nxcfg %s: more than %d folders deep, so not searched: %s\n", command, DEPTH_MAX, folder);
    return false;
  }
  if (!read_names(arena, command, folder, &names)) return false;
  bool ends = folder[strlen(folder) - 1] == '/', good = true;
  for (size_t i = 0; i < names.n_items; i++) {
    const char *path = nxc_arena_printf(arena, "%s%s%s", folder, ends ? "" : "/", names.items[i]);
    struct stat status;
    if (lstat(path, &status) != 0) continue;
    bool link = S_ISLNK(status.st_mode);
    if (link && (stat(path, &status) != 0 || S_ISDIR(status.st_mode))) continue;
    if (S_ISDIR(status.st_mode)) good = walk(arena, command, path, depth + 1, found) && good;
    else if (S_ISREG(status.st_mode) && is_configuration(path)) append(arena, found, path);
  }
  return good;
}

static void mark(nxc_arena *arena, nxc_found_files *found, size_t n_before, bool below) {
  for (size_t i = n_before; i < found->names.n_items; i++) {
    found->below = nxc_arena_grow(arena, found->below, i, sizeof *found->below);
    found->below[i] = below;
  }
}

bool nxc_folders_expand(nxc_arena *arena, const char *command, const nxc_texts *files,
                        nxc_found_files *found) {
  bool good = true;
  *found = (nxc_found_files){0};
  for (size_t i = 0; i < files->n_items; i++) {
    struct stat status;
    const char *name = files->items[i];
    if (*name == '\0' || stat(name, &status) != 0 || !S_ISDIR(status.st_mode)) {
      append(arena, &found->names, name);
      mark(arena, found, found->names.n_items - 1, false);
      continue;
    }
    size_t n_before = found->names.n_items;
    good = walk(arena, command, name, 0, &found->names) && good;
    mark(arena, found, n_before, true);
    if (found->names.n_items == n_before && good) {
      fprintf(stderr, "nxcfg %s: there is no *.yaml or *.yml below %s\n", command, name);
      good = false;
    }
  }
  return good;
}
