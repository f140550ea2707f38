/* SPDX-License-Identifier: Apache-2.0 */
/* Context parallelism: a sequence divided over the ranks of the context axis.
 *
 * Every ring rank has a part of the sequence: a piece from its front and the piece as far from its back, so
 * that all have as many keys to read (zigzag). The Ulysses ranks of one part divide it in order; for
 * attention they exchange heads for sequence, after which each has some heads of the whole part, in order.
 * Attention over a ring is one operator with a group until the ring pass (passes.h) makes blocks and
 * exchanges of it.
 *
 * What attention and dropout need to know of a token is its place in the sequence, whatever its position
 * says, and where its document starts: inputs that the host fills. `places` has a row per ring rank, row t
 * for the part of the t-th rank before this one. */
#ifndef NXC_CONTEXT_H
#define NXC_CONTEXT_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

/* Tokens of a sequence on one rank. */
int64_t nxc_context_tokens(const nxc_training *training);
/* Makes the inputs that the layout and the documents need beside those of every model. */
void nxc_context_inputs(nxc_graph *graph, const nxc_training *training);
/* Heads [B,n,S,d] for attention: some of them, of the whole part. */
nxc_id nxc_context_gather(nxc_graph *graph, nxc_id heads, const char *name);
/* The features [B,S,n d] that attention made of such heads: all of them, of this rank's tokens. */
nxc_id nxc_context_scatter(nxc_graph *graph, nxc_id features, const char *name);
/* Number of the first head that attention has here, where the tensor-parallel rank has `heads` from `number`
 * on. */
void nxc_context_first_head(const nxc_graph *graph, nxc_rank_number *number, int64_t heads);
/* Number of a token in the part, where it is `number` on this rank. */
void nxc_context_first_token(const nxc_graph *graph, const nxc_training *training, nxc_rank_number *number);

#endif
