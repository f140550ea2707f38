/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts: routing, and the way of tokens to experts and back.
 *
 * Tokens are divided by sequence and place ([B,s,..] on dimensions 0 and 1), their rows on the way to experts
 * by destination ([D,R,..] on dimension 0) or by source (dimension 1). Where every rank looks at all tokens
 * and has rows for its own experts alone, `rows` is partial: the ranks' rows together are those of all. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"
#include "compiler/program/records/mixture.h"

static bool is_of_tokens(uint8_t how) {
  return how == NXC_SPLIT || how == NXC_SPLIT + 1;
}

/* ---- routing ---- */

/* Each rank has the logits of its own tokens, and those of the whole micro-batch. */
static const char *infer_route(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *logits = nxc_in(graph, op, 0), *all = nxc_in(graph, op, 1);
  int64_t n_counts = op->attrs[NX_moe_route_per_sequence].integer ? logits->dims[0] : 1;
  out[0] = out[1] = nxc_shape_with_last(logits, op->attrs[NX_moe_route_top_k].integer);
  out[0].dtype = NX_i32;
  out[1].dtype = NX_f32;
  out[2] = nxc_shape_of(NX_f32, 2, (int64_t[]){n_counts, logits->dims[2]});
  out[3] = nxc_shape_of(NX_f64, 1, (int64_t[]){2});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t how = logits->placement.at[atom], gathered = all->placement.at[atom];
    if (how != NXC_REPLICATED && !is_of_tokens(how)) return "the router reads parts of tokens";
    if (gathered != (how == NXC_SPLIT ? NXC_SPLIT : NXC_REPLICATED))
      return "the router lacks tokens of the micro-batch";
    out[2].placement.at[atom] = gathered;
    if (how != NXC_REPLICATED) out[3].placement.at[atom] = NXC_PARTIAL;
  }
  return NULL;
}

/* What moves the correction is how much more than their share experts had to do. */
static void correct(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_op_request request = {.op = NX_OP_moe_imbalance,
                            .in = {op->args[op->n_in + 2]},
                            .out = {nxc_grad_parameter(grad, op->args[2])}};
  if (request.out[0] == 0) return;
  nxc_grad_accumulate(grad, &request);
}

/* What the step moves it by is noted of all tokens of the micro-batch. */
static void note_quantiles(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  for (size_t i = 0; i < graph->n_quantiles; i++)
    if (graph->quantiles[i].correction == op->args[2])
      nxc_append(graph, &(nxc_op_request){.op = NX_OP_moe_quantile,
                                          .in = {op->args[1], op->args[2]},
                                          .out = {graph->quantiles[i].sums},
                                          .attrs = {[NX_moe_quantile_top_k] = op->attrs[NX_moe_route_top_k],
                                                    [NX_moe_quantile_accumulate] = nxc_integer(1)}});
}

static const char *infer_quantile(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *all = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f64, 1, (int64_t[]){all->dims[2] + 1});
  nxc_place_atoms(&out[0].placement, nxc_atoms_placed(&all->placement, NXC_SPLIT), NXC_PARTIAL);
  return nxc_whole(nxc_in(graph, op, 1));
}

static const char *infer_settle(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return nxc_whole(nxc_in(graph, op, 1));
}

const nxc_rule nxc_rule_moe_quantile = {.infer = infer_quantile};
const nxc_rule nxc_rule_moe_settle = {.infer = infer_settle};

static const char *infer_imbalance(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *counts = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f32, 1, (int64_t[]){nxc_shape_last(counts)});
  out[0].placement = nxc_placement_of_row_sum(counts);
  return NULL;
}

static const char *infer_share(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *counts = nxc_in(graph, op, 0);
  out[0] = nxc_shape_of(NX_f32, 2, (int64_t[]){1, counts->dims[0]});
  return nxc_whole(counts);
}

/* Each rank's lists are those of its own micro-batch. */
static const char *infer_load(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return op->n_in > 1 ? nxc_whole(nxc_in(graph, op, 1)) : NULL;
}

const nxc_rule nxc_rule_moe_load = {.infer = infer_load};
const nxc_rule nxc_rule_moe_share = {.infer = infer_share};
const nxc_rule nxc_rule_moe_imbalance = {.infer = infer_imbalance};

/* The load in the load-balancing loss of the operator's layer. */
static nxc_id load_of(const nxc_graph *graph, const nxc_operator_node *op, nxc_id counts) {
  if (graph->mixture_counts) return graph->mixture_counts;
  return graph->mixture_loads ? graph->mixture_loads[op->layer] : counts;
}

/* The losses are summands of the training's loss, in the unit of the cross-entropy's sum. */
static void grad_route(nxc_grad *grad, const nxc_operator_node *op) {
  const nxc_id *out = op->args + op->n_in;
  nxc_id logits = op->args[0], experts = out[0], weights = out[1], counts = out[2];
  nxc_id dweights = nxc_grad_of(grad, weights);
  double scale = nxc_grad_loss_scale(grad);
  bool corrected = op->n_in > 2 && op->attrs[NX_moe_route_drop].integer != NXC_DROP_LEAST;
  if (corrected && op->attrs[NX_moe_route_by_logits].integer) note_quantiles(grad, op);
  else if (corrected) correct(grad, op);
  if (dweights == 0) return;
  const nxc_op_request request = {
      .op = NX_OP_moe_route_grad,
      .of = {logits},
      .in = {dweights, logits, experts, load_of(nxc_grad_graph(grad), op, counts),
             nxc_grad_graph(grad)->loss_scale},
      .attrs = {[NX_moe_route_grad_score] = op->attrs[NX_moe_route_score],
                [NX_moe_route_grad_normalize] = op->attrs[NX_moe_route_normalize],
                [NX_moe_route_grad_scale] = op->attrs[NX_moe_route_scale],
                [NX_moe_route_grad_aux] = nxc_real(scale * op->attrs[NX_moe_route_aux].real),
                [NX_moe_route_grad_z] = nxc_real(scale * op->attrs[NX_moe_route_z].real)}};
  nxc_grad_give(grad, logits, nxc_append(nxc_grad_graph(grad), &request));
}

static const char *infer_route_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dweights = nxc_in(graph, op, 0);
  out[0] = *nxc_in(graph, op, 1);
  out[0].dtype = graph->types.activation;
  return nxc_same(dweights, nxc_in(graph, op, 2));
}

const nxc_rule nxc_rule_moe_route = {.infer = infer_route,
                                     .grad = grad_route,
                                     .suffixes = {"experts", "weights", "counts", "losses"}};
const nxc_rule nxc_rule_moe_route_grad = {.infer = infer_route_grad};

/* ---- rows ---- */

/* Whether the number differs between ranks of the atom. */
static bool varies_on(const nxc_graph *graph, const nx_attribute *attribute, uint32_t atom) {
  if (attribute->kind != NX_ATTRIBUTE_CONSTANT) return false;
  const nxc_rank_number *number = &graph->tables->constants[attribute->constant];
  for (uint32_t i = 0; i < number->n_terms; i++)
    if (number->terms[i].atoms != NX_NONE && number->terms[i].atoms & 1u << atom) return true;
  return false;
}

static const char *infer_index(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *experts = nxc_in(graph, op, 0);
  const nx_attribute *attrs = op->attrs;
  out[0] = *experts;
  out[1] = nxc_shape_of(
      NX_i32, 3,
      (int64_t[]){attrs[NX_moe_index_destinations].integer, 1, attrs[NX_moe_index_experts].integer});
  for (uint32_t atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t how = experts->placement.at[atom];
    bool own = varies_on(graph, &attrs[NX_moe_index_expert_start], atom);
    if (own && how != NXC_REPLICATED) return "ranks look for their experts among tokens that others lack";
    if (own) out[0].placement.at[atom] = NXC_PARTIAL;
    out[1].placement.at[atom] = own ? NXC_SPLIT : how == NXC_REPLICATED ? NXC_REPLICATED : NXC_SPLIT + 1;
  }
  return NULL;
}

const nxc_rule nxc_rule_moe_index = {.infer = infer_index, .suffixes = {"rows", "counts"}};

/* Where the rows of tokens go that lie so. */
static uint8_t row_placement(uint8_t tokens, uint8_t rows, const char **fault) {
  if (rows == NXC_PARTIAL && tokens == NXC_REPLICATED) return NXC_SPLIT;
  if (is_of_tokens(tokens) && rows == tokens) return NXC_SPLIT + 1;
  if (tokens != NXC_REPLICATED || rows != NXC_REPLICATED)
    *fault = "tokens and their rows are divided differently";
  return NXC_REPLICATED;
}

static const char *infer_permute(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *rows = nxc_in(graph, op, 1);
  const char *fault = NULL;
  out[0] = nxc_shape_of(x->dtype, 3,
                        (int64_t[]){op->attrs[NX_moe_permute_destinations].integer,
                                    op->attrs[NX_moe_permute_rows].integer, nxc_shape_last(x)});
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    out[0].placement.at[atom] = row_placement(x->placement.at[atom], rows->placement.at[atom], &fault);
  return fault;
}

static void grad_permute(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id x = op->args[0], rows = op->args[1], dy = nxc_grad_of(grad, op->args[2]);
  if (dy == 0) return;
  nxc_grad_give(grad, x,
                nxc_append(nxc_grad_graph(grad),
                           &(nxc_op_request){.op = NX_OP_moe_combine, .of = {x}, .in = {dy, rows}}));
}

const nxc_rule nxc_rule_moe_permute = {.infer = infer_permute, .grad = grad_permute, .linear = true};

/* The sum over a token's experts of rows that lie on the token's rank, or on those of its experts; a summand
 * of it, where the rows are summands. */
static const char *infer_combine(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *y = nxc_in(graph, op, 0), *rows = nxc_in(graph, op, 1);
  const char *fault = NULL;
  out[0] = nxc_shape_with_last(rows, nxc_shape_last(y));
  out[0].dtype = graph->types.activation;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    uint8_t of_y = y->placement.at[atom], how = rows->placement.at[atom];
    bool summand = of_y == NXC_PARTIAL && how == NXC_REPLICATED;
    out[0].placement.at[atom] = summand ? NXC_PARTIAL : how;
    uint8_t tokens = how == NXC_PARTIAL ? NXC_REPLICATED : how;
    if (!summand && of_y != row_placement(tokens, how, &fault))
      fault = "rows are not where their tokens look for them";
    uint8_t weighted = op->n_in == 3 ? nxc_in(graph, op, 2)->placement.at[atom] : tokens;
    if (weighted != tokens) fault = "weights and rows are divided differently";
  }
  if (nxc_atoms_placed(&out[0].placement, NXC_PARTIAL)) out[0].dtype = graph->types.partial;
  return fault;
}

static void grad_combine(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id y = op->args[0], rows = op->args[1], weights = op->args[2],
         dx = nxc_grad_of(grad, op->args[op->n_in]);
  nxc_graph *graph = nxc_grad_graph(grad);
  if (dx == 0) return;
  nxc_append(graph, &(nxc_op_request){
                        .op = NX_OP_moe_combine_grad, .of = {y, weights}, .in = {dx, y, rows, weights}});
  nxc_id dy = nxc_last_output(graph, 0), dweights = nxc_last_output(graph, 1);
  nxc_grad_give(grad, y, dy);
  nxc_grad_give(grad, weights, dweights);
}

/* A weight's gradient is a product with rows, and a summand where those are. */
static const char *infer_combine_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dx = nxc_in(graph, op, 0), *y = nxc_in(graph, op, 1), *rows = nxc_in(graph, op, 2);
  out[0] = *y;
  out[0].dtype = graph->types.activation;
  out[1] = *nxc_in(graph, op, 3);
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    bool summand = y->placement.at[atom] == NXC_PARTIAL, own = rows->placement.at[atom] == NXC_PARTIAL;
    if (summand) out[0].placement.at[atom] = NXC_REPLICATED;
    if (summand || own) out[1].placement.at[atom] = NXC_PARTIAL;
    if (dx->placement.at[atom] != (own ? NXC_REPLICATED : rows->placement.at[atom]))
      return "the gradient is divided differently from the tokens";
  }
  return NULL;
}

const nxc_rule nxc_rule_moe_combine = {.infer = infer_combine, .grad = grad_combine};
const nxc_rule nxc_rule_moe_combine_grad = {.infer = infer_combine_grad, .suffixes = {"rows", "weights"}};
