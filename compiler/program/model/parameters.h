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

/* A box of a logical matrix. `n_local` rows (columns of the down and output projections) start at `start`. */
typedef struct nxc_box {
  nxc_part part;
  int64_t n_local;
  nxc_rank_number start;
} nxc_box;

/* A value that is a parameter, named after the layer whose weights it is of; it has no pieces yet. */
nxc_id nxc_parameter_new(nxc_graph *graph, const nxc_training *training, const char *name,
                         const nxc_shape *shape);
/* Its next piece, with what all pieces of a parameter share; its copies are owned by the first of the ranks
 * that hold them. */
nxc_piece_node *nxc_piece_new(nxc_graph *graph, const nxc_training *training, nxc_id parameter, nxc_part part,
                              bool bias);
/* The parameter of this name in the layer whose weights are being made; 0: there is none. */
nxc_id nxc_parameter_find(const nxc_graph *graph, const char *name);
/* A matrix of boxes one below the other, divided on rows over `atoms`. columns: what all boxes have. */
nxc_id nxc_parameter_rows(nxc_graph *graph, const nxc_training *training, const char *name,
                          const nxc_box *boxes, uint32_t n_boxes, int64_t columns, uint32_t atoms);
/* A matrix of all rows and some columns, divided over `atoms`. */
nxc_id nxc_parameter_columns(nxc_graph *graph, const nxc_training *training, const char *name,
                             const nxc_box *box, int64_t rows, uint32_t atoms);
/* What of an expert's matrix is divided over expert-tensor ranks. */
typedef enum nxc_expert_cut { NXC_CUT_ROWS, NXC_CUT_COLUMNS, NXC_CUT_NOTHING } nxc_expert_cut;
/* The matrices of this rank's experts, [experts, rows, columns], each as of the two functions above: boxes
 * one below the other; or, where columns are divided, one box of columns. n_other: columns, or rows. */
nxc_id nxc_parameter_experts(nxc_graph *graph, const nxc_training *training, const char *name,
                             const nxc_box *boxes, uint32_t n_boxes, int64_t n_other, nxc_expert_cut cut);
/* The bias of a matrix of boxes. */
nxc_id nxc_parameter_bias(nxc_graph *graph, const nxc_training *training, const char *name,
                          const nxc_box *boxes, uint32_t n_boxes, uint32_t atoms);
/* A norm's gain, which is 1 at first or, where it is zero-centred, 0; or its bias. On every rank. */
typedef enum nxc_norm_vector { NXC_NORM_ONES, NXC_NORM_ZEROS, NXC_NORM_BIAS } nxc_norm_vector;
nxc_id nxc_parameter_norm(nxc_graph *graph, const nxc_training *training, const char *name, nxc_part part,
                          nxc_norm_vector kind, int64_t width);
/* Biases of this rank's experts, one expert's behind the other's; `divided`: over expert-tensor ranks. */
nxc_id nxc_parameter_expert_bias(nxc_graph *graph, const nxc_training *training, const char *name,
                                 const nxc_box *boxes, uint32_t n_boxes, bool divided);
/* The sinks of this rank's query heads, 0 at first. */
/* The biases of distances, one table of the model, which all stages have; made where it is not there yet. */
nxc_id nxc_parameter_relative(nxc_graph *graph, const nxc_training *training, int64_t n_buckets,
                              int64_t n_heads);
nxc_id nxc_parameter_sinks(nxc_graph *graph, const nxc_training *training, int64_t n_local);
/* What is added to the scores by which a router chooses, of each expert: fp32 whatever the others are, 0 at
 * first. */
nxc_id nxc_parameter_correction(nxc_graph *graph, const nxc_training *training, int64_t n_experts);

/* compiler/program/model/adapter_parameters.c: an adapter's first matrix, [rank, columns]: `columns` says
 * which the rank has, divided over `atoms`. All parts of the adapter have one. */
nxc_id nxc_parameter_adapter_a(nxc_graph *graph, const nxc_training *training, const nxc_box *columns,
                               uint32_t atoms);
/* Its second, [rows, rank]: beside boxes, as nxc_parameter_rows has them. */
nxc_id nxc_parameter_adapter_b(nxc_graph *graph, const nxc_training *training, const nxc_box *boxes,
                               uint32_t n_boxes, uint32_t atoms);
/* Either of them, of each of this rank's experts. */
nxc_id nxc_parameter_expert_adapter(nxc_graph *graph, const nxc_training *training, const nxc_box *box,
                                    int64_t n_other, nxc_adapter_side side, nxc_expert_cut cut);
/* The one that all experts of a layer have in common, whole on every rank. */
nxc_id nxc_parameter_shared_adapter(nxc_graph *graph, const nxc_training *training, nxc_part part,
                                    nxc_adapter_side side);

/* What the training remembers of the module of a part, `length` numbers that are 0 at first: the same on all
 * ranks of a stage, and in checkpoints. */
nxc_id nxc_parameter_memory(nxc_graph *graph, const nxc_training *training, const char *name, nxc_part part,
                            int64_t length);

/* What it remembers of a range, `length` numbers on each rank that are 0 at first: ranks over `copies` have
 * the same, others their own. */
nxc_id nxc_parameter_of_range(nxc_graph *graph, const nxc_training *training, const char *name,
                              uint32_t copies, int64_t length);

/* compiler/program/model/quantized.c: what a product reads of a matrix: itself, or, where it is kept
 * quantized beside its adapter, what it stands for. */
nxc_id nxc_parameter_read(nxc_graph *graph, const nxc_training *training, nxc_id matrix);

/* Several stages hold copies of the parameter: the first of them owns it. */
void nxc_parameter_share(nxc_graph *graph, nxc_id parameter, const nxc_stages *stages);
/* 1 on the one rank of those that hold copies, over these atoms and on these stages (NULL: any), that counts
 * and writes them. */
nxc_rank_number nxc_parameter_owner(nxc_graph *graph, uint32_t copies, const nxc_stages *stages);
/* The atoms over which a value of this placement is there in copies, for the purposes of a parameter. */
uint32_t nxc_parameter_copies(const nxc_graph *graph, nxc_id parameter, const nxc_placement *placement);

#endif
