/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/folders.h"

#include "compiler/config/path_pattern.h"
#include "compiler/config/project.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

static void append(nxc_arena *arena, nxc_texts *list, const char *text) {
  list->items = nxc_arena_grow(arena, list->items, list->n_items, sizeof *list->items);
  list->items[list->n_items++] = text;
}

bool nxc_folders_take(const char *name) {
  static const char *const ends[] = {".yaml", ".yml", ".sh", ".slurm", ".sbatch"};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot != NULL && i < sizeof ends / sizeof *ends; i++)
    if (strcmp(dot, ends[i]) == 0) return true;
  return false;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool read_names(nxc_arena *arena, const char *command, const char *folder, nxc_texts *names) {
  DIR *open = opendir(*folder ? folder : ".");
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

/* A folder on the way: its name as it is shown, and what is left out in it. */
typedef struct place {
  const char *shown, *absolute; /* both end in /, but of . nothing is shown */
  const nxc_ignore *ignore;
  const nxc_project *project;
} place;

/* A project file that cannot be read is told of with each file that it is about. */
static const nxc_project *project_of(nxc_arena *arena, const char *folder) {
  nxc_project *project = nxc_arena_alloc(arena, sizeof *project);
  (void)nxc_project_read(arena, folder, nxc_sink_new(arena), project);
  return project;
}

static place enter(nxc_arena *arena, const place *from, const char *name) {
  place into = *from;
  into.shown = nxc_arena_printf(arena, "%s%s/", from->shown, name);
  into.absolute = nxc_arena_printf(arena, "%s%s/", from->absolute, name);
  into.ignore = nxc_ignore_read(arena, from->ignore, into.absolute);
  bool own = access(nxc_arena_printf(arena, "%s" NXC_PROJECT_FILE, into.absolute), F_OK) == 0;
  if (own) into.project = project_of(arena, into.absolute);
  return into;
}

static place begin(nxc_arena *arena, const char *folder) {
  char absolute[PATH_MAX];
  bool ends = folder[strlen(folder) - 1] == '/', here = strcmp(folder, ".") == 0 || strcmp(folder, "./") == 0;
  place top = {.shown = here ? "" : nxc_arena_printf(arena, "%s%s", folder, ends ? "" : "/")};
  if (realpath(folder, absolute) == NULL) absolute[0] = '\0';
  top.absolute = nxc_arena_printf(arena, "%s%s", absolute, absolute[0] && absolute[1] ? "/" : "");
  top.ignore = nxc_ignore_above(arena, top.absolute);
  top.project = project_of(arena, top.absolute);
  return top;
}

static bool is_left_out(nxc_arena *arena, const place *in, const char *name, bool is_folder) {
  const char *path = nxc_arena_printf(arena, "%s%s", in->absolute, name);
  if (nxc_ignore_has(arena, in->ignore, path, is_folder)) return true;
  return nxc_project_excludes(arena, in->project, is_folder ? nxc_arena_printf(arena, "%s/", path) : path);
}

static bool walk(nxc_arena *arena, const char *command, const place *in, int depth, nxc_texts *found) {
  nxc_texts names = {0};
  if (depth > DEPTH_MAX) {
    fprintf(stderr, "nxcfg %s: more than %d folders deep, so not searched: %s\n", command, DEPTH_MAX,
            in->shown);
    return false;
  }
  if (!read_names(arena, command, in->shown, &names)) return false;
  bool good = true;
  for (size_t i = 0; i < names.n_items; i++) {
    const char *path = nxc_arena_printf(arena, "%s%s", in->shown, names.items[i]);
    struct stat status;
    if (lstat(path, &status) != 0) continue;
    bool link = S_ISLNK(status.st_mode);
    if (link && (stat(path, &status) != 0 || S_ISDIR(status.st_mode))) continue;
    bool folder = S_ISDIR(status.st_mode), file = S_ISREG(status.st_mode) && nxc_folders_take(path);
    if ((!folder && !file) || is_left_out(arena, in, names.items[i], folder)) continue;
    if (file) {
      append(arena, found, path);
      continue;
    }
    const place into = enter(arena, in, names.items[i]);
    good = walk(arena, command, &into, depth + 1, found) && good;
  }
  return good;
}

static void mark(nxc_arena *arena, nxc_found_files *found, size_t n_before, bool below) {
  for (size_t i = n_before; i < found->names.n_items; i++) {
    found->below = nxc_arena_grow(arena, found->below, i, sizeof *found->below);
    found->below[i] = below;
  }
}

void nxc_folders_search(nxc_arena *arena, nxc_found_files *found) {
  size_t n_left = 0;
  for (size_t i = 0; i < found->names.n_items; i++) {
    const char *path = found->names.items[i], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const place in = begin(arena, slash ? nxc_arena_strndup(arena, path, (size_t)(name - path)) : ".");
    if (!found->below[i] && (*name == '.' || is_left_out(arena, &in, name, false))) continue;
    found->names.items[n_left] = path;
    found->below[n_left++] = true;
  }
  found->names.n_items = n_left;
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
    const place top = begin(arena, name);
    bool read = walk(arena, command, &top, 0, &found->names);
    good = good && read;
    mark(arena, found, n_before, true);
    if (found->names.n_items == n_before && read) {
      fprintf(stderr, "nxcfg %s: there is no *.yaml, *.yml or script below %s\n", command, name);
      good = false;
    }
  }
  return good;
}
