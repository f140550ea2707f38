/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/fence.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 2 };

static char *allowed[NXR_MOST_ALLOWED]; /* absolute, without links */
static int n_allowed;

static bool is_link(const char *path) {
  struct stat about;
  return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

/* What the path is, or would be once it is made. A link that leads to nothing is refused: whoever makes what
 * it leads to makes it elsewhere. */
static bool resolve(const char *path, char real[PATH_MAX]) {
  if (realpath(path, real) != NULL) return true;
  char parent[PATH_MAX];
  size_t n = strlen(path);
  if (errno != ENOENT || n == 0 || n >= sizeof parent || is_link(path)) return false;
  memcpy(parent, path, n + 1);
  while (n > 1 && parent[n - 1] == '/') parent[--n] = '\0';
  char *slash = strrchr(parent, '/');
  const char *name = slash ? slash + 1 : parent;
  char last[NAME_MAX + 1];
  if (strlen(name) > NAME_MAX || strcmp(name, "..") == 0) return false;
  strcpy(last, strcmp(name, ".") == 0 ? "" : name);
  if (slash) slash[slash == parent ? 1 : 0] = '\0';
  if (!resolve(slash ? parent : ".", real)) return false;
  size_t length = strlen(real);
  if (last[0] == '\0') return true;
  return snprintf(real + length, PATH_MAX - length, "%s%s", length > 1 ? "/" : "", last) <
         (int)(PATH_MAX - length);
}

static bool is_inside(const char *real) {
  for (int i = 0; i < n_allowed; i++) {
    size_t n = strlen(allowed[i]);
    bool root = n == 1; /* "/" */
    if (strncmp(real, allowed[i], n) == 0 && (root || real[n] == '/' || real[n] == '\0')) return true;
  }
  return false;
}

bool nxr_fence_add(const char *path, bool given, nxr_fault *fault) {
  char real[PATH_MAX];
  if (n_allowed == NXR_MOST_ALLOWED)
    return nxr_fault_set(fault, "--allow may be given %d times", NXR_MOST_ALLOWED);
  if (given ? realpath(path, real) == NULL : !resolve(path, real))
    return nxr_fault_set(fault, "--allow %s: %s", path, strerror(errno));
  allowed[n_allowed] = strdup(real);
  if (allowed[n_allowed] == NULL) return nxr_fault_set(fault, "out of memory");
  n_allowed++;
  return true;
}

static bool refuse(const char *path, const char *real, const char *what, nxr_fault *fault) {
  char list[512] = "";
  for (int i = 0; i < n_allowed; i++) {
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%.120s", i ? ", " : "", allowed[i]);
  }
  bool leads = real != NULL && strcmp(path, real) != 0;
  return nxr_fault_set(fault,
                       "%s: %.180s%s%.180s is outside of the folders that --allow names (%s): allow its "
                       "folder too, or make a plan with another path",
                       what, path, leads ? ", which is " : "", leads ? real : "", list);
}

static bool allows(const char *path, const char *what, nxr_fault *fault) {
  char real[PATH_MAX];
  if (n_allowed == 0) return true;
  bool resolved = resolve(path, real);
  return (resolved && is_inside(real)) || refuse(path, resolved ? real : NULL, what, fault);
}

bool nxr_fence_allows_open(int file, const char *path, nxr_fault *fault) {
  char link[64], real[PATH_MAX];
  if (n_allowed == 0) return true;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, real, sizeof real - 1);
  if (n < 0) return nxr_fault_set(fault, "cannot tell where %s leads: %s", path, strerror(errno));
  real[n] = '\0';
  return is_inside(real) || refuse(path, real, "a file that the plan leads to", fault);
}

/* Links alone can lead out of a folder. */
static bool look_into(const char *path, const char *what, int depth, nxr_fault *fault) {
  DIR *folder = opendir(path);
  bool good = true;
  for (struct dirent *entry; good && folder && (entry = readdir(folder)) != NULL;) {
    char within[PATH_MAX];
    struct stat about;
    bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (dots || snprintf(within, sizeof within, "%s/%s", path, entry->d_name) >= (int)sizeof within) continue;
    if (lstat(within, &about) != 0) continue;
    if (S_ISLNK(about.st_mode)) good = allows(within, what, fault);
    else if (S_ISDIR(about.st_mode) && depth > 1) good = look_into(within, what, depth - 1, fault);
  }
  if (folder) closedir(folder);
  return good;
}

bool nxr_fence_allows_folder(const char *path, const char *what, nxr_fault *fault) {
  return allows(path, what, fault) && (n_allowed == 0 || look_into(path, what, DEEPEST, fault));
}
