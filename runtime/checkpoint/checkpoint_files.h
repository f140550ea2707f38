/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a checkpoint: which there are, and their checksums. */
#ifndef NXR_CHECKPOINT_FILES_H
#define NXR_CHECKPOINT_FILES_H

#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/world/world.h"

/* At most NXR_CHECKPOINT_FILES: the weights and adapters first, then what the optimizers keep (`states`).
 * Returns how many. */
uint32_t nxr_checkpoint_list(const nxr_tensors *tensors, bool states, nxr_content contents[],
                             nxr_checkpoint_file files[]);
/* Whether the files have the sums that the manifest says (rank 0 knows them): each rank reads a part of each file.
 * Meets all ranks; `why` is filled on those that know. */
bool nxr_checkpoint_verify(nxr_world *world, const char *folder, const nxr_checkpoint_file *files, uint32_t n_files,
                           nxr_fault *why);

#endif
