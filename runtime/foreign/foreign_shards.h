/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of a foreign checkpoint as they are gathered from its files, before they are joined. */
#ifndef NXR_FOREIGN_SHARDS_H
#define NXR_FOREIGN_SHARDS_H

#include "runtime/foreign/foreign.h"
#include "runtime/foreign/torch_file.h"
#include "runtime/files/joined.h"

typedef enum nxr_foreign_system { NXR_FOREIGN_MEGATRON, NXR_FOREIGN_NEOX } nxr_foreign_system;

/* A tensor, or a part of one: of all that have the same name, in this order. */
typedef struct nxr_shard {
  char *name; /* layers are counted through all stages */
  uint64_t order;
  uint32_t n_dims; /* 1: a vector, which is a chunk of one column */
  nxr_chunk chunk;
} nxr_shard;

/* A file stays open as long as its tensors are read. */
typedef struct nxr_foreign_file {
  char path[NXR_FOREIGN_PATH];
  nxr_mapping mapping;
} nxr_foreign_file;

struct nxr_foreign {
  nxr_foreign_system system;
  bool placed; /* chunks say where they stand; else shards are joined as names.def says */
  nxr_foreign_file **files;
  size_t n_files;
  nxr_shard *shards; /* by name and order, once they are all there */
  size_t n_shards;
  void **owned; /* what was allocated for joined tensors */
  size_t n_owned;
};

/* NULL: the fault says why. */
const nxr_foreign_file *nxr_foreign_map(nxr_foreign *foreign, const char *folder, const char *name,
                                        nxr_fault *fault);
/* Of one or two dimensions. `name` is copied. */
bool nxr_foreign_add(nxr_foreign *foreign, const char *name, uint64_t order, const nxr_torch_tensor *tensor,
                     nxr_fault *fault);
/* Zeros, freed with `foreign`; NULL without memory. */
void *nxr_foreign_take(nxr_foreign *foreign, size_t n, size_t n_each);

/* A box of a tensor of which a run of elements is cut into boxes (foreign_runs.c): where it stands in the
 * whole one; `of` is the caller's. */
typedef bool nxr_box(void *of, const nxr_torch_tensor *box, const uint64_t at[NXR_TENSOR_DIMS]);

/* A piece of a tensor of `n_dims` dimensions that is cut into equal parts, of which runs of elements are
 * kept: its own dimensions count the parts, and the last one elements of a part, from at[n_dims] on. False
 * where it is none of such a tensor, or where a box was refused. */
bool nxr_foreign_boxes(const nxr_torch_tensor *piece, const uint64_t *at, const uint64_t *dims,
                       const uint64_t *parts, uint32_t n_dims, nxr_box *take, void *of);

/* What gathers the shards of a folder: of files of ranks, and of pieces that .metadata names. `state` is
 * nxr_foreign_open's, which pieces alone may have. */
bool nxr_gather_megatron(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault);
bool nxr_gather_neox(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault);
bool nxr_gather_pieces(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault);

#endif
