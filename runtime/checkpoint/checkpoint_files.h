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
/* Each by one rank, the results for all; meets all ranks. */
bool nxr_checkpoint_hash(nxr_world *world, const char *folder, nxr_checkpoint_file *files, uint32_t n_files,
                         nxr_fault *fault);

#endif
