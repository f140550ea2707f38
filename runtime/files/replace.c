/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/replace.h"

#include "schema/regular.h"

#include <string.h>
#include <sys/stat.h>

bool nxr_may_replace(const char *path, const char *beginning, nxr_fault *fault) {
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

bool nxr_is_renamed_over(const char *path) {
  struct stat about;
  return lstat(path, &about) != 0 || S_ISREG(about.st_mode);
}
