/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_trust.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "schema/signed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Of a file, the one that it is in. */
static bool folder_of(const char *path, char folder[NXR_PATH_BYTES]) {
  struct stat about;
  if (snprintf(folder, NXR_PATH_BYTES, "%s", path) >= NXR_PATH_BYTES) return false;
  if (stat(path, &about) != 0 || S_ISDIR(about.st_mode)) return true;
  char *slash = strrchr(folder, '/');
  if (slash == NULL) strcpy(folder, ".");
  else slash[slash == folder ? 1 : 0] = '\0';
  return true;
}

bool nxr_checkpoint_trusts(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault) {
  const nxr_world *world = checkpoint->world;
  char folder[NXR_PATH_BYTES];
  nx_fault why = {""};
  if (checkpoint->trusted == NULL) return true;
  bool good = folder_of(path, folder) && nx_folder_is_signed(folder, checkpoint->trusted, world->rank,
                                                             world->size, nxr_world_beat, &why);
  if (!good)
    nxr_fault_set(fault, "%.800s (--trust-weights): nxcfg sign %s --key KEY signs it as it is", why.text,
                  folder);
  return nxr_world_all(checkpoint->world, good);
}
