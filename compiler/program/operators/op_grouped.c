/* SPDX-License-Identifier: Apache-2.0 */
/* Products of each expert's rows with its own matrix. Rows are divided by expert (dimension 0) or by where
 * their tokens come from (1), features by expert-tensor parallelism (2). */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/fp8.h"
#include "compiler/program/graph/grad.h"

static bool counts_fit(uint8_t rows, uint8_t counts) {
  return counts == (rows == NXC_SPLIT || rows == NXC_SPLIT + 1 ? rows : NXC_REPLICATED);
}

/* `inner`, `outer`: how matrices are placed that are cut where the product sums, or where it does not. */
static uint8_t product_place(uint8_t x, uint8_t w, uint8_t inner, uint8_t outer, const char **fault) {
  if (x == NXC_SPLIT && w == NXC_SPLIT) return NXC_SPLIT;
  if ((x == NXC_SPLIT + 1 || x == NXC_PARTIAL || x == NXC_REPLICATED) && w == NXC_REPLICATED) return x;
  if (x == NXC_REPLICATED && w == outer) return NXC_SPLIT + 2;
  if (x == NXC_SPLIT + 2 && w == inner) return NXC_PARTIAL;
  *fault = "rows and the experts' matrices are divided in ways that do not fit";
  return NXC_REPLICATED;
}

static const char *infer_grouped_matmul(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *counts = nxc_in(graph, op, 1), *w = nxc_in(graph, op, 2);
  bool trans_b = op->attrs[NX_grouped_matmul_trans_b].integer;
  const char *fault = nxc_shape_last(x) == w->dims[trans_b ? 2 : 1] ? NULL : "the inner sizes differ";
  if (counts->dims[2] != w->dims[0]) fault = "there are not as many matrices as experts";
  out[0] = nxc_shape_with_last(x, w->dims[trans_b ? 1 : 2]);
  out[0].dtype = graph->types.activation;
  uint8_t inner = trans_b ? NXC_SPLIT + 2 : NXC_SPLIT + 1, outer = trans_b ? NXC_SPLIT + 1 : NXC_SPLIT + 2;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    out[0].placement.at[atom] =
        product_place(x->placement.at[atom], w->placement.at[atom], inner, outer, &fault);
    if (!counts_fit(x->placement.at[atom], counts->placement.at[atom]))
      fault = "rows and their counts are divided differently";
  }
  if (nxc_atoms_placed(&out[0].placement, NXC_PARTIAL)) out[0].dtype = graph->types.partial;
  return fault;
}

/* y = x w^T, the form in which a model is built. */
static void grad_grouped_matmul(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id counts = op->args[1], y = op->args[3], dy = nxc_grad_of(grad, y);
  nx_attribute rows = op->attrs[NX_grouped_matmul_rows];
  if (dy == 0) return;
  const nxc_fp8_factors f = nxc_fp8_factors_of(graph, y, op->args[0], op->args[2], dy);
  nxc_grad_accumulate(grad,
                      &(nxc_op_request){.op = NX_OP_grouped_wgrad,
                                        .in = {f.dy_of_weight, f.x_of_weight, counts},
                                        .out = {nxc_grad_parameter(grad, f.weight)},
                                        .attrs = {[NX_grouped_wgrad_rows] = rows}});
  nxc_grad_give(grad, f.x,
                nxc_append(graph, &(nxc_op_request){.op = NX_OP_grouped_matmul,
                                                    .of = {f.x},
                                                    .in = {f.dy_of_x, counts, f.weight_of_x},
                                                    .attrs = {[NX_grouped_matmul_rows] = rows}}));
}

static uint8_t gradient_place(uint8_t dy, uint8_t x, const char **fault) {
  if (dy == NXC_SPLIT && x == NXC_SPLIT) return NXC_SPLIT;
  if (dy == NXC_SPLIT + 1 && x == NXC_SPLIT + 1) return NXC_PARTIAL;
  bool summands = (dy == NXC_REPLICATED && x == NXC_PARTIAL) || (dy == NXC_PARTIAL && x == NXC_REPLICATED);
  if (summands) return NXC_PARTIAL;
  if (dy == NXC_SPLIT + 2 && x == NXC_REPLICATED) return NXC_SPLIT + 1;
  if (dy == NXC_REPLICATED && x == NXC_SPLIT + 2) return NXC_SPLIT + 2;
  if (dy != NXC_REPLICATED || x != NXC_REPLICATED)
    *fault = "rows and their gradients are divided differently";
  return NXC_REPLICATED;
}

static const char *infer_grouped_wgrad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0), *x = nxc_in(graph, op, 1), *counts = nxc_in(graph, op, 2);
  const char *fault = NULL;
  out[0] =
      nxc_shape_of(graph->types.grad, 3, (int64_t[]){counts->dims[2], nxc_shape_last(dy), nxc_shape_last(x)});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    out[0].placement.at[atom] = gradient_place(dy->placement.at[atom], x->placement.at[atom], &fault);
    if (!counts_fit(x->placement.at[atom], counts->placement.at[atom]))
      fault = "rows and their counts are divided differently";
  }
  return fault;
}

/* Of a balanced load. */
static uint64_t flops(const nxc_shape *rows, const nxc_shape *other, int64_t n_rows) {
  return 2 * (uint64_t)n_rows * (uint64_t)nxc_shape_last(rows) * (uint64_t)nxc_shape_last(other);
}

static uint64_t flops_grouped_matmul(const nxc_graph *graph, const nxc_operator_node *op) {
  return flops(nxc_in(graph, op, 0), nxc_out(graph, op, 0), op->attrs[NX_grouped_matmul_rows].integer);
}

static uint64_t flops_grouped_wgrad(const nxc_graph *graph, const nxc_operator_node *op) {
  return flops(nxc_in(graph, op, 0), nxc_in(graph, op, 1), op->attrs[NX_grouped_wgrad_rows].integer);
}

const nxc_rule nxc_rule_grouped_matmul = {.infer = infer_grouped_matmul,
                                          .grad = grad_grouped_matmul,
                                          .flops = flops_grouped_matmul,
                                          .linear = true};
const nxc_rule nxc_rule_grouped_wgrad = {.infer = infer_grouped_wgrad, .flops = flops_grouped_wgrad};

/* ---- biases of experts ---- */

/* Rows that are summands over expert-tensor ranks get a share of the whole bias on each. */
static bool bias_fits(uint8_t x, uint8_t bias) {
  if (x == NXC_SPLIT || x == NXC_SPLIT + 2) return bias == NXC_SPLIT;
  return bias == NXC_REPLICATED;
}

static const char *infer_grouped_bias(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *bias = nxc_in(graph, op, 2);
  out[0] = *x;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (!bias_fits(x->placement.at[atom], bias->placement.at[atom]))
      return "rows and biases are divided differently";
  return NULL;
}

static void grad_grouped_bias(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[3]);
  if (dy == 0) return;
  nxc_op_request request = {.op = NX_OP_grouped_bias_grad,
                            .in = {dy, op->args[1]},
                            .out = {nxc_grad_parameter(grad, op->args[2])},
                            .attrs = {[NX_grouped_bias_grad_share] = op->attrs[NX_grouped_bias_share]}};
  if (request.out[0]) nxc_grad_accumulate(grad, &request);
  nxc_grad_give(grad, op->args[0], dy);
}

static const char *infer_grouped_bias_grad(const nxc_graph *graph, const nxc_operator_node *op,
                                           nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0), *counts = nxc_in(graph, op, 1);
  uint32_t sharing =
      op->attrs[NX_grouped_bias_grad_share].real < 1 ? nxc_axis(&graph->mesh, NXC_AXIS_EXPERT_TENSOR) : 0;
  out[0] = nxc_shape_of(graph->types.grad, 1, (int64_t[]){counts->dims[2] * nxc_shape_last(dy)});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t of_rows = dy->placement.at[atom];
    if (of_rows == NXC_SPLIT || of_rows == NXC_SPLIT + 2) out[0].placement.at[atom] = NXC_SPLIT;
    if (of_rows == NXC_SPLIT + 1 || (sharing & 1u << atom)) out[0].placement.at[atom] = NXC_PARTIAL;
  }
  return nxc_whole(dy);
}

const nxc_rule nxc_rule_grouped_bias = {.infer = infer_grouped_bias, .grad = grad_grouped_bias};
const nxc_rule nxc_rule_grouped_bias_grad = {.infer = infer_grouped_bias_grad};
