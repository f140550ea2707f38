/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 64 * 1024 * 1024 };

enum { WORDS_MAX = 8 };

/* Becomes git in the folder, with these words. */
static void become_git(const char *folder, const char *const *words) {
  char *line[WORDS_MAX + 4] = {(char *)"git", (char *)"-C", (char *)folder};
  for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++) line[3 + i] = (char *)words[i];
  if (freopen("/dev/null", "w", stderr) != NULL) execvp("git", line);
  _exit(127);
}

/* What git prints in the folder, of bounded length. NULL: it failed. */
static char *run_git(nxc_arena *arena, const char *folder, const char *const *words, size_t *n_bytes) {
  int ends[2];
  if (pipe(ends) != 0) return NULL;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    become_git(folder, words);
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

/* The folders of the file that are still there, with the last slash; empty: none is named. */
static const char *existing_folder(nxc_arena *arena, const char *file) {
  char *folder = nxc_arena_strdup(arena, file);
  for (char *slash; (slash = strrchr(folder, '/')) != NULL; *slash = '\0') {
    slash[1] = '\0';
    if (access(folder, F_OK) == 0) return folder;
  }
  return "";
}

static bool refuse_option(const char *revision) {
  if (*revision == '-') fprintf(stderr, "nxcfg diff: %s is no revision\n", revision);
  return *revision == '-';
}

const nxc_source *nxc_revision_read(nxc_arena *arena, const char *revision, const char *file, bool *absent) {
  const char *folder = existing_folder(arena, file), *base = file + strlen(folder);
  size_t n_bytes;
  if (*folder == '\0') folder = ".";
  *absent = false;
  if (refuse_option(revision)) return NULL;
  const char *object = nxc_arena_printf(arena, "%s:./%s", revision, base);
  const char *text = run_git(arena, folder, (const char *[]){"show", "-q", object, NULL}, &n_bytes);
  if (text != NULL)
    return nxc_source_new(arena, nxc_arena_printf(arena, "%s:%s", revision, file), text, n_bytes);
  const char *commit = nxc_arena_printf(arena, "%s^{commit}", revision);
  *absent = run_git(arena, folder, (const char *[]){"rev-parse", "-q", commit, NULL}, &n_bytes) != NULL;
  if (!*absent) fprintf(stderr, "nxcfg diff: git knows no revision %s of %s\n", revision, file);
  return NULL;
}

bool nxc_revision_list(nxc_arena *arena, const char *revision, const char *folder, nxc_texts *names) {
  size_t n_bytes;
  *names = (nxc_texts){0};
  if (refuse_option(revision)) return false;
  const char *const words[] = {"ls-tree", "-r", "-z", "--name-only", revision, NULL};
  const char *text = run_git(arena, folder, words, &n_bytes);
  if (text == NULL) {
    fprintf(stderr, "nxcfg diff: git knows no revision %s of %s\n", revision, folder);
    return false;
  }
  for (const char *name = text, *end; (end = memchr(name, '\0', (size_t)(text + n_bytes - name))) != NULL;
       name = end + 1) {
    names->items = nxc_arena_grow(arena, names->items, names->n_items, sizeof *names->items);
    names->items[names->n_items++] = name;
  }
  return true;
}
