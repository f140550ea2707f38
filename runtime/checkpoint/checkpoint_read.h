/* SPDX-License-Identifier: Apache-2.0 */
/* Where tensors come from: a safetensors file, a folder with one or with an index of several, or a checkpoint
 * of another system (runtime/foreign).
 *
 * A source is opened by each rank for itself; then it is matched with the plan's logical tensors, and each
 * rank reads the boxes that it holds. */
#ifndef NXR_CHECKPOINT_READ_H
#define NXR_CHECKPOINT_READ_H

#include "runtime/checkpoint/checkpoint_tensors.h"
#include "runtime/files/stored.h"
#include "runtime/foreign/foreign.h"

typedef struct nxr_source {
  const char *path; /* the caller's */
  nxr_safetensors *files;
  uint32_t n_files;
  nxr_foreign *foreign;           /* or this; its tensors are there after nxr_source_join */
  const nxr_safetensor **tensors; /* of all files, by name */
  uint64_t n_tensors;
  nx_strictness strictness; /* of nxr_source_match; the caller's */
} nxr_source;

/* Of another system's checkpoint `state` is nxr_foreign_open's. */
bool nxr_source_open(const char *path, const char *state, nxr_source *source, nxr_fault *fault);
void nxr_source_close(nxr_source *source);
/* Of another system's checkpoint: puts its shards together to what the plan's tensors of this content are. */
bool nxr_source_join(nxr_source *source, const nxr_tensors *tensors, nxr_content content, nxr_fault *fault);
const nxr_safetensor *nxr_source_find(const nxr_source *source, const char *name);

/* Where a tensor's content is read from. */
typedef struct nxr_found {
  const nxr_safetensor *tensor; /* NULL: the content is not kept */
  bool quantized;               /* it is codes or scales already, of: */
  nxr_stored stored;
  float greatest; /* where scales are made here: the greatest magnitude in the tensor */
} nxr_found;

/* runtime/checkpoint/checkpoint_match.c: finds every tensor that has the content, of its shape;
 * found[tensors] gets them. What the plan keeps quantized may be so in the file
 * (runtime/files/stored.h). Hugging Face's habits are known: names may lack the model's prefix, buffers
 * are passed over, and the output matrix of tied embeddings may be there if it equals them. Anything else in
 * the source is a fault, which names what is missing, of another shape, or too much; as far as `strictness`
 * wants it. What is missing then has no tensor in `found`. */
bool nxr_source_match(const nxr_source *source, const nxr_tensors *tensors, nxr_content content,
                      nxr_found *found, nxr_fault *fault);

/* Reads this rank's boxes from what was found: weights into parameters and master copies. */
bool nxr_tensors_read(const nxr_tensors *tensors, nxr_content content, const nxr_found *found,
                      nxr_fault *fault);

#endif
