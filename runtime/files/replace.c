/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/replace.h"

#include "schema/regular.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_replace(const char *path, const char *beginning, nxr_fault *fault) {
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return true;
  char found[64] = "";
  FILE *file = nx_regular_open(path);
  size_t n = file ? fread(found, 1, sizeof found - 1, file) : 0;
  if (file != NULL) fclose(file);
  return (n >= strlen(beginning) && memcmp(found, beginning, strlen(beginning)) == 0) ||
         nxr_fault_set(fault, "%s is there and was not made by this command, so it is not replaced: give -o "
                              "another name", path);
}

bool nxr_replace_open(nxr_replacing *to, const char *path, const char *beginning, nxr_fault *fault) {
  struct stat about;
  *to = (nxr_replacing){.file = stdout, .path = path};
  if (path == NULL) return true;
  to->file = NULL;
  if (!may_replace(path, beginning, fault)) return false;
  bool renamed = lstat(path, &about) != 0 || S_ISREG(about.st_mode);
  if (renamed && asprintf(&to->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) to->temporary = NULL;
  if (renamed && to->temporary == NULL) return nxr_fault_set(fault, "out of memory");
  to->file = renamed ? fopen(to->temporary, "wx") : fopen(path, "w");
  return to->file || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

bool nxr_replace_finish(nxr_replacing *to, nxr_fault *fault) {
  bool well = fflush(to->file) == 0 && !ferror(to->file);
  if (well && to->temporary) well = rename(to->temporary, to->path) == 0;
  return well || nxr_fault_set(fault, "cannot write %s: %s", to->path ? to->path : "standard output",
                               strerror(errno));
}

void nxr_replace_close(nxr_replacing *to) {
  if (to->path && to->file) fclose(to->file);
  if (to->temporary && to->file) unlink(to->temporary);
  free(to->temporary);
  *to = (nxr_replacing){0};
}
