/* SPDX-License-Identifier: Apache-2.0 */
/* From features to heads, with rotation, and back. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

#include <string.h>

/* [B,S,n d] splits on features; [B,n,S,d] on heads. */
static nxc_placement features_to_heads(const nxc_placement *features) {
  nxc_placement heads = *features;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (features->at[atom] == NXC_SPLIT + 2) heads.at[atom] = NXC_SPLIT + 1;
    if (features->at[atom] == NXC_SPLIT + 1) heads.at[atom] = NXC_SPLIT + 2;
  }
  return heads;
}

static nxc_shape heads_of(const nxc_shape *x, int64_t heads, int64_t head_dim) {
  nxc_shape shape = nxc_shape_of(x->dtype, 4, (int64_t[]){x->dims[0], heads, x->dims[1], head_dim});
  shape.placement = features_to_heads(&x->placement);
  return shape;
}

static nxc_shape features_of(const nxc_shape *y, int64_t features) {
  nxc_shape shape = nxc_shape_of(y->dtype, 3, (int64_t[]){y->dims[0], y->dims[2], features});
  shape.placement = features_to_heads(&y->placement);
  return shape;
}

static const char *infer_split_qkv(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0);
  int64_t heads = op->attrs[NX_split_qkv_heads].integer, kv_heads = op->attrs[NX_split_qkv_kv_heads].integer;
  if (nxc_shape_last(x) % (heads + 2 * kv_heads) != 0) return "the heads do not divide the features";
  int64_t head_dim = nxc_shape_last(x) / (heads + 2 * kv_heads);
  out[0] = heads_of(x, heads, head_dim);
  out[1] = out[2] = heads_of(x, kv_heads, head_dim);
  return nxc_whole(x);
}

/* Frequencies stand behind the positions, on both ways. */
static nxc_id frequencies_of(const nxc_operator_node *op, uint32_t input) {
  return op->n_in > input ? op->args[input] : 0;
}

static void grad_split_qkv(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id d[3];
  for (uint32_t i = 0; i < 3; i++)
    if ((d[i] = nxc_grad_of(grad, op->args[op->n_in + i])) == 0) return;
  nxc_op_request request = {.op = NX_OP_merge_qkv,
                            .of = {op->args[0]},
                            .in = {d[0], d[1], d[2], op->args[1], frequencies_of(op, 2)}};
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_grad_give(grad, op->args[0], nxc_append(graph, &request));
}

static const char *infer_merge_qkv(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *q = nxc_in(graph, op, 0), *k = nxc_in(graph, op, 1), *v = nxc_in(graph, op, 2);
  out[0] = features_of(q, (q->dims[1] + 2 * k->dims[1]) * q->dims[3]);
  const char *fault = nxc_same(k, v);
  if (fault == NULL && !nxc_placement_equal(&q->placement, &k->placement))
    fault = "q and k have different placements";
  return fault ? fault : nxc_whole(q);
}

static const char *infer_split_heads(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0);
  int64_t heads = op->attrs[NX_split_heads_heads].integer;
  if (nxc_shape_last(x) % heads != 0) return "the heads do not divide the features";
  out[0] = heads_of(x, heads, nxc_shape_last(x) / heads);
  return nxc_whole(x);
}

static void grad_split_heads(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id dy = nxc_grad_of(grad, op->args[op->n_in]);
  if (dy == 0) return;
  nxc_op_request request = {
      .op = NX_OP_merge_heads, .of = {op->args[0]}, .in = {dy, op->args[1], frequencies_of(op, 2)}};
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_grad_give(grad, op->args[0], nxc_append(graph, &request));
}

/* What all heads share is on every rank; which of them a rank has is told by the other features alone. */
static const char *infer_split_latent(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *x = nxc_in(graph, op, 0), *shared = nxc_in(graph, op, 1);
  int64_t heads = op->attrs[NX_split_latent_heads].integer,
          values = op->attrs[NX_split_latent_values].integer;
  if (nxc_shape_last(x) % heads != 0) return "the heads do not divide the features";
  out[0] = heads_of(x, heads, nxc_shape_last(x) / heads - values + nxc_shape_last(shared));
  out[1] = heads_of(x, heads, values);
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    bool own = x->placement.at[atom] == NXC_SPLIT + 2;
    if (shared->placement.at[atom] != (own ? NXC_REPLICATED : x->placement.at[atom]))
      return "what heads share is divided in another way";
  }
  return nxc_whole(x);
}

static void grad_split_latent(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id dk = nxc_grad_of(grad, op->args[op->n_in]), dv = nxc_grad_of(grad, op->args[op->n_in + 1]);
  if (dk == 0 || dv == 0) return;
  nxc_op_request request = {.op = NX_OP_merge_latent,
                            .of = {op->args[0], op->args[1]},
                            .in = {dk, dv, op->args[2], frequencies_of(op, 3)}};
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_id dx = nxc_append(graph, &request), dshared = nxc_last_output(graph, 1);
  nxc_grad_give(grad, op->args[0], dx);
  nxc_grad_give(grad, op->args[1], dshared);
}

/* A rank's heads give a summand of the gradient of what all share. */
static const char *infer_merge_latent(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dk = nxc_in(graph, op, 0), *dv = nxc_in(graph, op, 1);
  const nx_attribute *attrs = op->attrs;
  int64_t shared = attrs[NX_merge_latent_shared].integer;
  out[0] = features_of(dk, dk->dims[1] * (dk->dims[3] - shared + dv->dims[3]));
  out[1] = features_of(dk, shared);
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (dk->placement.at[atom] == NXC_SPLIT + 1) out[1].placement.at[atom] = NXC_PARTIAL;
  if (!nxc_placement_equal(&dk->placement, &dv->placement)) return "dk and dv have different placements";
  return nxc_whole(dk);
}

/* Linear: a sum still to be made stays one. */
static const char *infer_merge_heads(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *dy = nxc_in(graph, op, 0);
  out[0] = features_of(dy, dy->dims[1] * dy->dims[3]);
  return NULL;
}

static const char *infer_rotate(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  return NULL;
}

static void grad_rotate(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id dy = nxc_grad_of(grad, op->args[op->n_in]);
  if (dy == 0) return;
  nxc_op_request request = {
      .op = NX_OP_rotate, .of = {op->args[0]}, .in = {dy, op->args[1], frequencies_of(op, 2)}};
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  request.attrs[NX_rotate_backward] = nxc_integer(1);
  nxc_grad_give(grad, op->args[0], nxc_append(nxc_grad_graph(grad), &request));
}

const nxc_rule nxc_rule_rotate = {.infer = infer_rotate, .grad = grad_rotate, .linear = true};
const nxc_rule nxc_rule_split_qkv = {
    .infer = infer_split_qkv, .grad = grad_split_qkv, .suffixes = {"q", "k", "v"}};
const nxc_rule nxc_rule_merge_qkv = {.infer = infer_merge_qkv};
const nxc_rule nxc_rule_split_latent = {
    .infer = infer_split_latent, .grad = grad_split_latent, .suffixes = {"k", "v"}};
const nxc_rule nxc_rule_merge_latent = {.infer = infer_merge_latent};
const nxc_rule nxc_rule_split_heads = {.infer = infer_split_heads, .grad = grad_split_heads, .linear = true};
const nxc_rule nxc_rule_merge_heads = {.infer = infer_merge_heads};
