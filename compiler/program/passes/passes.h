/* SPDX-License-Identifier: Apache-2.0 */
/* The passes between the model and the plan, in the order in which program.c runs them. Each rewrites the
 * graph in place and leaves it consistent (nxc_graph_check). */
#ifndef NXC_PASSES_H
#define NXC_PASSES_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

/* Leaves out of the backward program what nothing reads: gradients of what only frozen parameters made. */
void nxc_dead_code(nxc_graph *graph);

/* Values of the forward program that are to be computed again are cloned into the backward program, right
 * before their first reader there, back to the nearest value that is kept. */
void nxc_recompute(nxc_graph *graph, const nxc_training *training);
/* Whether recompute.modules may name it. */
bool nxc_recompute_knows(const char *module);

/* Attention over a ring becomes rounds of attention over one rank's keys, and exchanges between them. */
void nxc_ring(nxc_graph *graph);

/* Makes what all stages sum in the step, n_squares entries in the table of squared norms, and clears it where
 * the graph does not write it. */
void nxc_step_begin(nxc_graph *graph, const nxc_training *training, int64_t n_squares);

/* Makes the table of parameter groups, which all graphs share: the step of each has the numbers of all
 * groups, because one of a stage's chunks makes them for all. Returns a pattern of optimizer.groups that no
 * tensor's name matches, or NULL. */
const char *nxc_parameter_groups_build(nxc_graph *const *graphs, uint32_t n_graphs,
                                       const nxc_training *training);
/* Index of the parameter's group in it. */
uint32_t nxc_parameter_group_of(nxc_graph *graph, const nxc_training *training, nxc_id parameter);

/* Cuts parameters, gradients and optimizer state into ranges: by the ranks that reduce them and the group
 * that they are updated with, or by being frozen; also by layer, or by the size of buckets, where data
 * parallelism works on one part while the rest computes. */
void nxc_ranges_build(nxc_graph *graph, const nxc_training *training);
/* Makes what an update keeps of each matrix of a range in another shape (factors.c). */
void nxc_factors_begin(nxc_graph *graph, const nxc_training *training);
/* Makes a value of a parameter's (or its gradient's) shape a view of its range's value `base`. */
void nxc_range_view(nxc_graph *graph, nxc_id parameter, nxc_id value, nxc_id base);

/* Gathers divided parameters in the passes, each range ahead of its first reader: right before it, or, where
 * gathers overlap, before the first reader of the range before it, so that at most two ranges of a class are
 * there at once; or, what stays when it is gathered and what is the first, when the program begins, in the
 * order of the readers. */
void nxc_gathers_build(nxc_graph *graph, const nxc_training *training);

/* Reduces gradients behind the backward pass's operators: divided ones in every pass, whole ones in the last,
 * where reductions overlap. The ranges' buffers are freed when the next range of the class is complete. */
void nxc_reductions_build(nxc_graph *graph, const nxc_training *training);
/* Sums that are the same whoever has which micro-batch: makes what the passes are summed in, of a range; adds
 * what a backward pass wrote; and sums the squares of x, a whole range or its shard. */
void nxc_pairs_make(nxc_graph *graph, nxc_range_node *range);
void nxc_pairs_add(nxc_graph *graph, nxc_id range);
/* Of a number that every forward pass writes anew: its sum over the passes; x itself where passes add to
 * it. */
nxc_id nxc_pairs_of_passes(nxc_graph *graph, nxc_id x);
void nxc_pairs_squares(nxc_graph *graph, const nxc_range_node *range, nxc_id x, nxc_id sum, bool accumulate);
/* Reduces in the step what no pass has reduced. */
void nxc_reduce_in_step(nxc_graph *graph, const nxc_training *training, const nxc_range_node *range);

/* Compressed reductions (1-bit Adam), of the ranges that its rule updates on several ranks: begin makes what
 * they remember; a range's gradient is then that of the rank alone, and its update reduces the momentum. */
void nxc_compression_begin(nxc_graph *graph, const nxc_training *training);
bool nxc_is_compressed(const nxc_range_node *range);
/* A vector of the range's whole gradient, or of a part of it, as the rank's own. */
nxc_id nxc_compression_gradient(nxc_graph *graph, const nxc_range_node *range, nxc_id gradient);
/* What an update reads and writes. */
typedef struct nxc_compressed_update {
  nxc_id param, copy, scale; /* copy: 0: none */
  nxc_group_numbers numbers;
  const nxc_update *update;
} nxc_compressed_update;
void nxc_compression_update(nxc_graph *graph, const nxc_range_node *range, const nxc_compressed_update *u);

/* What is logged of a step (nxc_measures). Begin makes the sums; what adds to the zeros of gradients is
 * called for each whole gradient; build makes the sums whole, in the step. */
void nxc_measures_begin(nxc_graph *graph, const nxc_training *training);
void nxc_measure_gradient(nxc_graph *graph, nxc_id gradient, nxc_rank_number weight);
void nxc_measures_build(nxc_graph *graph, const nxc_training *training);
/* Elements that are counted as zeros, and are no parameter's. */
int64_t nxc_measures_gaps(const nxc_pipeline *pipeline);

/* Sums of the squares of gradients; once they are there, makes their norm, and returns what gradients are
 * multiplied with in the update. */
void nxc_norm_squares(nxc_graph *graph, const nxc_training *training);
nxc_id nxc_norm_build(nxc_graph *graph, const nxc_training *training);
/* One f64 of the step. */
nxc_id nxc_step_scalar(nxc_graph *graph, const char *name);
/* Fills the step program: reduction, norm, clipping, update, gathering. */
void nxc_step_build(nxc_graph *graph, const nxc_training *training);

/* Cuts what gives gradients of weights, and nothing else, off the backward program, where the schedule has
 * it run later. */
void nxc_cut_backward(nxc_graph *graph);

/* Lets an operator write over an input that nothing reads afterwards, where its rule allows it. */
void nxc_in_place(nxc_graph *graph);

/* Puts each collective's wait right before what needs it: a reader of its result, a writer of its input, or
 * the end of the program. Waits that stand there stay. What the backward pass of the last micro-batch starts
 * on gradients goes on until the step needs them. */
void nxc_waits(nxc_graph *graph);

/* Fills the evaluation program, where there is one (nxc_training.evaluates). */
void nxc_evaluate_build(nxc_graph *graph, const nxc_training *training);

/* Gives every value its arena and offset: two events (written first, used last) per value, best fit by
 * size. */
void nxc_memory_plan(nxc_graph *graph);

#endif
