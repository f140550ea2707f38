/* SPDX-License-Identifier: Apache-2.0 */
/* The passes between the model and the plan, in the order in which program.c runs them. Each rewrites the
 * graph in place and leaves it consistent (nxc_graph_check). */
#ifndef NXC_PASSES_H
#define NXC_PASSES_H

#include "compiler/program/training.h"

/* Values of the forward program that are to be computed again are cloned into the backward program, right
 * before their first reader there, back to the nearest value that is kept. */
void nxc_recompute(nxc_graph *graph, const nxc_training *training);

/* Makes what all stages sum in the step, n_squares entries in the table of squared norms, and clears it where
 * the graph does not write it. */
void nxc_step_begin(nxc_graph *graph, const nxc_training *training, int64_t n_squares);

/* Cuts parameters, gradients and optimizer state into ranges, and fills the step program: reduction, norm,
 * clipping, update, gathering. */
void nxc_step_build(nxc_graph *graph, const nxc_training *training);

/* Lets an operator write over an input that nothing reads afterwards, where its rule allows it. */
void nxc_in_place(nxc_graph *graph);

/* Puts each collective's wait right before what needs it: a reader of its result, a writer of its input, or
 * the end of the program. */
void nxc_waits(nxc_graph *graph);

/* Gives every value its arena and offset: two events (written first, used last) per value, best fit by size.
 */
void nxc_memory_plan(nxc_graph *graph);

#endif
