/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const nxd_codec *const codecs[] = {&nxd_gzip, &nxd_zstd};

static const nxd_codec *find_codec(const nxd_bytes *bytes) {
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
    if (codecs[i]->is(bytes->room, bytes->n)) return codecs[i];
  return NULL;
}

bool nxd_bytes_open(nxd_bytes *bytes, const char *path, nxr_fault *fault) {
  struct stat is;
  bytes->path = path, bytes->codec = NULL, bytes->state = NULL;
  bytes->n_used = 0, bytes->at = bytes->n = 0, bytes->ended = false;
  bytes->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (bytes->file == NULL) return nxr_fault_set(fault, "cannot read %s: %s", path, strerror(errno));
  bool folder = fstat(fileno(bytes->file), &is) == 0 && S_ISDIR(is.st_mode);
  if (folder) nxr_fault_set(fault, "cannot read %s: it is a folder", path);
  if (!folder) nxd_bytes_fill(bytes);
  bytes->codec = find_codec(bytes);
  bool started = !folder && (bytes->codec == NULL || bytes->codec->start(bytes));
  if (started) return true;
  bytes->codec = NULL;
  nxd_bytes_close(bytes);
  return nxr_fault_set(fault, "out of memory for %s", path);
}

static long read_plain(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault) {
  if (bytes->at == bytes->n && !nxd_bytes_fill(bytes)) {
    if (!ferror(bytes->file)) return 0;
    nxr_fault_set(fault, "cannot read %s: %s", bytes->path, strerror(errno));
    return -1;
  }
  size_t n = bytes->n - bytes->at < room ? bytes->n - bytes->at : room;
  memcpy(to, bytes->room + bytes->at, n);
  bytes->at += n;
  return (long)n;
}

long nxd_bytes_read(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault) {
  return bytes->codec ? bytes->codec->read(bytes, to, room, fault) : read_plain(bytes, to, room, fault);
}

bool nxd_bytes_skip(nxd_bytes *bytes, uint64_t n, nxr_fault *fault) {
  uint8_t passed[1 << 14];
  if (bytes->codec == NULL && n > bytes->n && fseeko(bytes->file, (off_t)n, SEEK_SET) == 0) {
    bytes->at = bytes->n = 0, bytes->n_used = n;
    return true;
  }
  while (n > 0) {
    long n_read = nxd_bytes_read(bytes, passed, n < sizeof passed ? (size_t)n : sizeof passed, fault);
    if (n_read < 0) return false;
    if (n_read == 0) return nxr_fault_set(fault, "%s is shorter than it was", bytes->path);
    n -= (uint64_t)n_read;
  }
  return true;
}

void nxd_bytes_close(nxd_bytes *bytes) {
  if (bytes->codec) bytes->codec->stop(bytes);
  if (bytes->file && bytes->file != stdin) fclose(bytes->file);
  bytes->file = NULL, bytes->codec = NULL;
}
