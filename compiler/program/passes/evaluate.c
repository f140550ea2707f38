/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation program: the part of the forward program that the loss hangs on, on the same values at
 * the same places. It runs between steps, when no micro-batch is in flight, so it needs no memory of its
 * own, and gives the loss that training would give. What only training does is left out: dropout,
 * noise of quantized weights, sinkhorn's routing, and whatever only the backward pass reads. */
#include "compiler/program/passes/passes.h"

typedef struct evaluation {
  nxc_graph *graph;
  const nxc_training *t;
  bool *wanted; /* per root value: what comes later reads it */
  nxc_id *as;   /* per value: by what it is read instead, 0: itself */
} evaluation;

static bool *wanted(const evaluation *e, nxc_id value) {
  return &e->wanted[nxc_value_root(e->graph, value)];
}

static bool is_kept(const evaluation *e, const nxc_operator_node *op) {
  if (op->op == NX_OP_wait) return *wanted(e, op->args[0]);
  for (uint32_t i = 0; i < op->n_out; i++)
    if (*wanted(e, op->args[op->n_in + i])) return true;
  return false;
}

/* Operators that give what is wanted, from the last to the first. */
static void find_kept(evaluation *e, bool *kept) {
  const nxc_graph *graph = e->graph;
  const nxc_program_list *forward = &graph->programs[NXC_FORWARD];
  nxc_id output = graph->ports[NX_PORT_OUTPUT];
  *wanted(e, graph->loss) = true;
  if (graph->metrics) *wanted(e, graph->metrics) = true;
  if (output) *wanted(e, output) = true;
  for (size_t i = forward->n; i-- > 0;) {
    const nxc_operator_node *op = &graph->operators[forward->operators[i]];
    kept[i] = is_kept(e, op);
    for (uint32_t in = 0; kept[i] && in < op->n_in; in++) *wanted(e, op->args[in]) = true;
  }
}

/* Dropout or noise that writes over its input is left out; elsewhere what follows reads the copy that it
 * makes. */
static bool is_left_out(evaluation *e, nxc_operator_node *op) {
  nxc_graph *graph = e->graph;
  if (op->op != NX_OP_dropout && op->op != NX_OP_jitter) return false;
  nxc_id x = op->args[0], y = op->args[op->n_in];
  if (nxc_value_root(graph, x) == nxc_value_root(graph, y)) {
    e->as[y] = x;
    return true;
  }
  *op = (nxc_operator_node){.op = NX_OP_cast, .when = op->when, .n_in = 1, .n_out = 1, .args = {x, y},
                            .layer = op->layer, .origin = op->origin};
  return false;
}

static void adapt_routing(const nxc_training *t, nxc_operator_node *op) {
  const nxc_mixture *mixture = nxc_model_layer(&t->model, op->layer)->ffn.mixture;
  int64_t capacity = nxc_mixture_evaluation_capacity(mixture, t->batch.micro * t->model.sequence);
  op->attrs[NX_moe_route_sinkhorn] = nxc_integer(0);
  op->attrs[NX_moe_route_capacity] = nxc_integer(capacity);
}

/* The operator as an evaluation runs it. Absent samples weigh nothing, so that a set need not be whole
 * batches. */
static void adapt(const evaluation *e, nxc_operator_node *op) {
  if (nx_op_find(op->op)->class == NX_ATTENTION) op->attrs[NX_attention_dropout] = nxc_real(0);
  if (e->t->lora.base && op->op == e->t->lora.base->op) op->attrs[NX_dequantize_nf4_noise] = nxc_real(0);
  if (op->op == NX_OP_moe_route) adapt_routing(e->t, op);
  if (op->op == NX_OP_ce_loss && op->n_in == 1 && e->graph->weights) {
    op->args[3] = op->args[2], op->args[2] = op->args[1], op->args[1] = e->graph->weights;
    op->n_in = 2;
  }
}

static void keep(evaluation *e, nxc_id index) {
  nxc_graph *graph = e->graph;
  nxc_operator_node op = graph->operators[index];
  for (uint32_t in = 0; in < op.n_in; in++)
    if (e->as[op.args[in]]) op.args[in] = e->as[op.args[in]];
  if (is_left_out(e, &op)) return;
  adapt(e, &op);
  graph->operators =
      nxc_arena_grow(graph->arena, graph->operators, graph->n_operators, sizeof *graph->operators);
  graph->operators[graph->n_operators] = op;
  nxc_program_push(graph, &graph->programs[NXC_EVALUATE], (nxc_id)graph->n_operators++);
}

void nxc_evaluate_build(nxc_graph *graph, const nxc_training *t) {
  if (!t->evaluates) return;
  evaluation e = {.graph = graph, .t = t};
  const nxc_program_list forward = graph->programs[NXC_FORWARD];
  if (graph->weights == 0 && t->evaluations.n > 0) {
    nxc_shape shape = graph->values[graph->labels].shape;
    shape.dtype = NX_f32;
    graph->weights = nxc_value_new(graph, "weights", NXC_ROLE_INPUT, &shape);
  }
  e.wanted = nxc_arena_array(graph->arena, graph->n_values, sizeof *e.wanted);
  e.as = nxc_arena_array(graph->arena, graph->n_values, sizeof *e.as);
  bool *kept = nxc_arena_array(graph->arena, forward.n, sizeof *kept);
  find_kept(&e, kept);
  for (size_t i = 0; i < forward.n; i++)
    if (kept[i]) keep(&e, forward.operators[i]);
}
