/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that work element by element. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

#include <string.h>

static const char *infer_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_same(&out[0], nxc_in(graph, op, 1));
}

/* Of what is still to be summed too: who votes is for the caller to say. */
static const char *infer_vote(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_out(graph, op, 0);
  return NULL;
}

const nxc_rule nxc_rule_vote = {.infer = infer_vote};

/* The gradient in the type of what it is the gradient of. */
static nxc_id in_type_of(nxc_grad *grad, nxc_id value, nxc_id dy) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nx_dtype type = graph->values[value].shape.dtype;
  if (graph->values[dy].shape.dtype == type) return dy;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_cast, .of = {value}, .in = {dy}, .dtype = type});
}

static void grad_add(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  for (int i = 0; i < 2; i++) nxc_grad_give(grad, op->args[i], in_type_of(grad, op->args[i], dy));
}

const nxc_rule nxc_rule_add = {.infer = infer_add, .grad = grad_add};

/* gated and activation alike: the gradient is that of the operator's input, with its function. */
static void grad_of_function(nxc_grad *grad, const nxc_operator_node *op, nx_op gradient) {
  nxc_id dy = nxc_grad_of(grad, op->args[1]), x = op->args[0];
  if (dy == 0) return;
  nxc_op_request request = {.op = gradient, .of = {x}, .in = {dy, x}};
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_grad_give(grad, x, nxc_append(nxc_grad_graph(grad), &request));
}

static const char *infer_gated(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0);
  out[0] = nxc_shape_with_last(x, nxc_shape_last(x) / 2);
  return nxc_shape_last(x) % 2 ? "the two halves differ" : nxc_whole(x);
}

static void grad_gated(nxc_grad *grad, const nxc_operator_node *op) {
  grad_of_function(grad, op, NX_OP_gated_grad);
}

static const char *infer_gated_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0), *x = nxc_in(graph, op, 1);
  const nxc_shape half = nxc_shape_with_last(x, nxc_shape_last(x) / 2);
  out[0] = *x;
  return nxc_same(dy, &half);
}

const nxc_rule nxc_rule_gated = {.infer = infer_gated, .grad = grad_gated};
const nxc_rule nxc_rule_gated_grad = {.infer = infer_gated_grad};

static const char *infer_whole(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_whole(&out[0]);
}

static void grad_activation(nxc_grad *grad, const nxc_operator_node *op) {
  grad_of_function(grad, op, NX_OP_activation_grad);
}

static const char *infer_activation_grad(const nxc_graph *graph, const nxc_operator_node *op,
                                         nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 1);
  return nxc_same(nxc_in(graph, op, 0), &out[0]);
}

const nxc_rule nxc_rule_activation = {.infer = infer_whole, .grad = grad_activation};
const nxc_rule nxc_rule_activation_grad = {.infer = infer_activation_grad};

static void grad_clamp(nxc_grad *grad, const nxc_operator_node *op) {
  grad_of_function(grad, op, NX_OP_clamp_grad);
}

const nxc_rule nxc_rule_clamp = {.infer = infer_whole, .grad = grad_clamp};
const nxc_rule nxc_rule_clamp_grad = {.infer = infer_activation_grad};

static const char *infer_row_gate(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *gate = nxc_in(graph, op, 1);
  out[0] = *x;
  const char *fault = nxc_whole(x);
  if (fault == NULL) fault = nxc_whole(gate);
  if (fault) return fault;
  bool alike = nxc_placement_equal(&x->placement, &gate->placement);
  return alike ? NULL : "rows and gates are divided differently";
}

static void grad_row_gate(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id x = op->args[0], gate = op->args[1], dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_row_gate_grad, .of = {x, gate}, .in = {dy, x, gate}});
  nxc_id dx = nxc_last_output(graph, 0), d_gate = nxc_last_output(graph, 1);
  nxc_grad_give(grad, x, dx);
  nxc_grad_give(grad, gate, d_gate);
}

static const char *infer_row_gate_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 1), out[1] = *nxc_in(graph, op, 2);
  return nxc_same(nxc_in(graph, op, 0), &out[0]);
}

const nxc_rule nxc_rule_row_gate = {.infer = infer_row_gate, .grad = grad_row_gate};
const nxc_rule nxc_rule_row_gate_grad = {.infer = infer_row_gate_grad, .suffixes = {"rows", "gates"}};

static void grad_dropout(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[op->n_in]);
  if (dy == 0) return;
  nxc_op_request request = {.op = op->op, .of = {op->args[0]}, .in = {dy}};
  memcpy(request.in + 1, op->args + 1, (op->n_in - 1) * sizeof *op->args);
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_grad_give(grad, op->args[0], nxc_append(nxc_grad_graph(grad), &request));
}

/* Summands of one element have the same mask on every rank. */
static const char *infer_dropout(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

const nxc_rule nxc_rule_dropout = {.infer = infer_dropout, .grad = grad_dropout, .linear = true};
const nxc_rule nxc_rule_jitter = {.infer = infer_dropout, .grad = grad_dropout, .linear = true};

static void grad_random_logits(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[op->n_in]);
  if (dy) nxc_grad_give(grad, op->args[0], dy);
}

const nxc_rule nxc_rule_random_logits = {.infer = infer_dropout, .grad = grad_random_logits};

/* Every stage adds its own. */
static const char *infer_add_up(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  nxc_place_atoms(&out[0].placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
  return NULL;
}

const nxc_rule nxc_rule_add_up = {.infer = infer_add_up};

/* Summands may be added to summands: both are divided alike. */
static const char *infer_columns_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *z = nxc_in(graph, op, 1);
  out[0] = *nxc_in(graph, op, 0);
  return nxc_placement_equal(&out[0].placement, &z->placement) ? NULL
                                                               : "what is added is divided differently";
}

static void grad_columns_add(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id x = op->args[0], z = op->args[1], dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  nxc_grad_give(grad, x, in_type_of(grad, x, dy));
  nxc_op_request request = {
      .op = NX_OP_columns,
      .of = {z},
      .in = {dy},
      .attrs = {[NX_columns_first] = op->attrs[NX_columns_add_first],
                [NX_columns_scale] = op->attrs[NX_columns_add_scale],
                [NX_columns_count] = nxc_integer(nxc_shape_last(&graph->values[z].shape))}};
  nxc_grad_give(grad, z, nxc_append(graph, &request));
}

static const char *infer_columns(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = nxc_shape_with_last(nxc_in(graph, op, 0), op->attrs[NX_columns_count].integer);
  return NULL;
}

const nxc_rule nxc_rule_columns_add = {.infer = infer_columns_add, .grad = grad_columns_add, .linear = true};
const nxc_rule nxc_rule_columns = {.infer = infer_columns};

static const char *infer_join(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *a = nxc_in(graph, op, 0), *b = nxc_in(graph, op, 1);
  out[0] = nxc_shape_with_last(a, nxc_shape_last(a) + nxc_shape_last(b));
  return nxc_placement_equal(&a->placement, &b->placement) ? NULL : "what is joined is divided differently";
}

static void grad_join(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id dy = nxc_grad_of(grad, op->args[2]);
  int64_t first = 0;
  for (uint32_t i = 0; i < 2 && dy != 0; i++) {
    int64_t count = nxc_shape_last(&graph->values[op->args[i]].shape);
    nxc_op_request request = {.op = NX_OP_columns,
                              .of = {op->args[i]},
                              .in = {dy},
                              .attrs = {[NX_columns_first] = nxc_integer(first),
                                        [NX_columns_scale] = nxc_real(1),
                                        [NX_columns_count] = nxc_integer(count)}};
    nxc_grad_give(grad, op->args[i], nxc_append(graph, &request));
    first += count;
  }
}

const nxc_rule nxc_rule_join = {.infer = infer_join, .grad = grad_join};

/* Codes and the scales of their blocks are divided alike; what they stand for is no parameter, and has no
 * gradient. */
static const char *infer_codes(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out,
                               int64_t elements) {
  const nxc_shape *codes = nxc_in(graph, op, 0), *scales = nxc_in(graph, op, 1);
  out[0] = nxc_shape_with_last(codes, elements * nxc_shape_last(codes));
  out[0].dtype = graph->types.activation;
  return nxc_placement_equal(&codes->placement, &scales->placement)
             ? NULL
             : "codes and scales are divided differently";
}

static const char *infer_half_bytes(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  return infer_codes(graph, op, out, 2);
}

static const char *infer_bytes(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  return infer_codes(graph, op, out, 1);
}

const nxc_rule nxc_rule_dequantize_nf4 = {.infer = infer_half_bytes};
const nxc_rule nxc_rule_dequantize_nvfp4 = {.infer = infer_half_bytes};
const nxc_rule nxc_rule_dequantize_mxfp4 = {.infer = infer_half_bytes};
const nxc_rule nxc_rule_dequantize_fp8 = {.infer = infer_bytes};

static const char *infer_fill(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_out(graph, op, 0);
  return NULL;
}

static const char *infer_cast(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

const nxc_rule nxc_rule_fill = {.infer = infer_fill};
const nxc_rule nxc_rule_cast = {.infer = infer_cast};
