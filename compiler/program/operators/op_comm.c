/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: what they do to a placement is all that they do. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

static uint32_t group_size(const nxc_graph *graph, const nxc_operator_node *op) {
  return nxc_group_size(graph, op->group_atoms, op->stages);
}

/* Replaces `from` by `to` on all atoms of the group. */
static const char *replace(const nxc_operator_node *op, nxc_placement *placement, uint8_t from, uint8_t to) {
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (!(op->group_atoms & 1u << atom)) continue;
    if (placement->at[atom] != from) return "its group is not the one over which the value is divided";
    placement->at[atom] = to;
  }
  return NULL;
}

static const char *infer_all_reduce(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return replace(op, &out[0].placement, NXC_PARTIAL, NXC_REPLICATED);
}

static const char *infer_all_gather(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  int64_t axis = op->attrs[NX_all_gather_axis].integer;
  out[0] = *nxc_in(graph, op, 0);
  out[0].dims[axis] *= group_size(graph, op);
  return replace(op, &out[0].placement, (uint8_t)(NXC_SPLIT + axis), NXC_REPLICATED);
}

static const char *infer_reduce_scatter(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  int64_t axis = op->attrs[NX_reduce_scatter_axis].integer;
  out[0] = *nxc_in(graph, op, 0);
  if (out[0].dims[axis] % group_size(graph, op) != 0) return "the group does not divide the dimension";
  out[0].dims[axis] /= group_size(graph, op);
  return replace(op, &out[0].placement, NXC_PARTIAL, (uint8_t)(NXC_SPLIT + axis));
}

static const char *infer_all_to_all(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  int64_t split = op->attrs[NX_all_to_all_split_axis].integer,
          concat = op->attrs[NX_all_to_all_concat_axis].integer;
  out[0] = *nxc_in(graph, op, 0);
  if (out[0].dims[split] % group_size(graph, op) != 0) return "the group does not divide the dimension";
  out[0].dims[split] /= group_size(graph, op);
  out[0].dims[concat] *= group_size(graph, op);
  return replace(op, &out[0].placement, (uint8_t)(NXC_SPLIT + concat), (uint8_t)(NXC_SPLIT + split));
}

/* The ranks' values change places; what they are parts of stays divided as it was. */
static const char *infer_shift(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

static const char *infer_wait(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  (void)graph;
  (void)op;
  (void)out;
  return NULL;
}

/* Every rank holds the whole gradient of a sum. */
static void grad_all_reduce(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[1]);
  if (dy) nxc_grad_give(grad, op->args[0], dy);
}

/* Of a gradient that every rank has whole, its own part. */
static nxc_id own_part(nxc_graph *graph, const nxc_operator_node *gathered, nxc_id dy) {
  nxc_rank_number part = nxc_rank_number_of(0);
  nxc_rank_number_stride(&part, gathered->group_atoms, 1);
  uint32_t n = nxc_mesh_size(&graph->mesh, gathered->group_atoms);
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_slice,
                                             .of = {gathered->args[0]},
                                             .in = {dy},
                                             .attrs = {[NX_slice_axis] = gathered->attrs[NX_all_gather_axis],
                                                       [NX_slice_parts] = nxc_integer(n),
                                                       [NX_slice_part] = nxc_attribute(graph, &part)}});
}

static void grad_all_gather(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[1]), x = op->args[0];
  if (dy == 0) return;
  nxc_graph *graph = nxc_grad_graph(grad);
  if ((nxc_atoms_placed(&graph->values[dy].shape.placement, NXC_REPLICATED) & op->group_atoms) ==
      op->group_atoms) {
    nxc_grad_give(grad, x, own_part(graph, op, dy));
    return;
  }
  nxc_grad_give(grad, x,
                nxc_append(graph, &(nxc_op_request){.op = NX_OP_reduce_scatter,
                                                    .of = {x},
                                                    .in = {dy},
                                                    .attrs = {op->attrs[NX_all_gather_axis]},
                                                    .dtype = graph->values[x].shape.dtype,
                                                    .group_atoms = op->group_atoms}));
}

static void grad_reduce_scatter(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[1]), x = op->args[0];
  if (dy == 0) return;
  nxc_grad_give(
      grad, x,
      nxc_append(nxc_grad_graph(grad), &(nxc_op_request){.op = NX_OP_all_gather,
                                                         .of = {x},
                                                         .in = {dy},
                                                         .attrs = {op->attrs[NX_reduce_scatter_axis]},
                                                         .group_atoms = op->group_atoms}));
}

/* What came back to its member goes the way it came. */
static void grad_all_to_all(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[1]), x = op->args[0];
  if (dy == 0) return;
  nxc_op_request request = {.op = NX_OP_all_to_all, .of = {x}, .in = {dy}, .group_atoms = op->group_atoms};
  request.attrs[NX_all_to_all_split_axis] = op->attrs[NX_all_to_all_concat_axis];
  request.attrs[NX_all_to_all_concat_axis] = op->attrs[NX_all_to_all_split_axis];
  nxc_grad_give(grad, x, nxc_append(nxc_grad_graph(grad), &request));
}

/* Bytes that this rank receives. */
static uint64_t bytes_all_reduce(const nxc_graph *graph, const nxc_operator_node *op) {
  uint64_t size = group_size(graph, op);
  uint64_t bytes = nxc_shape_bytes(nxc_in(graph, op, 0)) + nxc_shape_bytes(nxc_out(graph, op, 0));
  return bytes * (size - 1) / size;
}

static uint64_t bytes_all_gather(const nxc_graph *graph, const nxc_operator_node *op) {
  return nxc_shape_bytes(nxc_in(graph, op, 0)) * (group_size(graph, op) - 1);
}

static uint64_t bytes_reduce_scatter(const nxc_graph *graph, const nxc_operator_node *op) {
  uint64_t size = group_size(graph, op);
  return nxc_shape_bytes(nxc_in(graph, op, 0)) * (size - 1) / size;
}

static uint64_t bytes_all_to_all(const nxc_graph *graph, const nxc_operator_node *op) {
  uint64_t size = group_size(graph, op);
  return nxc_shape_bytes(nxc_in(graph, op, 0)) * (size - 1) / size;
}

static uint64_t bytes_shift(const nxc_graph *graph, const nxc_operator_node *op) {
  return nxc_shape_bytes(nxc_in(graph, op, 0));
}

static uint64_t bytes_wait(const nxc_graph *graph, const nxc_operator_node *op) {
  (void)graph;
  (void)op;
  return 0;
}

/* The opposite of gathering: each rank of the atoms that the part is a coordinate on has another. */
static const char *infer_slice(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  int64_t axis = op->attrs[NX_slice_axis].integer, parts = op->attrs[NX_slice_parts].integer;
  const nx_attribute *part = &op->attrs[NX_slice_part];
  out[0] = *nxc_in(graph, op, 0);
  if (out[0].dims[axis] % parts != 0) return "the slices are not equal";
  out[0].dims[axis] /= parts;
  if (part->kind != NX_ATTRIBUTE_CONSTANT) return nxc_whole(&out[0]);
  const nxc_rank_number *number = &graph->tables->constants[part->constant];
  for (uint32_t i = 0; i < number->n_terms; i++)
    nxc_place_atoms(&out[0].placement, number->terms[i].atoms, (uint8_t)(NXC_SPLIT + axis));
  return nxc_whole(nxc_in(graph, op, 0));
}

const nxc_rule nxc_rule_slice = {.infer = infer_slice};
const nxc_rule nxc_rule_all_reduce = {
    .infer = infer_all_reduce, .grad = grad_all_reduce, .bytes = bytes_all_reduce};
const nxc_rule nxc_rule_all_gather = {
    .infer = infer_all_gather, .grad = grad_all_gather, .bytes = bytes_all_gather, .linear = true};
const nxc_rule nxc_rule_reduce_scatter = {
    .infer = infer_reduce_scatter, .grad = grad_reduce_scatter, .bytes = bytes_reduce_scatter};
const nxc_rule nxc_rule_all_to_all = {
    .infer = infer_all_to_all, .grad = grad_all_to_all, .bytes = bytes_all_to_all, .linear = true};
const nxc_rule nxc_rule_shift = {.infer = infer_shift, .bytes = bytes_shift};
const nxc_rule nxc_rule_wait = {.infer = infer_wait, .bytes = bytes_wait};
