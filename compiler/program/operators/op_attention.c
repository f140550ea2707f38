/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention, whose scores are never stored. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/graph/grad.h"

#include <string.h>

/* Heads may be divided; key heads may be copied where query heads are divided. The sequence is whole, or
 * divided over the ring around which the keys travel: the operator's group, of which it is the whole
 * attention before the ring pass, and one round of it afterwards. */
static const char *check_heads(const nxc_operator_node *op, const nxc_shape *q, const nxc_shape *k,
                               const nxc_shape *v) {
  const nxc_shape values = nxc_shape_with_last(v, nxc_shape_last(k));
  const char *fault = nxc_same(k, &values);
  for (int atom = 0; atom < NXC_N_ATOMS && fault == NULL; atom++) {
    uint8_t place_q = q->placement.at[atom], place_k = k->placement.at[atom];
    bool copied = place_q == NXC_SPLIT + 1 && place_k == NXC_REPLICATED;
    bool ring = op->group_atoms & 1u << atom;
    if (place_q != place_k && !copied) fault = "q and k are divided in ways that do not fit";
    if (place_q == NXC_PARTIAL || (place_q > NXC_SPLIT + 1 && !ring))
      fault = "attention needs whole sequences of whole sums";
    if (ring && place_q != NXC_SPLIT + 2) fault = "what the ring passes around is not divided over it";
  }
  return fault;
}

static nxc_shape output_shape(const nxc_shape *q, const nxc_shape *v) {
  nxc_shape shape = nxc_shape_of(q->dtype, 3, (int64_t[]){q->dims[0], q->dims[2], q->dims[1] * v->dims[3]});
  shape.placement = q->placement;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    if (q->placement.at[atom] == NXC_SPLIT + 1) shape.placement.at[atom] = NXC_SPLIT + 2;
    if (q->placement.at[atom] == NXC_SPLIT + 2) shape.placement.at[atom] = NXC_SPLIT + 1;
  }
  return shape;
}

static const char *infer_attention(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *q = nxc_in(graph, op, 0);
  out[0] = output_shape(q, nxc_in(graph, op, 2));
  out[1] = nxc_shape_without_last(q, NX_f32);
  return check_heads(op, q, nxc_in(graph, op, 1), nxc_in(graph, op, 2));
}

/* Appends the gradient as another operator, whose inputs behind lse are those behind the values, and gives
 * queries, keys and values theirs. False where nothing depends on the attention. */
static bool append_grad(nxc_grad *grad, const nxc_operator_node *op, nx_op gradient) {
  nxc_graph *graph = nxc_grad_graph(grad);
  nxc_id q = op->args[0], k = op->args[1], v = op->args[2];
  nxc_id o = op->args[op->n_in], lse = op->args[op->n_in + 1];
  nxc_id d_o = nxc_grad_of(grad, o);
  if (d_o == 0) return false;
  nxc_op_request request = {.op = gradient,
                            .of = {q, k, v},
                            .in = {d_o, q, k, v, nxc_grad_value(grad, o), nxc_grad_value(grad, lse)},
                            .group_atoms = op->group_atoms};
  memcpy(request.in + 6, op->args + 3, (op->n_in - 3) * sizeof *op->args); /* samples, and places */
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  nxc_append(graph, &request);
  const nxc_operator_node made = graph->operators[graph->n_operators - 1];
  for (uint32_t i = 0; i < 3; i++) nxc_grad_give(grad, op->args[i], made.args[made.n_in + i]);
  return true;
}

static void grad_attention(nxc_grad *grad, const nxc_operator_node *op) {
  append_grad(grad, op, NX_OP_attention_grad);
}

/* A key head that several ranks read has a summand of its gradient on each. */
static const char *infer_attention_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *q = nxc_in(graph, op, 1), *k = nxc_in(graph, op, 2), *v = nxc_in(graph, op, 3);
  const nxc_shape o = output_shape(q, v);
  out[0] = *q, out[1] = *k, out[2] = *v;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (q->placement.at[atom] != NXC_REPLICATED && k->placement.at[atom] == NXC_REPLICATED)
      out[1].placement.at[atom] = out[2].placement.at[atom] = NXC_PARTIAL;
  const char *fault = nxc_same(nxc_in(graph, op, 0), &o);
  return fault ? fault : check_heads(op, q, k, v);
}

enum { N_PRODUCTS = 2, N_GRAD_PRODUCTS = 5 };

/* Products of [S,d] and [S,K] per query head, and of [S,e] and [S,K], two operations for each score that
 * lives: half of them, in every round of a ring too, or those of the window. */
static uint64_t flops_of(const nxc_graph *graph, const nxc_operator_node *op, uint32_t first,
                         uint32_t n_key_products, uint32_t n_value_products) {
  const nxc_shape *q = nxc_in(graph, op, first), *k = nxc_in(graph, op, first + 1),
                  *v = nxc_in(graph, op, first + 2);
  int64_t keys = k->dims[2], window = op->attrs[NX_attention_window].integer;
  if (window > 0 && window < keys) keys = 2 * window - window * window / keys;
  uint64_t features = (uint64_t)(n_key_products * q->dims[3] + n_value_products * v->dims[3]), flops;
  bool many = __builtin_mul_overflow((uint64_t)nxc_shape_rows(q) * features, (uint64_t)keys, &flops);
  return many ? UINT64_MAX : flops; /* of lengths that are for looking at alone */
}

static uint64_t flops_attention(const nxc_graph *graph, const nxc_operator_node *op) {
  return flops_of(graph, op, 0, 1, 1);
}

static uint64_t flops_attention_grad(const nxc_graph *graph, const nxc_operator_node *op) {
  return flops_of(graph, op, 1, 3, 2);
}

static const char *infer_attention_merge(const nxc_graph *graph, const nxc_operator_node *op,
                                         nxc_shape *out) {
  for (uint32_t i = 0; i < 2; i++) {
    out[i] = *nxc_in(graph, op, i);
    const char *fault = nxc_same(&out[i], nxc_in(graph, op, i + 2));
    if (fault != NULL) return fault;
  }
  return nxc_whole(&out[0]);
}

const nxc_rule nxc_rule_attention = {
    .infer = infer_attention, .grad = grad_attention, .flops = flops_attention, .n_products = N_PRODUCTS,
    .suffixes = {NULL, "lse"}};
const nxc_rule nxc_rule_attention_grad = {
    .infer = infer_attention_grad, .flops = flops_attention_grad, .n_products = N_GRAD_PRODUCTS,
    .suffixes = {"dq", "dk", "dv"}};
const nxc_rule nxc_rule_attention_merge = {.infer = infer_attention_merge, .suffixes = {NULL, "lse"}};

/* ---- biases of distances ---- */

/* The table is whole on every rank. */
static void grad_relative(nxc_grad *grad, const nxc_operator_node *op) {
  if (!append_grad(grad, op, NX_OP_attention_relative_grad)) return;
  nxc_grad_add(grad, op->args[4], nxc_last_output(nxc_grad_graph(grad), 3));
}

/* A rank has a summand for each score of its heads and tokens. */
static const char *infer_relative_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *q = nxc_in(graph, op, 1), *table = nxc_in(graph, op, 7);
  out[3] = *table;
  out[3].dtype = NX_f32;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (q->placement.at[atom] != NXC_REPLICATED) out[3].placement.at[atom] = NXC_PARTIAL;
  return infer_attention_grad(graph, op, out);
}

const nxc_rule nxc_rule_attention_relative = {
    .infer = infer_attention, .grad = grad_relative, .flops = flops_attention, .n_products = N_PRODUCTS,
    .suffixes = {NULL, "lse"}};
const nxc_rule nxc_rule_attention_relative_grad = {
    .infer = infer_relative_grad, .flops = flops_attention_grad, .n_products = N_GRAD_PRODUCTS,
    .suffixes = {"dq", "dk", "dv", "dtable"}};

/* ---- blocks ---- */

static void grad_sparse(nxc_grad *grad, const nxc_operator_node *op) {
  append_grad(grad, op, NX_OP_attention_sparse_grad);
}

/* Of the blocks up to a query's own, the share that is read. */
static double density(const nxc_graph *graph, nxc_id blocks) {
  const nxc_shape *shape = &graph->values[blocks].shape;
  const int64_t *bits = NULL;
  int64_t n = nxc_shape_elements(shape), read = 0;
  for (size_t i = 0; i < graph->n_fixed; i++)
    if (graph->fixed[i].value == blocks) bits = graph->fixed[i].bits;
  for (int64_t i = 0; bits && i < n; i++) read += __builtin_popcountll((unsigned long long)bits[i]);
  double rows = (double)shape->dims[1];
  return bits ? (double)read / ((double)shape->dims[0] * rows * (rows + 1) / 2) : 1;
}

static uint64_t flops_sparse(const nxc_graph *graph, const nxc_operator_node *op) {
  return (uint64_t)((double)flops_attention(graph, op) * density(graph, op->args[4]));
}

static uint64_t flops_sparse_grad(const nxc_graph *graph, const nxc_operator_node *op) {
  return (uint64_t)((double)flops_attention_grad(graph, op) * density(graph, op->args[7]));
}

const nxc_rule nxc_rule_attention_sparse = {
    .infer = infer_attention, .grad = grad_sparse, .flops = flops_sparse, .n_products = N_PRODUCTS,
    .suffixes = {NULL, "lse"}};
const nxc_rule nxc_rule_attention_sparse_grad = {
    .infer = infer_attention_grad, .flops = flops_sparse_grad, .n_products = N_GRAD_PRODUCTS,
    .suffixes = {"dq", "dk", "dv"}};

/* ---- sinks ---- */

static const char *infer_sink(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  out[0] = *nxc_in(graph, op, 0);
  out[1] = *nxc_in(graph, op, 1);
  return nxc_whole(&out[0]);
}

/* With the gradient of o, and o and lse as they are with sinks, the attention's gradient is right as it is.
 */
static void grad_sink(nxc_grad *grad, const nxc_operator_node *op) {
  nxc_id o = op->args[3], lse = op->args[4], d_o = nxc_grad_of(grad, o);
  if (d_o == 0) return;
  nxc_op_request request = {.op = NX_OP_attention_sink_grad,
                            .in = {d_o, o, lse, op->args[2]},
                            .out = {nxc_grad_parameter(grad, op->args[2])},
                            .attrs = {[NX_attention_sink_grad_first] = op->attrs[NX_attention_sink_first]}};
  if (request.out[0]) nxc_grad_accumulate(grad, &request);
  nxc_grad_give(grad, op->args[0], d_o);
  nxc_grad_replace(grad, op->args[0], o);
  nxc_grad_replace(grad, op->args[1], lse);
}

/* A sum over tokens; ranks that have some heads of a divided set have summands of the others. */
static const char *infer_sink_grad(const nxc_graph *graph, const nxc_operator_node *op, nxc_shape *out) {
  const nxc_shape *o = nxc_in(graph, op, 1), *sinks = nxc_in(graph, op, 3);
  out[0] = *sinks;
  out[0].dtype = graph->types.grad;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (o->placement.at[atom] != NXC_REPLICATED && sinks->placement.at[atom] == NXC_REPLICATED)
      out[0].placement.at[atom] = NXC_PARTIAL;
  return nxc_same(nxc_in(graph, op, 0), o);
}

const nxc_rule nxc_rule_attention_sink = {
    .infer = infer_sink, .grad = grad_sink, .suffixes = {NULL, "lse"}};
const nxc_rule nxc_rule_attention_sink_grad = {.infer = infer_sink_grad};
