/* SPDX-License-Identifier: Apache-2.0 */
/* The logical tensors of a plan: what its pieces, on all ranks together, are boxes of.
 *
 * Each has one name, one shape and one file position per checkpoint file, the same on every rank. A file
 * holds one *content* of all tensors that have it. */
#ifndef NXR_CHECKPOINT_TENSORS_H
#define NXR_CHECKPOINT_TENSORS_H

#include "runtime/files/fault.h"
#include "runtime/files/safetensors.h"
#include "runtime/state/shares.h"

/* NXR_WEIGHTS are those of the model, the master copy where there is one; NXR_MODEL the same as the model
 * computes with them, which is only written; NXR_ADAPTERS what is trained beside it where it is frozen. Of
 * gradients and states a plan with adapters has those of the adapters' tensors. From NXR_STATES on, what the
 * optimizers keep, by number in nxr_tensors. */
typedef enum nxr_content { NXR_WEIGHTS, NXR_ADAPTERS, NXR_GRADIENTS, NXR_MODEL, NXR_STATES } nxr_content;
enum { NXR_MAX_STATE_FILES = 8, NXR_MAX_SHARDS = 512 };

typedef struct nxr_tensor {
  const char *name;
  uint32_t piece; /* one of its pieces */
} nxr_tensor;

typedef struct nxr_tensors {
  const nxr_pieces *pieces;
  nxr_tensor *items; /* by name */
  uint32_t n;
  uint32_t *of_piece; /* [pieces of the plan] */
  uint8_t *shares;    /* [pieces of the plan], see nxr_tensors_share */
  uint32_t *shard_of; /* [n]: the file of the model's weights that has it, from 1 */
  uint32_t n_shards;  /* of those files */
  bool adapted;       /* the plan has adapters */
  const nx_state_row *states[NXR_MAX_STATE_FILES]; /* of all parameter groups, each name once */
  uint32_t n_states;
} nxr_tensors;

bool nxr_tensors_open(const nxr_pieces *pieces, nxr_tensors *tensors, nxr_fault *fault);
void nxr_tensors_close(nxr_tensors *tensors);
/* Finds which rank writes what, and into which of the files of the model's weights, of the plan's file_bytes
 * at most each; before it nobody writes anything. */
bool nxr_tensors_share(nxr_tensors *tensors, nxr_fault *fault);
/* Whether this rank writes its spans of the piece into the file of a content, if that has it. */
bool nxr_tensors_writes(const nxr_tensors *tensors, nxr_content content, uint32_t piece);
/* Bytes of the tensor in the file of a content; 0: it is in none. */
uint64_t nxr_tensors_bytes(const nxr_tensors *tensors, nxr_content content, uint32_t tensor);
/* Whether that file has the tensor: of the model's weights file `shard`, 0: there is one alone. */
bool nxr_tensors_in_shard(const nxr_tensors *tensors, uint32_t tensor, uint32_t shard);
/* What a checkpoint has as the model's weights: NXR_MODEL where the plan wants it, and there are master
 * copies. */
nxr_content nxr_tensors_saved(const nxr_tensors *tensors);

/* NX_NONE where the plan has none of that name. */
uint32_t nxr_tensors_find(const nxr_tensors *tensors, const char *name);
/* Weights are the master copy where there is one: so that training goes on exactly. NXR_N_KINDS of a piece
 * that has nothing of the content, such as a state that its rule does not keep. */
nxr_kind nxr_tensors_kind(const nxr_tensors *tensors, nxr_content content, uint32_t piece);
/* What the training remembers beside what optimizers keep: whatever is missing of it begins anew. */
bool nxr_tensors_is_memory(const nxr_tensors *tensors, nxr_content content);
bool nxr_content_is_weights(nxr_content content);
/* Name, dtype and shape, of what is quantized that of the matrix. */
void nxr_tensors_describe(const nxr_tensors *tensors, nxr_content content, uint32_t tensor,
                          nxr_safetensor *as);
/* The same as a file of ours has it: of what is quantized as many entries as the plan keeps. */
void nxr_tensors_describe_stored(const nxr_tensors *tensors, nxr_content content, uint32_t tensor,
                                 nxr_safetensor *as);

#endif
