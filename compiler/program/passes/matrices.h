/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that an update rule works on as wholes, made of pieces (step.c).
 *
 * Pieces of one part are one tensor however the family's files interleave them. Those of several parts are
 * one where optimizer.joined says so: systems keep them in one parameter, and a rule for matrices finds
 * another update for it than for each of them. The order of a matrix's rows means nothing to such a rule, so
 * that tensor-parallel ranks may each have some rows of each part. */
#ifndef NXC_PASSES_MATRICES_H
#define NXC_PASSES_MATRICES_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

/* The tensor that begins with piece i, as one piece; n: of how many it is made. */
nxc_piece_node nxc_matrix_at(const nxc_graph *graph, const nxc_training *training, size_t i, size_t *n);
/* Whether the piece is the first of those that have its place in its value: of several experts' in one slot
 * the first stands for all. */
bool nxc_matrix_is_first(const nxc_graph *graph, size_t piece);
/* In how many parts a rule for matrices works on this one, each by itself: so many one below the other, and
 * each of so many beside one another. */
int64_t nxc_matrix_rows_apart(const nxc_training *training, const nxc_piece_node *matrix);
int64_t nxc_matrix_columns_apart(const nxc_training *training, const nxc_piece_node *matrix);
/* What the update of this matrix is multiplied by so that its scale follows the form that
 * optimizer.stacked_scale gives it. */
double nxc_matrix_factor(const nxc_training *training, const nxc_piece_node *matrix);

#endif
