/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool nxr_folder_sync(const char *path, nxr_fault *fault) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
  if (!good) nxr_fault_set(fault, "cannot sync the folder %s: %s", path, strerror(errno));
  if (folder >= 0) close(folder);
  return good;
}
