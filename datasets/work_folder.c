/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/work_folder.h"

#include "datasets/beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 1000 };

/* Removes the files of an open folder; it holds no folders. */
static void empty(int folder) {
  DIR *entries = fdopendir(folder);
  if (entries == NULL) return;
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (strcmp(entry->d_name, "lock") != 0) unlinkat(folder, entry->d_name, 0);
  closedir(entries);
}

static void empty_folder(const char *path) {
  char beside[NXD_PATH_BYTES + 16];
  snprintf(beside, sizeof beside, "%s/tokenizer", path);
  nxd_remove_beside(beside);
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) empty(folder);
}

/* The open lock of a folder that nobody else writes to; -1 with errno EWOULDBLOCK where somebody does. */
static int lock_folder(const char *folder) {
  char path[NXD_PATH_BYTES + 16];
  struct stat is;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) return -1;
  snprintf(path, sizeof path, "%s/lock", folder);
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) {
    if (errno == ENOENT || errno == ENOTDIR) errno = EWOULDBLOCK; /* just removed, or no folder of ours */
    return -1;
  }
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &is) == 0 && is.st_nlink > 0) return lock;
  close(lock);
  errno = EWOULDBLOCK;
  return -1;
}

bool nxd_work_folder_open(const char *prefix, const char *key, char folder[NXD_PATH_BYTES], int *lock,
                          nxd_standing *standing, nxr_fault *fault) {
  if (strlen(prefix) > NXD_PATH_BYTES - 64)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    int n = snprintf(folder, NXD_PATH_BYTES, "%s.building", prefix);
    if (attempt > 1) snprintf(folder + n, (size_t)(NXD_PATH_BYTES - n), "-%d", attempt);
    *lock = lock_folder(folder);
    if (*lock < 0 && errno != EWOULDBLOCK) break;
    if (*lock < 0) continue;
    nxd_journal_found found = nxd_journal_read(folder, key, standing);
    if (found != NXD_JOURNAL_OTHERS) {
      if (found == NXD_JOURNAL_NONE) empty_folder(folder);
      return true;
    }
    close(*lock);
  }
  nxr_fault_set(fault, "cannot write %s: %s", folder, strerror(errno));
  folder[0] = '\0';
  return false;
}

void nxd_work_folder_remove(const char *folder, int lock) {
  char path[NXD_PATH_BYTES + 16];
  empty_folder(folder);
  snprintf(path, sizeof path, "%s/lock", folder);
  unlink(path);
  rmdir(folder);
  close(lock);
}
