/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations over the last dimension. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

static const char *check_input(const nxc_graph *graph, const nxc_operator_node *op, uint32_t index) {
  const nxc_shape *x = nxc_in(graph, op, index);
  if (nxc_atoms_placed(&x->placement, (uint8_t)(NXC_SPLIT + x->n_dims - 1)))
    return "what is normalized is cut";
  return nxc_whole(x);
}

static const char *infer_norm(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *gain = nxc_in(graph, op, 1);
  out[0] = *x;
  for (uint32_t i = 1; i < op->n_out; i++) out[i] = nxc_shape_without_last(x, NX_f32);
  int64_t width = op->op == NX_OP_scale_norm ? 1 : nxc_shape_last(x);
  if (gain->n_dims != 1 || gain->dims[0] != width) return "the gain has another width";
  return check_input(graph, op, 0);
}

/* dx as x; the gradients of gain and bias are sums over all rows. All are linear in dy, and summands where it
 * is. */
static const char *infer_norm_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0), *x = nxc_in(graph, op, 1);
  uint32_t partial = nxc_atoms_placed(&dy->placement, NXC_PARTIAL);
  out[0] = *x;
  nxc_place_atoms(&out[0].placement, partial, NXC_PARTIAL);
  const char *fault = nxc_same(dy, &out[0]);
  for (uint32_t i = 1; i < op->n_out; i++) {
    int64_t width = op->op == NX_OP_scale_norm_grad ? 1 : nxc_shape_last(x);
    out[i] = nxc_shape_of(graph->types.grad, 1, (int64_t[]){width});
    out[i].placement = nxc_placement_of_row_sum(x);
    nxc_place_atoms(&out[i].placement, partial, NXC_PARTIAL);
  }
  return fault ? fault : check_input(graph, op, 1);
}

/* Appends the gradient of a norm and gives dx. What is frozen is left out; a trained bias behind a frozen
 * gain has an operator of its own. */
static void give(nxc_grad *grad, nxc_op_request *request, nxc_id x, nxc_id gain, nxc_id bias) {
  nxc_id dy = request->in[0], db = bias ? nxc_grad_parameter(grad, bias) : 0;
  request->of[0] = x;
  request->out[1] = nxc_grad_parameter(grad, gain);
  if (request->out[1] == 0 && db)
    nxc_grad_accumulate(grad, &(nxc_op_request){.op = NX_OP_bias_grad, .in = {dy}, .out = {db}});
  else request->out[2] = db;
  request->n_out = request->out[2] ? 3 : request->out[1] ? 2 : 1;
  nxc_grad_accumulate(grad, request);
  nxc_grad_give(grad, x, nxc_last_output(nxc_grad_graph(grad), 0));
}

static void grad_rms_norm(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id x = op->args[0], gain = op->args[1], y = op->args[2], rstd = op->args[3], dy = nxc_grad_of(grad, y);
  if (dy == 0) return;
  nxc_op_request request = {.op = NX_OP_rms_norm_grad,
                            .in = {dy, x, gain, rstd},
                            .attrs = {[NX_rms_norm_grad_zero_centred] = op->attrs[NX_rms_norm_zero_centred]}};
  give(grad, &request, x, gain, 0);
}

static void grad_scale_norm(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id x = op->args[0], gain = op->args[1], y = op->args[2], factor = op->args[3],
         dy = nxc_grad_of(grad, y);
  if (dy == 0) return;
  nxc_op_request request = {.op = NX_OP_scale_norm_grad,
                            .in = {dy, x, gain, factor},
                            .attrs = {[NX_scale_norm_grad_epsilon] = op->attrs[NX_scale_norm_epsilon]}};
  give(grad, &request, x, gain, 0);
}

static void grad_layer_norm(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id x = op->args[0], gain = op->args[1], bias = op->n_in == 3 ? op->args[2] : 0;
  const nxc_id *out = op->args + op->n_in;
  nxc_id dy = nxc_grad_of(grad, out[0]);
  if (dy == 0) return;
  nxc_op_request request = {
      .op = NX_OP_layer_norm_grad,
      .in = {dy, x, gain, out[1], out[2]},
      .attrs = {[NX_layer_norm_grad_zero_centred] = op->attrs[NX_layer_norm_zero_centred]}};
  give(grad, &request, x, gain, bias);
}

const nxc_rule nxc_rule_rms_norm = {
    .infer = infer_norm, .grad = grad_rms_norm, .suffixes = {NULL, "rstd"}, .linear_of_heads = true};
const nxc_rule nxc_rule_scale_norm = {
    .infer = infer_norm, .grad = grad_scale_norm, .suffixes = {NULL, "factor"}, .linear_of_heads = true};
const nxc_rule nxc_rule_scale_norm_grad = {.infer = infer_norm_grad};
const nxc_rule nxc_rule_rms_norm_grad = {.infer = infer_norm_grad};
const nxc_rule nxc_rule_layer_norm = {.infer = infer_norm,
                                      .grad = grad_layer_norm,
                                      .suffixes = {NULL, "mean", "rstd"},
                                      .linear_of_heads = true};
const nxc_rule nxc_rule_layer_norm_grad = {.infer = infer_norm_grad};
