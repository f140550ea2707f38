/* SPDX-License-Identifier: Apache-2.0 */
/* What happens once per step: norm, clipping, learning rate, update. */
#include "compiler/program/graph/rules.h"

/* Each rank's share of the sum, over all atoms: divided ones, and those of which its weight picks one
 * coordinate. What counts nowhere has a weight of 0 on all. */
static const char *infer_norm_sq(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0);
  const nx_attribute *weight = &op->attrs[NX_norm_sq_weight];
  out[0] = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  bool counted = weight->kind == NX_ATTRIBUTE_CONSTANT || weight->integer != 0;
  uint32_t picked = 0;
  if (weight->kind == NX_ATTRIBUTE_CONSTANT) {
    const nxc_rank_number *number = &graph->tables->constants[weight->constant];
    for (uint32_t i = 0; i < number->n_terms; i++)
      if (number->terms[i].first) picked |= number->terms[i].atoms;
  }
  uint32_t stage = nxc_axis(&graph->mesh, NXC_AXIS_STAGE);
  /* every stage has its own parameters */
  nxc_place_atoms(&out[0].placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
  for (uint32_t atom = 0; atom < graph->mesh.n_atoms; atom++) {
    bool divided = x->placement.at[atom] >= NXC_SPLIT, counted_once = picked & 1u << atom;
    if (!(stage & 1u << atom)) continue;
    if (divided && counted_once) return "a part of the gradient is not counted";
    if (divided || counted_once || !counted)
      out[0].placement.at[atom] = NXC_PARTIAL;
    else
      return "copies of a gradient are counted";
  }
  return nxc_whole(x);
}

static const char *infer_clip_scale(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = out[1] = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  return nxc_whole(nxc_in(graph, op, 0));
}

static const char *infer_segment(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  return nxc_whole(nxc_in(graph, op, 0));
}

/* Parameters, states of their shape and gradient are the same shard, or box of a tensor; the last output may
 * be a copy in another type. */
static const char *infer_update(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const char *fault = NULL;
  const nx_optimizer_row *rule = nx_optimizer_of(op->op);
  uint32_t n_same = nx_optimizer_n_same(rule), n_states = nx_optimizer_n_states(rule);
  for (uint32_t i = 0; i < op->n_in && fault == NULL; i++) fault = nxc_whole(nxc_in(graph, op, i));
  for (uint32_t i = 1; i < n_states + 2 && fault == NULL; i++)
    if (i <= n_same || i > n_states) fault = nxc_same(nxc_in(graph, op, 0), nxc_in(graph, op, i));
  for (uint32_t i = 0; i < op->n_out; i++) {
    out[i] = *nxc_in(graph, op, i > n_same && i <= n_states ? i : 0);
    out[i].dtype = nxc_out(graph, op, i)->dtype;
  }
  return fault;
}

/* A vector that each member of the group has of its own, in bits, and their size. */
static const char *infer_onebit(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *error = nxc_in(graph, op, 2);
  out[0] = out[1] = out[2] = *error;
  out[1] = nxc_shape_of(NX_u8, 1, (int64_t[]){nxc_shape_elements(error) / 8});
  out[2] = nxc_shape_of(NX_f32, 1, (int64_t[]){1});
  out[1].placement = out[2].placement = error->placement;
  for (uint32_t i = 0; i < op->n_in; i++)
    if (nxc_whole(nxc_in(graph, op, i))) return nxc_whole(nxc_in(graph, op, i));
  return NULL;
}

static const char *infer_onebit_apply(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const char *fault = nxc_same(nxc_in(graph, op, 0), nxc_in(graph, op, 1));
  if (fault == NULL) fault = nxc_same(nxc_in(graph, op, 0), nxc_in(graph, op, 2));
  for (uint32_t i = 0; i < op->n_out; i++) {
    out[i] = *nxc_in(graph, op, 0);
    out[i].dtype = nxc_out(graph, op, i)->dtype;
  }
  return fault;
}

const nxc_rule nxc_rule_onebit_pack = {.infer = infer_onebit};
const nxc_rule nxc_rule_onebit_sum = {.infer = infer_onebit};
const nxc_rule nxc_rule_onebit_apply = {.infer = infer_onebit_apply};
static const char *infer_block_squares(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0);
  out[0] = *x;
  out[0].dtype = NX_f64;
  out[0].dims[0] /= NXC_SQUARES_BLOCK;
  return x->n_dims != 1 ? "squares are summed of a vector" : nxc_whole(x);
}

/* Summands may be sums of the ranks' that are still to be made. */
static const char *infer_pairs_begin(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  out[0].dims[0] = nxc_out(graph, op, 0)->dims[0];
  out[1] = nxc_shape_of(NX_i32, 1, (int64_t[]){1});
  return NULL;
}

static const char *infer_pairs_add(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  nxc_shape x = *nxc_in(graph, op, 2);
  out[0] = *nxc_in(graph, op, 0), out[1] = *nxc_in(graph, op, 1);
  x.dims[0] = out[0].dims[0];
  return nxc_same(&out[0], &x);
}

static const char *infer_pairs_sum(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

const nxc_rule nxc_rule_pairs_begin = {.infer = infer_pairs_begin, .suffixes = {"levels", "summed"}};
const nxc_rule nxc_rule_pairs_add = {.infer = infer_pairs_add, .suffixes = {"levels", "summed"}};
const nxc_rule nxc_rule_pairs_sum = {.infer = infer_pairs_sum};
const nxc_rule nxc_rule_block_squares = {.infer = infer_block_squares};
const nxc_rule nxc_rule_blocks_sum = {.infer = infer_norm_sq}; /* the weight is the same attribute */
const nxc_rule nxc_rule_norm_sq = {.infer = infer_norm_sq};
const nxc_rule nxc_rule_count_zeros = {.infer = infer_norm_sq}; /* the weight is the same attribute */
const nxc_rule nxc_rule_clip_scale = {.infer = infer_clip_scale, .suffixes = {"norm", "scale"}};
const nxc_rule nxc_rule_segment = {.infer = infer_segment};
#define OPTIMIZER(number, name, kind, n_states, meaning)                                                     \
  const nxc_rule nxc_rule_##name = {.infer = infer_update};
#include "schema/optimizers.def"
