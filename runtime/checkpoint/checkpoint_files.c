/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_files.h"

#include "runtime/checkpoint/checkpoint_write.h"

#include <assert.h>
#include <string.h>

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

typedef struct checksum {
  uint64_t words[4], n_bytes;
} checksum;

bool nxr_checkpoint_hash(nxr_world *world, const char *folder, nxr_checkpoint_file *files, uint32_t n_files,
                         nxr_fault *fault) {
  checksum sums[NXR_CHECKPOINT_FILES] = {0};
  bool good = true;
  assert(n_files <= NXR_CHECKPOINT_FILES);
  for (uint32_t i = 0; i < n_files; i++) {
    if (i % world->size != world->rank) continue;
    good = nxr_manifest_hash(folder, &files[i], fault) && good;
    memcpy(sums[i].words, files[i].sha256, sizeof files[i].sha256);
    sums[i].n_bytes = files[i].n_bytes;
  }
  if (!nxr_world_all(world, good)) return false;
  nxr_world_max(world, (uint64_t *)sums, n_files * sizeof *sums / sizeof(uint64_t));
  for (uint32_t i = 0; i < n_files; i++) {
    memcpy(files[i].sha256, sums[i].words, sizeof files[i].sha256);
    files[i].n_bytes = sums[i].n_bytes;
  }
  return true;
}
