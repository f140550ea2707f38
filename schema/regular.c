/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *nx_regular_open(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return NULL;
  struct stat about;
  bool plain = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  FILE *opened = plain ? fdopen(file, "rb") : NULL;
  int why = plain ? errno : EINVAL;
  if (opened == NULL) close(file);
  errno = why;
  return opened;
}

json_t *nx_json_read(const char *path, size_t flags, json_error_t *error) {
  FILE *file = nx_regular_open(path);
  if (error != NULL) {
    *error = (json_error_t){0};
    const char *why = errno == EINVAL ? "it is no file" : strerror(errno);
    if (file == NULL) snprintf(error->text, sizeof error->text, "%s", why);
  }
  json_t *root = file ? json_loadf(file, flags, error) : NULL;
  if (file != NULL) fclose(file);
  return root;
}
