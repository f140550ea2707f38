/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a vocabulary that may be divided: statistics of each part, then the loss from all of
 * them. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

/* stats[1,T,3]: ranks that hold other columns have other statistics, so dimension 0 is divided. */
static const char *infer_ce_stats(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *logits = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f32, 3, (int64_t[]){1, nxc_shape_rows(logits), 3});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t how = logits->placement.at[atom];
    if (how < NXC_SPLIT) continue;
    out[0].placement.at[atom] = how == NXC_SPLIT + logits->n_dims - 1 ? NXC_SPLIT : NXC_SPLIT + 1;
  }
  return nxc_whole(logits);
}

static const char *infer_ce_loss(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *stats = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f32, 1, (int64_t[]){stats->dims[1]});
  out[1] = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (stats->placement.at[atom] == NXC_SPLIT) return "the statistics of other columns are missing";
    if (stats->placement.at[atom] != NXC_SPLIT + 1) continue;
    out[0].placement.at[atom] = NXC_SPLIT;
    out[1].placement.at[atom] = NXC_PARTIAL;
  }
  nxc_place_atoms(&out[1].placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
  return nxc_whole(stats);
}

void nxc_grad_cross_entropy(nxc_grad *grad, nxc_id all_stats, nxc_id lse, nxc_id weights, nx_attribute z) {
  nxc_graph *graph = nxc_grad_graph(grad);
  const nxc_operator_node *stats = nxc_producer(graph, all_stats);
  if (stats->op == NX_OP_all_gather) stats = nxc_producer(graph, stats->args[0]);
  nxc_id logits = stats->args[0], labels = stats->args[1];
  const nx_attribute row_start = stats->attrs[NX_ce_stats_row_start],
                     n_valid = stats->attrs[NX_ce_stats_n_valid],
                     soft_cap = stats->attrs[NX_ce_stats_soft_cap];
  if (graph->loss_scale)
    weights = nxc_append(graph, &(nxc_op_request){.op = NX_OP_loss_weights,
                                                  .name = "loss_weights",
                                                  .in = {graph->loss_scale, lse, weights}});
  nxc_op_request request = {.op = NX_OP_ce_grad,
                            .of = {logits},
                            .in = {logits, labels, lse, weights},
                            .attrs = {[NX_ce_grad_row_start] = row_start,
                                      [NX_ce_grad_n_valid] = n_valid,
                                      [NX_ce_grad_soft_cap] = soft_cap,
                                      [NX_ce_grad_z] = z,
                                      [NX_ce_grad_scale] = nxc_real(nxc_grad_loss_scale(grad))}};
  nxc_grad_give(grad, logits, nxc_append(graph, &request));
}

/* The gradient goes from the loss to the logits at once: the statistics carry none. */
static void grad_ce_loss(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_grad_cross_entropy(grad, op->args[0], op->args[op->n_in], op->n_in > 1 ? op->args[1] : 0,
                         op->attrs[NX_ce_loss_z]);
}

static const char *infer_ce_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_whole(nxc_in(graph, op, 2));
}

static const char *infer_loss_weights(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 1);
  return nxc_whole(nxc_in(graph, op, 0));
}

const nxc_rule nxc_rule_loss_weights = {.infer = infer_loss_weights};
const nxc_rule nxc_rule_ce_stats = {.infer = infer_ce_stats};
const nxc_rule nxc_rule_ce_loss = {.infer = infer_ce_loss, .grad = grad_ce_loss, .suffixes = {"lse", "loss"}};
const nxc_rule nxc_rule_ce_grad = {.infer = infer_ce_grad};
