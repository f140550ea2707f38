/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/file.h"

#include "schema/signed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL, and a fault, where it cannot be a plan. */
static void *read_file(const char *path, uint64_t *n_bytes, nxr_fault *fault) {
  struct stat about = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return nxr_fault_set(fault, "%s: %s", path, strerror(errno)), NULL;
  bool fits =
      fstat(file, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_size <= NX_PLAN_MAX_BYTES;
  *n_bytes = fits ? (uint64_t)about.st_size : 0;
  void *bytes = NULL;
  if (*n_bytes == 0)
    nxr_fault_set(
        fault, "%s is not a plan (not a file, empty, or too large): nxcfg plan FILE -o PLAN makes one", path);
  else if (posix_memalign(&bytes, NX_PLAN_ALIGNMENT, *n_bytes) != 0)
    nxr_fault_set(fault, "out of memory for the plan %s", path);
  uint64_t n_read = 0;
  for (ssize_t n;
       bytes && n_read < *n_bytes && (n = read(file, (uint8_t *)bytes + n_read, *n_bytes - n_read)) > 0;)
    n_read += (uint64_t)n;
  *n_bytes = n_read; /* of a file that was cut meanwhile: fewer, and the check says so */
  close(file);
  return bytes;
}

static bool is_trusted(const char *path, const nx_trusted_keys *keys, const void *bytes, uint64_t n_bytes,
                       nxr_fault *fault) {
  nx_fault why = {""};
  return nx_plan_is_signed(path, bytes, n_bytes, keys, &why) ||
         nxr_fault_set(fault, "%.800s (--trust): nxcfg sign %s --key KEY signs it", why.text, path);
}

bool nxr_file_open(const char *path, const nx_trusted_keys *keys, nxr_file *file, nxr_fault *fault) {
  *file = (nxr_file){0};
  uint64_t n_bytes;
  file->bytes = read_file(path, &n_bytes, fault);
  if (file->bytes == NULL) return false;
  if (keys && !is_trusted(path, keys, file->bytes, n_bytes, fault)) return nxr_file_close(file), false;
  nx_fault why = {""};
  if (nx_plan_check(file->bytes, n_bytes, &file->plan, &why) && nx_plan_prove(&file->plan, &why)) return true;
  bool marked = n_bytes >= 8 && memcmp(file->bytes, NX_PLAN_MAGIC, 8) == 0;
  if (marked)
    nxr_fault_set(fault, "%s: at byte %llu: %s; nxcfg plan FILE -o %s makes it anew", path,
                  (unsigned long long)why.offset, why.text, path);
  else
    nxr_fault_set(fault, "%s is not a plan; if it is a configuration, nxcfg plan %s -o PLAN makes one", path,
                  path);
  nxr_file_close(file);
  return false;
}

void nxr_file_close(nxr_file *file) {
  free(file->bytes);
  *file = (nxr_file){0};
}
