/* SPDX-License-Identifier: Apache-2.0 */
/* Token and position tables. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

#include <string.h>

/* Gathers rows: a rank that holds other rows contributes zeros. */
static const char *infer_embedding(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *tokens = nxc_in(graph, op, 0), *table = nxc_in(graph, op, 1);
  out[0] =
      nxc_shape_of(graph->types.activation, 3, (int64_t[]){tokens->dims[0], tokens->dims[1], table->dims[1]});
  out[0].placement = tokens->placement;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (table->placement.at[atom] == NXC_REPLICATED) continue;
    if (tokens->placement.at[atom] != NXC_REPLICATED || table->placement.at[atom] != NXC_SPLIT)
      return "the table is divided in a way that does not fit the tokens";
    out[0].placement.at[atom] = NXC_PARTIAL;
    out[0].dtype = graph->types.partial;
  }
  return NULL;
}

static void grad_embedding(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  nxc_grad_scatter(grad, &(nxc_op_request){.op = NX_OP_embedding_grad,
                                           .in = {op->args[0], dy},
                                           .out = {nxc_grad_parameter(grad, op->args[1])},
                                           .attrs = {op->attrs[NX_embedding_row_start],
                                                     op->attrs[NX_embedding_scale]}});
}

/* The operators touch as many rows as there are tokens, not the table. */
static uint64_t bytes_embedding(const nxc_graph *graph, const nxc_operator_node *op) {
  return nxc_shape_bytes(nxc_in(graph, op, 0)) + 2 * nxc_shape_bytes(nxc_out(graph, op, 0));
}

const nxc_rule nxc_rule_embedding = {
    .infer = infer_embedding, .grad = grad_embedding, .bytes = bytes_embedding};

/* Sums rows of dy into a table: where dy is divided, each rank has a summand; where it is not, the ranks hold
 * the same rows, or each its own, as the parameter is placed. */
static const char *infer_table_grad(const nxc_graph *graph, const nxc_operator_node *op, const nxc_shape *dy,
                                    nxc_shape *out) {
  out[0] = *nxc_out(graph, op, 0);
  if (out[0].dims[1] != nxc_shape_last(dy)) return "the table has another width";
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t how = dy->placement.at[atom];
    if (how == NXC_SPLIT + 2) return "rows of the gradient are cut";
    if (how != NXC_REPLICATED) out[0].placement.at[atom] = NXC_PARTIAL;
    if (how == NXC_REPLICATED && out[0].placement.at[atom] == NXC_PARTIAL)
      out[0].placement.at[atom] = NXC_REPLICATED;
  }
  return NULL;
}

static const char *infer_embedding_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  return infer_table_grad(graph, op, nxc_in(graph, op, 1), out);
}

static uint64_t bytes_embedding_grad(const nxc_graph *graph, const nxc_operator_node *op) {
  const nxc_shape *dy = nxc_in(graph, op, 1), *table = nxc_out(graph, op, 0);
  return nxc_shape_bytes(nxc_in(graph, op, 0)) + nxc_shape_bytes(dy) +
         2 * (uint64_t)nxc_shape_elements(dy) * nx_dtype_bits(table->dtype) / 8;
}

const nxc_rule nxc_rule_embedding_grad = {.infer = infer_embedding_grad, .bytes = bytes_embedding_grad};

static const char *infer_position_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *table = nxc_in(graph, op, 1);
  out[0] = *x;
  if (table->dims[1] != nxc_shape_last(x)) return "the table has another width";
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (table->placement.at[atom] != NXC_REPLICATED) return "the position table is divided";
  return nxc_whole(x);
}

static void grad_position_add(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[3]);
  if (dy == 0) return;
  nxc_grad_scatter(grad, &(nxc_op_request){.op = NX_OP_position_grad,
                                           .in = {dy, op->args[2]},
                                           .out = {nxc_grad_parameter(grad, op->args[1])},
                                           .attrs = {op->attrs[NX_position_add_seq_start]}});
  nxc_grad_give(grad, op->args[0], dy);
}

static uint64_t bytes_position_add(const nxc_graph *graph, const nxc_operator_node *op) {
  return nxc_shape_bytes(nxc_in(graph, op, 2)) + 3 * nxc_shape_bytes(nxc_in(graph, op, 0));
}

const nxc_rule nxc_rule_position_add = {
    .infer = infer_position_add, .grad = grad_position_add, .bytes = bytes_position_add};

static const char *infer_sinusoid_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_shape_last(&out[0]) % 2 ? "there is a sine without a cosine" : nxc_whole(&out[0]);
}

static void grad_sinusoid_add(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[2]);
  if (dy) nxc_grad_give(grad, op->args[0], dy);
}

const nxc_rule nxc_rule_sinusoid_add = {.infer = infer_sinusoid_add, .grad = grad_sinusoid_add};

static const char *infer_position_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  return infer_table_grad(graph, op, nxc_in(graph, op, 0), out);
}

static uint64_t bytes_position_grad(const nxc_graph *graph, const nxc_operator_node *op) {
  const nxc_shape *dy = nxc_in(graph, op, 0), *table = nxc_out(graph, op, 0);
  return nxc_shape_bytes(nxc_in(graph, op, 1)) + nxc_shape_bytes(dy) +
         2 * (uint64_t)nxc_shape_elements(dy) * nx_dtype_bits(table->dtype) / 8;
}

const nxc_rule nxc_rule_position_grad = {.infer = infer_position_grad, .bytes = bytes_position_grad};
