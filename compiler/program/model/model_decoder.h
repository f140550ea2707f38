/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder-only transformer, as one rank runs it, in local shapes.
 *
 *   x = embedding (+ positions)                                  rows of the table are divided over tensor
 *   per layer:  x = x + W_o attention(W_qkv norm(x)),  x = x + W_down act(W_up norm(x))
 *   loss = cross-entropy of W_out norm(x)                         columns of the logits are divided over
 * tensor
 *
 * Tensor parallelism stands where Megatron writes it: products that divide columns read whole activations
 * (gathered along the sequence where that is divided), products that divide rows give partial sums, which are
 * summed over tensor (and divided along the sequence) before bias, dropout and residual. */
#ifndef NXC_MODEL_DECODER_H
#define NXC_MODEL_DECODER_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

/* Declares inputs and parameters and fills the forward program of the graph's layers; before the first
 * chunk's layers comes the embedding, after the last one's the loss. */
void nxc_model_decoder(nxc_graph *graph, const nxc_training *training);

#endif
