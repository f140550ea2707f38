/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives that compare answers: sums of their tokens' losses or values, which ranks of a context complete
 * together, and the loss of each sample. The gradient goes to the logits at once, as cross-entropy with a
 * weight for each token, or to the values, which are these weights. */
#include "compiler/program/graph/grad.h"
#include "compiler/program/graph/rules.h"

/* Of what is summed over the tokens of weights[B,s]: partial where the sequence is divided. */
static nxc_shape of_sequences(const nxc_shape *weights) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){weights->dims[0]});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (weights->placement.at[atom] >= NXC_SPLIT)
      shape.placement.at[atom] = weights->placement.at[atom] == NXC_SPLIT ? NXC_SPLIT : NXC_PARTIAL;
  return shape;
}

static const char *infer_sequence_loss(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *stats = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f32, 1, (int64_t[]){stats->dims[1]});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (stats->placement.at[atom] == NXC_SPLIT) return "the statistics of other columns are missing";
    if (stats->placement.at[atom] == NXC_SPLIT + 1) out[0].placement.at[atom] = NXC_SPLIT;
  }
  out[1] = out[2] = of_sequences(nxc_in(graph, op, 1));
  return nxc_whole(stats);
}

static const char *infer_sequence_value(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = out[1] = of_sequences(nxc_in(graph, op, 1));
  return nxc_whole(nxc_in(graph, op, 0));
}

/* Sums over samples: of this rank's data, and of the last stage alone. */
static nxc_shape of_samples(const nxc_graph *graph, const nxc_shape *sums, int64_t n) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (sums->placement.at[atom] >= NXC_SPLIT) shape.placement.at[atom] = NXC_PARTIAL;
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
  return shape;
}

static const char *infer_preference(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *sums = nxc_in(graph, op, 0);
  out[0] = of_samples(graph, sums, 1);
  out[1] = *sums;
  out[2] = of_samples(graph, sums, NX_N_ANSWER_METRICS);
  return nxc_whole(sums);
}

static const nxc_operator_node *behind_sum(const nxc_graph *graph, nxc_id value) {
  const nxc_operator_node *op = nxc_producer(graph, value);
  return op->op == NX_OP_all_reduce ? nxc_producer(graph, op->args[0]) : op;
}

static void give_values(nxc_grad *grad, nxc_id values, nxc_id weights) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_op_request factor = {
      .op = NX_OP_loss_weights, .name = "loss_weights", .in = {graph->loss_scale, weights}};
  if (graph->loss_scale) weights = nxc_append(graph, &factor);
  nxc_op_request request = {.op = NX_OP_value_grad,
                            .of = {values},
                            .in = {weights},
                            .attrs = {[NX_value_grad_scale] = nxc_real(nxc_grad_loss_scale(grad))}};
  nxc_grad_give(grad, values, nxc_append(graph, &request));
}

static void grad_preference(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  const nxc_operator_node *sequences = behind_sum(graph, op->args[0]);
  nxc_id of = sequences->args[0], weights = sequences->args[1], lse = sequences->args[2];
  bool values = sequences->op == NX_OP_sequence_value;
  nxc_id slopes = op->args[op->n_in + 1];
  nxc_op_request request = {.op = NX_OP_row_weights, .name = "row_weights", .in = {slopes, weights}};
  weights = nxc_append(graph, &request);
  if (values) give_values(grad, of, weights);
  else nxc_grad_cross_entropy(grad, of, lse, weights, nxc_real(0));
}

static const char *infer_value_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *weights = nxc_in(graph, op, 0);
  out[0] = *weights;
  out[0].n_dims = 3, out[0].dims[2] = 1;
  out[0].dtype = graph->types.activation;
  return nxc_whole(weights);
}

static const char *infer_row_weights(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 1);
  return nxc_whole(nxc_in(graph, op, 0));
}

const nxc_rule nxc_rule_sequence_loss = {.infer = infer_sequence_loss, .suffixes = {"lse", "sums", "counts"}};
const nxc_rule nxc_rule_sequence_value = {.infer = infer_sequence_value, .suffixes = {"sums", "counts"}};
const nxc_rule nxc_rule_value_grad = {.infer = infer_value_grad};
const nxc_rule nxc_rule_preference = {
    .infer = infer_preference, .grad = grad_preference, .suffixes = {"loss", "slopes", "metrics"}};
const nxc_rule nxc_rule_row_weights = {.infer = infer_row_weights};
