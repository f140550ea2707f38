/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters: the values that are trained, and the pieces of logical tensors that each is made of.
 *
 * A logical tensor is what a checkpoint holds, named as Hugging Face names it, unfused and whole. A parameter
 * holds, row after row, boxes of logical tensors: fused queries, keys and values are three boxes, a
 * tensor-parallel shard is a smaller box. Where a box starts is a number per rank; everything else is the
 * same on all ranks. */
#ifndef NXC_PARAMETERS_H
#define NXC_PARAMETERS_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

typedef enum nxc_part {
  NXC_PART_EMBEDDING,
  NXC_PART_POSITIONS,
  NXC_PART_FINAL_NORM,
  NXC_PART_OUTPUT,
  NXC_PART_ATTENTION_NORM, /* from here on one per layer */
  NXC_PART_Q,
  NXC_PART_K,
  NXC_PART_V,
  NXC_PART_O,
  NXC_PART_FFN_NORM,
  NXC_PART_GATE,
  NXC_PART_UP,
  NXC_PART_DOWN,
  NXC_PART_ROUTER,
  NXC_PART_SHARED_GATE, /* of the experts that every token goes through */
  NXC_PART_SHARED_UP,
  NXC_PART_SHARED_DOWN,
  NXC_PART_EXPERT_GATE, /* from here on one per layer and expert */
  NXC_PART_EXPERT_UP,
  NXC_PART_EXPERT_DOWN,
  NXC_N_PARTS
} nxc_part;

/* The logical tensor's name in a checkpoint, and the key of its random numbers, which is the same on every
 * mesh. */
const char *nxc_piece_name(nxc_arena *arena, const nxc_training *training, const nxc_piece_node *piece,
                           int32_t layer);
uint32_t nxc_piece_key(const nxc_training *training, const nxc_piece_node *piece, int32_t layer);

/* A box of a logical matrix. `n_local` rows (columns of the down and output projections) start at `start`. */
typedef struct nxc_box {
  nxc_part part;
  int64_t n_local;
  nxc_rank_number start;
} nxc_box;

/* A matrix of boxes one below the other, divided on rows over `atoms`. columns: what all boxes have. */
nxc_id nxc_parameter_rows(nxc_graph *graph, const nxc_training *training, const char *name,
                          const nxc_box *boxes, uint32_t n_boxes, int64_t columns, uint32_t atoms);
/* A matrix of all rows and some columns, divided over `atoms`. */
nxc_id nxc_parameter_columns(nxc_graph *graph, const nxc_training *training, const char *name,
                             const nxc_box *box, int64_t rows, uint32_t atoms);
/* The matrices of this rank's experts, [experts, rows, columns], each as of the two functions above: boxes
 * one below the other, of rows divided over expert-tensor ranks; or one box, whose columns are. n_other:
 * columns, or rows. */
nxc_id nxc_parameter_experts(nxc_graph *graph, const nxc_training *training, const char *name,
                             const nxc_box *boxes, uint32_t n_boxes, int64_t n_other, bool divides_columns);
/* The bias of a matrix of boxes. */
nxc_id nxc_parameter_bias(nxc_graph *graph, const nxc_training *training, const char *name,
                          const nxc_box *boxes, uint32_t n_boxes, uint32_t atoms);
/* A norm's gain (1 at first) or bias (0 at first), on every rank. */
nxc_id nxc_parameter_norm(nxc_graph *graph, const nxc_training *training, const char *name, nxc_part part,
                          bool bias);

/* Several stages hold copies of the parameter: the first of them owns it. */
void nxc_parameter_share(nxc_graph *graph, nxc_id parameter, const nxc_stages *stages);
/* 1 on the one rank of those that hold copies, over these atoms and on these stages (NULL: any), that counts
 * and writes them. */
nxc_rank_number nxc_parameter_owner(nxc_graph *graph, uint32_t copies, const nxc_stages *stages);
/* The atoms over which a value of this placement is there in copies, for the purposes of a parameter. */
uint32_t nxc_parameter_copies(const nxc_graph *graph, nxc_id parameter, const nxc_placement *place);

#endif
