/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool write_all(int file, const char *bytes, size_t n_bytes) {
  while (n_bytes > 0) {
    ssize_t n = write(file, bytes, n_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    n_bytes -= (size_t)n;
  }
  return fsync(file) == 0;
}

bool nxc_output_write(nxc_arena *arena, const char *command, const char *path, const void *bytes,
                      size_t n_bytes) {
  char *temporary = nxc_arena_printf(arena, "%s.%ld.tmp", path, (long)getpid());
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool good = file >= 0 && write_all(file, bytes, n_bytes);
  int error = errno;
  if (file >= 0 && close(file) != 0 && good) good = false, error = errno;
  if (good && rename(temporary, path) != 0) good = false, error = errno;
  if (good) return true;
  if (file >= 0) unlink(temporary);
  fprintf(stderr, "nxcfg %s: cannot write %s: %s\n", command, path, strerror(error));
  return false;
}
