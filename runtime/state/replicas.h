/* SPDX-License-Identifier: Apache-2.0 */
/* Whether ranks that hold the same weights hold the same bits.
 *
 * Each piece that a rank has is hashed as it lies in memory. Ranks that hold the same box of the same tensor
 * have one place in a table, to which the first of them brings its hash, and with which the others compare
 * theirs. */
#ifndef NXR_REPLICAS_H
#define NXR_REPLICAS_H

#include "runtime/state/pieces.h"
#include "runtime/world/world.h"

typedef struct nxr_replicas {
  uint32_t *places; /* [pieces], each in the table; NX_NONE: it is not compared */
  uint32_t *firsts; /* [pieces]: the lowest rank that holds the same */
  uint64_t *hashes; /* [places], twice */
  uint32_t n_places;
  void *row;
} nxr_replicas;

bool nxr_replicas_open(nxr_replicas *replicas, const nxr_pieces *pieces, nxr_fault *fault);
void nxr_replicas_close(nxr_replicas *replicas);
/* On all ranks, between two steps. A rank whose weights are others than those of the first that holds them
 * has a fault that names the tensor. */
bool nxr_replicas_compare(nxr_replicas *replicas, const nxr_pieces *pieces, nxr_world *world, uint64_t step,
                          nxr_fault *fault);

#endif
