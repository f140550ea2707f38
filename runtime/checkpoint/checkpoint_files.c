/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_files.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_write.h"

#include <stdio.h>

uint32_t nxr_checkpoint_list(const nxr_tensors *tensors, bool states, nxr_content contents[],
                             nxr_checkpoint_file files[]) {
  uint32_t n = 0;
  if (nxr_manifest_has_base(tensors->pieces->plan)) {
    contents[n] = NXR_WEIGHTS;
    files[n++] = (nxr_checkpoint_file){.name = "model.safetensors"};
  }
  if (tensors->adapted) {
    contents[n] = NXR_ADAPTERS;
    files[n++] = (nxr_checkpoint_file){.name = NXR_ADAPTER_FILE};
  }
  for (uint32_t i = 0; states && i < tensors->n_states; i++) {
    contents[n] = (nxr_content)(NXR_STATES + i);
    files[n++] = (nxr_checkpoint_file){.name = tensors->states[i]->file};
  }
  return n;
}

bool nxr_checkpoint_verify(nxr_world *world, const char *folder, const nxr_checkpoint_file *files, uint32_t n_files,
                           nxr_fault *why) {
  nxr_sum sums[NXR_CHECKPOINT_FILES] = {0};
  bool good = true;
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    uint64_t n_bytes;
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    good = nxr_sum_file(path, world->rank, world->size, &sums[i], &n_bytes, why) && good;
  }
  if (!nxr_world_all(world, good)) return false;
  nxr_sum_combine(world, sums, n_files);
  for (uint32_t i = 0; world->rank == 0 && i < n_files; i++)
    if (!nxr_sum_equal(&sums[i], &files[i].sum))
      good = nxr_fault_set(why, "the checksum of %s is wrong", files[i].name);
  return nxr_world_all(world, good);
}
