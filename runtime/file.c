/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map_file(const char *path, nxr_file *file, nxr_fault *fault) {
  struct stat about;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nxr_fault_set(fault, "%s: %s", path, strerror(errno));
  bool readable = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
  if (readable && (uint64_t)about.st_size <= NX_PLAN_MAX_BYTES) {
    file->n_bytes = (uint64_t)about.st_size;
    file->bytes = mmap(NULL, file->n_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, descriptor, 0);
  }
  close(descriptor);
  if (file->bytes == NULL || file->bytes == MAP_FAILED) {
    file->bytes = NULL;
    return nxr_fault_set(fault, "%s is not a plan (not a file, empty, or too large)", path);
  }
  return true;
}

bool nxr_file_open(const char *path, nxr_file *file, nxr_fault *fault) {
  *file = (nxr_file){0};
  if (!map_file(path, file, fault)) return false;
  nx_fault why = {""};
  if (nx_plan_check(file->bytes, file->n_bytes, &file->plan, &why) && nx_plan_prove(&file->plan, &why)) return true;
  nxr_fault_set(fault, "%s: at byte %llu: %s", path, (unsigned long long)why.offset, why.text);
  nxr_file_close(file);
  return false;
}

void nxr_file_close(nxr_file *file) {
  if (file->bytes) munmap(file->bytes, file->n_bytes);
  *file = (nxr_file){0};
}
