/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_link.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/files/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  TARGET_BYTES = NXR_LINK_BYTES * 2,
  MOST_DIGITS = 20,
  MOST_DEPTH = NXR_LINK_BYTES / 2,
  OPEN = O_RDONLY | O_DIRECTORY | O_CLOEXEC
};

typedef struct field {
  const char *name;
  double value;
  bool known, whole;
} field;

/* One number, as what stands behind the colon of its field asks. */
static int print_field(const field *of, const char *format, char *to, size_t room) {
  if (!of->known) return snprintf(to, room, "%s", "");
  int digits = format[0] ? atoi(format + 1) : 0;
  if (digits < 0 || digits > MOST_DIGITS) return -1;
  if (format[0] == '.') return snprintf(to, room, "%.*f", digits, of->value);
  if (of->whole) return snprintf(to, room, "%0*.0f", digits, of->value);
  return snprintf(to, room, "%g", of->value);
}

/* {name} or {name:format} at `at`; *end is behind it. */
static int expand(const field *fields, size_t n, const char *at, const char **end, char *to, size_t room) {
  char format[8] = "";
  const char *close = strchr(at, '}'), *colon = strchr(at, ':');
  if (close == NULL) return -1;
  if (colon == NULL || colon > close) colon = close;
  size_t n_name = (size_t)(colon - at - 1), n_format = colon < close ? (size_t)(close - colon - 1) : 0;
  if (n_format >= sizeof format || (n_format > 0 && strchr("0.", colon[1]) == NULL)) return -1;
  memcpy(format, colon + 1, n_format);
  *end = close + 1;
  for (size_t i = 0; i < n; i++)
    if (strlen(fields[i].name) == n_name && memcmp(fields[i].name, at + 1, n_name) == 0)
      return print_field(&fields[i], format, to, room);
  return -1;
}

/* Whether it is a name, or several with / between them, of which none begins with a point. */
static bool is_below(const char *name) {
  for (const char *at = name; at; at = strchr(at, '/')) {
    at += *at == '/' && at > name;
    if (strchr("./", *at)) return false; /* or at the end */
  }
  return true;
}

bool nxr_link_name(const char *pattern, uint64_t step, uint64_t n_samples, uint64_t epoch,
                   const nxr_score *score, char name[NXR_LINK_BYTES]) {
  const field fields[] = {{"step", (double)step, true, true},
                          {"samples", (double)n_samples, true, true},
                          {"epoch", (double)epoch, true, true},
                          {"loss", score ? score->loss : 0, score && score->known, false}};
  size_t used = 0;
  for (const char *at = pattern; *at;) {
    int n = 1;
    if (*at == '{')
      n = expand(fields, sizeof fields / sizeof *fields, at, &at, name + used, NXR_LINK_BYTES - used);
    else name[used] = *at++;
    if (n < 0 || used + (size_t)n >= NXR_LINK_BYTES) return false;
    used += (size_t)n;
  }
  name[used] = '\0';
  return is_below(name);
}

/* Of a link that lies `depth` folders below the checkpoints. */
static void target_name(uint64_t step, int depth, char target[TARGET_BYTES]) {
  size_t used = 0;
  for (int i = 0; i < depth; i++) used += (size_t)sprintf(target + used, "../");
  sprintf(target + used, "step-%06" PRIu64, step);
}

/* Makes the folders that the link at `path` lies in, behind its first `begin` bytes; -1: one cannot be made,
 * else how many there are. */
static int make_folders(char *path, size_t begin) {
  int n = 0;
  for (char *slash = strchr(path + begin, '/'); slash; slash = strchr(slash + 1, '/'), n++) {
    *slash = '\0';
    bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
    *slash = '/';
    if (!made) return -1;
  }
  return n;
}

void nxr_link_make(const char *directory, uint64_t step, const char *name) {
  char path[NXR_PATH_BYTES], target[TARGET_BYTES];
  target_name(step, 0, target);
  int length = snprintf(path, sizeof path, "%s/checkpoints/%s", directory, name);
  int depth = length < NXR_PATH_BYTES ? make_folders(path, (size_t)length - strlen(name)) : 0;
  if (depth > 0) target_name(step, depth, target);
  if (length < NXR_PATH_BYTES && depth >= 0 && symlink(target, path) == 0) return;
  nxr_print(stderr, "nxrun: cannot make the link %s to %s: %s; the training goes on\n", path, target,
          length < NXR_PATH_BYTES ? strerror(errno) : "the name is too long");
}

/* Not a checkpoint, whose folder no link of ours lies in. */
static bool is_folder(int parent, const char *name) {
  struct stat status;
  return name[0] != '.' && strncmp(name, "step-", 5) != 0 &&
         fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* Folders of which nothing is left then go, too. */
static bool remove_links(int at, uint64_t step, int depth) {
  char target[TARGET_BYTES], found[TARGET_BYTES];
  bool removed = false;
  target_name(step, depth, target);
  DIR *folder = at >= 0 ? fdopendir(at) : NULL;
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    ssize_t n = readlinkat(at, entry->d_name, found, sizeof found);
    if (n == (ssize_t)strlen(target) && memcmp(found, target, (size_t)n) == 0)
      removed = unlinkat(at, entry->d_name, 0) == 0 || removed;
    if (n >= 0 || depth == MOST_DEPTH || !is_folder(at, entry->d_name)) continue;
    if (!remove_links(openat(at, entry->d_name, OPEN | O_NOFOLLOW), step, depth + 1)) continue;
    unlinkat(at, entry->d_name, AT_REMOVEDIR);
    removed = true;
  }
  if (folder) closedir(folder);
  return removed;
}

void nxr_link_remove(const char *directory, uint64_t step) {
  char path[NXR_PATH_BYTES];
  snprintf(path, sizeof path, "%s/checkpoints", directory);
  remove_links(open(path, OPEN), step, 0);
}
