/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/watch.h"

#include "compiler/commands/commands.h"
#include "compiler/config/project.h"
#include "compiler/hash.h"

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MILLISECONDS = 300, FOLDERS_OPEN_MAX = 16 };

/* Times, sizes and numbers of all files in one number: nftw has no context to give. */
static uint64_t seen;

static void mix(uint64_t number) {
  seen = nxc_hash_mixed(seen, number);
}

static int look(const char *path, const struct stat *status, int kind, struct FTW *where) {
  const char *name = path + where->base;
  struct stat target;
  if (kind == FTW_SL && stat(path, &target) == 0) status = &target;
  if (kind == FTW_D && name[0] == '.' && name[1] != '\0' && where->level > 0) return FTW_SKIP_SUBTREE;
  mix((uint64_t)status->st_mtim.tv_sec);
  mix((uint64_t)status->st_mtim.tv_nsec);
  mix((uint64_t)status->st_size);
  mix((uint64_t)status->st_ino);
  return FTW_CONTINUE;
}

/* An editor replaces files rather than writing to them, so paths are looked at, not open files. */
static uint64_t look_at_all(const nxc_texts *files) {
  seen = 0;
  for (size_t i = 0; i < files->n_items; i++)
    if (nftw(files->items[i], look, FOLDERS_OPEN_MAX, FTW_ACTIONRETVAL | FTW_PHYS) != 0) mix(i);
  struct stat status;
  if (stat(NXC_PROJECT_FILE, &status) == 0) mix((uint64_t)status.st_mtim.tv_nsec + (uint64_t)status.st_size);
  return seen;
}

static void run_once(int (*run)(void *context), void *context) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int status = run(context);
    fflush(NULL);
    _exit(status);
  }
  if (child > 0) waitpid(child, NULL, 0);
}

int nxc_watch(const nxc_texts *files, int (*run)(void *context), void *context) {
  const struct timespec pause = {0, MILLISECONDS * 1000000L};
  for (;;) {
    uint64_t before = look_at_all(files);
    run_once(run, context);
    time_t now = time(NULL);
    struct tm parts;
    char text[32] = "";
    if (localtime_r(&now, &parts) != NULL) strftime(text, sizeof text, "%H:%M:%S", &parts);
    printf("-- %s; waiting for a change\n", text);
    if (fflush(stdout) != 0) return NXC_EXIT_USAGE;
    do nanosleep(&pause, NULL);
    while (look_at_all(files) == before);
  }
}
