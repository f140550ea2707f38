/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of the model stand in the tensors of its checkpoints, as its family lays them out
 * (compiler/settings/family.h). */
#ifndef NXC_MODEL_TENSORS_H
#define NXC_MODEL_TENSORS_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

/* The logical tensor's name in a checkpoint, and the key of its random numbers, which is the same on every
 * mesh. */
const char *nxc_piece_name(nxc_arena *arena, const nxc_training *training, const nxc_piece_node *piece,
                           int32_t layer);
uint32_t nxc_piece_key(const nxc_training *training, const nxc_piece_node *piece, int32_t layer);

/* Rows of the tensor that holds the part (entries of its bias), in the layer that the graph is at. */
int64_t nxc_tensor_rows(const nxc_graph *graph, const nxc_training *training, nxc_part part);

/* Whether rows of the part stand in turn with those of others. */
bool nxc_tensor_takes_turns(const nxc_training *training, nxc_part part);

/* Some rows of a part, and where they begin in the tensor. */
typedef struct nxc_tensor_cut {
  int64_t rows;
  nxc_rank_number start;
} nxc_tensor_cut;

/* The n_local rows of a part from `start` on, cut where they do not follow one another in the tensor. */
size_t nxc_tensor_cuts(nxc_graph *graph, const nxc_training *training, nxc_part part, int64_t n_local,
                       const nxc_rank_number *start, nxc_tensor_cut **cuts);

#endif
