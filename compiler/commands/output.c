/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/output.h"

#include "compiler/convert/convert.h"
#include "compiler/diagnostics/characters.h"
#include "schema/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int file, const char *bytes, size_t n_bytes) {
  while (n_bytes > 0) {
    ssize_t n = write(file, bytes, n_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    n_bytes -= (size_t)n;
  }
  return true;
}

static bool close_after(int file, bool good) {
  int error = errno;
  if (close(file) != 0 && good) return false;
  errno = error;
  return good;
}

/* A device or a pipe, such as /dev/stdout: there is nothing to replace. */
static bool write_through(const char *path, const char *bytes, size_t n_bytes) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  return file >= 0 && close_after(file, write_all(file, bytes, n_bytes));
}

/* A file without a name, in the folder of `path`: it goes with the process, whatever ends that. Below 0 where
 * the file system has none. */
static int open_unnamed(nxc_arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
  return open(nxc_arena_printf(arena, "%.*s", length, slash ? path : "."), O_TMPFILE | O_WRONLY | O_CLOEXEC,
              0666);
}

static bool give_name(nxc_arena *arena, int file, const char *name) {
  const char *open_file = nxc_arena_printf(arena, "/proc/self/fd/%d", file);
  return linkat(AT_FDCWD, open_file, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* A name is given to what is whole. Where the path is taken a temporary name comes first, since only a rename
 * replaces: for no longer than from one call to the next, since who is killed in between leaves it behind. */
static bool replace_file(nxc_arena *arena, const char *path, const char *bytes, size_t n_bytes) {
  char *real = realpath(path, NULL); /* of a link, the file that it leads to */
  const char *target = real ? real : path;
  const char *temporary = nxc_arena_printf(arena, "%s.%ld.tmp", target, (long)getpid());
  int file = open_unnamed(arena, target);
  bool unnamed = file >= 0, named = false;
  if (!unnamed) file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  struct stat before;
  if (file >= 0 && stat(target, &before) == 0) fchmod(file, before.st_mode & 07777); /* as it may be run */
  bool made = file >= 0, good = made && write_all(file, bytes, n_bytes) && fsync(file) == 0;
  if (good && unnamed) {
    named = give_name(arena, file, target);
    good = named || (errno == EEXIST && give_name(arena, file, temporary) && rename(temporary, target) == 0);
  }
  good = made && close_after(file, good);
  if (good && !unnamed) good = rename(temporary, target) == 0;
  int error = errno;
  if (made && !good && !named) unlink(temporary);
  free(real);
  errno = error;
  return good;
}

bool nxc_output_spares(const char *command, const char *path, const nxc_texts *inputs) {
  struct stat written, read;
  if (path == NULL || stat(path, &written) != 0 || !S_ISREG(written.st_mode)) return true;
  for (size_t i = 0; i < inputs->n_items; i++) {
    if (stat(inputs->items[i], &read) != 0 || read.st_dev != written.st_dev || read.st_ino != written.st_ino)
      continue;
    fprintf(stderr, "nxcfg %s: %s is read here, so it is not replaced: give another name\n", command, path);
    return false;
  }
  return true;
}

/* How what a command writes is known again. */
static const struct {
  const char *name, *begins; /* NULL: as any text may */
  const char *in_line;       /* and has this in its first line */
} likes[] = {[NXC_OUTPUT_PLAN] = {"plan", NX_PLAN_MAGIC, ""},
             [NXC_OUTPUT_PICTURE] = {"picture", "<svg", ""},
             [NXC_OUTPUT_PAGE] = {"page", "<!DOCTYPE html>", ""},
             [NXC_OUTPUT_CONVERTED] = {"converted configuration", "# ", NXC_CONVERTED},
             [NXC_OUTPUT_TEXT] = {NULL}};

static bool is_like(const char *path, nxc_output_kind kind) {
  char first[256] = "";
  const char *begins = likes[kind].begins;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file >= 0 ? read(file, first, sizeof first - 1) : -1;
  if (file >= 0) close(file);
  if (n <= 0 || begins == NULL || strncmp(first, begins, strlen(begins)) != 0) return false;
  first[strcspn(first, "\n")] = '\0';
  return strstr(first, likes[kind].in_line) != NULL;
}

bool nxc_output_may_replace(const char *command, const char *option, const char *path, nxc_output_kind kind,
                            bool forced) {
  struct stat status;
  bool is_file = path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (!is_file || forced || is_like(path, kind)) return true;
  const char *like = likes[kind].name, *or_force = kind >= NXC_OUTPUT_CONVERTED ? ", or --force" : "";
  fprintf(stderr, "nxcfg %s: %s is there%s%s, so it is not replaced: give %s another name%s\n", command, path,
          like ? " and is no " : "", like ? like : "", option, or_force);
  return false;
}

bool nxc_output_write(nxc_arena *arena, const char *command, const char *path, const void *bytes,
                      size_t n_bytes) {
  struct stat status;
  bool is_stream = stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  bool good = is_stream ? write_through(path, bytes, n_bytes) : replace_file(arena, path, bytes, n_bytes);
  if (good) return true;
  const char *why = strerror(errno);
  fprintf(stderr, "nxcfg %s: cannot write %s: %s\n", command, nxc_characters_shown(arena, path), why);
  return false;
}
