/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 64 * 1024 * 1024 };

/* Runs git in the file's folder; what it prints, of bounded length. NULL: it failed. */
static char *run_git(nxc_arena *arena, const char *folder, const char *command, const char *object,
                     size_t *n_bytes) {
  int ends[2];
  if (pipe(ends) != 0) return NULL;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(127);
    execlp("git", "git", "-C", folder, command, "-q", object, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  char *text = NULL;
  size_t capacity = 0;
  *n_bytes = 0;
  for (ssize_t n = 1; child > 0 && n > 0 && *n_bytes<TEXT_BYTES_MAX; *n_bytes += n> 0 ? (size_t)n : 0) {
    if (*n_bytes + 4096 > capacity) {
      char *larger = nxc_arena_alloc(arena, capacity = 2 * capacity + 8192);
      if (*n_bytes > 0) memcpy(larger, text, *n_bytes);
      text = larger;
    }
    do n = read(ends[0], text + *n_bytes, 4096);
    while (n < 0 && errno == EINTR);
  }
  close(ends[0]);
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : NULL;
}

const nxc_source *nxc_revision_read(nxc_arena *arena, const char *revision, const char *file, bool *absent) {
  const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
  const char *folder = slash ? nxc_arena_printf(arena, "%.*s", (int)(slash + 1 - file), file) : ".";
  size_t n_bytes;
  *absent = false;
  if (*revision == '-') {
    fprintf(stderr, "nxcfg diff: %s is no revision\n", revision);
    return NULL;
  }
  const char *object = nxc_arena_printf(arena, "%s:./%s", revision, base);
  const char *text = run_git(arena, folder, "show", object, &n_bytes);
  if (text != NULL)
    return nxc_source_new(arena, nxc_arena_printf(arena, "%s:%s", revision, file), text, n_bytes);
  const char *commit = nxc_arena_printf(arena, "%s^{commit}", revision);
  *absent = run_git(arena, folder, "rev-parse", commit, &n_bytes) != NULL;
  if (!*absent) fprintf(stderr, "nxcfg diff: git knows no revision %s of %s\n", revision, file);
  return NULL;
}
