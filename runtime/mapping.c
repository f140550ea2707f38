/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool nxr_mapping_open(const char *path, nxr_mapping *mapping, nxr_fault *fault) {
  *mapping = (nxr_mapping){0};
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    nxr_fault_set(fault, "cannot open %s: %s", path, file < 0 ? strerror(errno) : "it is no file");
    if (file >= 0) close(file);
    return false;
  }
  uint64_t n_bytes = (uint64_t)status.st_size;
  void *bytes = n_bytes ? mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, file, 0) : NULL;
  int mapping_error = errno;
  close(file);
  if (bytes == MAP_FAILED) return nxr_fault_set(fault, "cannot map %s: %s", path, strerror(mapping_error));
  *mapping = (nxr_mapping){bytes, n_bytes};
  return true;
}

void nxr_mapping_close(nxr_mapping *mapping) {
  if (mapping->bytes) munmap((void *)(uintptr_t)mapping->bytes, mapping->n_bytes);
  *mapping = (nxr_mapping){0};
}
