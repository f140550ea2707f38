/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a checkpoint: which there are, and their checksums. */
#ifndef NXR_CHECKPOINT_FILES_H
#define NXR_CHECKPOINT_FILES_H

#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/world/world.h"

#define NXR_MODEL_FILE "model.safetensors"
#define NXR_MODEL_INDEX "model.safetensors.index.json"
#define NXR_MASTER_FILE "master.safetensors"

/* What a checkpoint consists of. */
typedef struct nxr_listing {
  bool states;       /* what the optimizers keep, too */
  bool apart;        /* master weights have a file of their own, and model.safetensors is NXR_MODEL */
  uint32_t n_shards; /* files of the model's weights; 1: model.safetensors */
} nxr_listing;

/* Of one that is to be written; and of one that is there, as its manifest says. */
nxr_listing nxr_listing_of(const nxr_tensors *tensors);
nxr_listing nxr_listing_read(const json_t *manifest, bool states);
/* At most NXR_CHECKPOINT_FILES: the weights and adapters first, then what the optimizers keep. Returns how
 * many. */
uint32_t nxr_checkpoint_list(const nxr_tensors *tensors, const nxr_listing *listing, nxr_content contents[],
                             nxr_checkpoint_file files[]);
/* Where there are several files of the model's weights: which of them has which tensor. For one rank. */
bool nxr_checkpoint_write_index(const nxr_tensors *tensors, const char *folder, nxr_fault *fault);
/* Whether the files have the sums that the manifest says (rank 0 knows them): each rank reads a part of each
 * file. Meets all ranks; `why` is filled on those that know. */
bool nxr_checkpoint_verify(nxr_world *world, const char *folder, const nxr_checkpoint_file *files,
                           uint32_t n_files, nxr_fault *why);

#endif
