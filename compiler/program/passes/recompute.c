/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/rules.h"
#include "compiler/program/passes/passes.h"

#include <string.h>

/* Modules that recompute.modules may name, and the parts of a layer that they mean: NULL, all of them. Scores
 * of the attention are never kept, so there is nothing to recompute for its core. */
static const struct {
  const char *module, *part;
  bool activation; /* nothing but the activation function of the part */
} modules[] = {
    {"core_attn", "", false},
    {"attention", "attention", false},
    {"mlp", "ffn", false},
    {"moe", "ffn", false},
    {"shared_experts", "ffn", false},
    {"moe_act", "ffn", true},
    {"layernorm", "attention_norm", false},
    {"layernorm", "ffn_norm", false},
    {"layer", NULL, false},
};

bool nxc_recompute_knows(const char *module) {
  for (size_t m = 0; m < sizeof modules / sizeof *modules; m++)
    if (strcmp(modules[m].module, module) == 0) return true;
  return false;
}

typedef struct recompute {
  nxc_graph *graph;
  const nxc_training *t;
  nxc_id *clone; /* per forward value: its clone in the backward program, 0: none yet */
  bool *dropped; /* per forward value: is to be computed again */
  nxc_id *slice; /* per forward value: what this rank keeps of it, 0: all or nothing */
  nxc_program_list backward;
} recompute;

static bool is_of_class(const nxc_operator_node *op, nx_op_class class) {
  return nx_op_find(op->op)->class == class;
}

static bool is_named(const nxc_training *t, const nxc_operator_node *op) {
  const char *dot = strrchr(op->origin, '.'), *part = dot == NULL ? op->origin : dot + 1;
  for (size_t i = 0; i < t->recomputation.n_modules; i++)
    for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
      if (strcmp(modules[m].module, t->recomputation.modules[i].text) != 0) continue;
      bool of_part = modules[m].part == NULL || strcmp(modules[m].part, part) == 0;
      if (of_part && (!modules[m].activation || is_of_class(op, NX_ACTIVATION))) return true;
    }
  return false;
}

/* Layers before this one in its chunk. */
static int64_t place_of(const nxc_graph *graph, const nxc_operator_node *op) {
  return op->layer - graph->first_layer;
}

/* Whether what this operator writes is dropped after the forward pass. Of what was gathered along the
 * sequence each rank keeps its own part and gathers again, else sequence parallelism would save little. */
static bool drops(const recompute *r, const nxc_operator_node *op) {
  const nxc_training *t = r->t;
  if (t->lora.base && op->op == t->lora.base->op) return true; /* else nothing would be saved */
  if (op->op == NX_OP_fp8_round) return true;
  if (op->op == NX_OP_fp8_amax && r->graph->values[op->args[0]].memory) return false; /* it is another then */
  if (t->layout.sequence_parallel && op->op == NX_OP_all_gather) return true;
  if (op->layer < 0) return false;
  const nxc_recomputation *again = &t->recomputation;
  if (again->full) return !again->block || place_of(r->graph, op) < again->layers;
  return is_named(t, op) && !is_of_class(op, NX_ATTENTION) && op->op != NX_OP_add;
}

/* Whether the last value of a layer, which is the next one's input, is kept: within a group of layers that
 * are computed again together it is not. Layers that predict further tokens are a group each. */
static bool ends_group(const recompute *r, const nxc_operator_node *op) {
  const nxc_graph *graph = r->graph;
  bool grouped = r->t->recomputation.full && !r->t->recomputation.block && op->layer >= 0;
  if (!grouped || op->layer + 1 >= graph->first_layer + graph->n_layers) return true;
  return (place_of(graph, op) + 1) % r->t->recomputation.layers == 0;
}

/* This rank's slice of the sequence of a value that all tensor-parallel ranks hold. */
static void keep_slice(recompute *r, nxc_id value) {
  nxc_graph *graph = r->graph;
  uint32_t tensor = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR), n = nxc_mesh_size(&graph->mesh, tensor);
  const nxc_shape *shape = &graph->values[value].shape;
  bool whole = (nxc_atoms_placed(&shape->placement, NXC_REPLICATED) & tensor) == tensor;
  if (!whole || shape->n_dims != 3 || shape->dims[1] % n != 0) return;
  nxc_rank_number part = nxc_rank_number_tensor(graph, 0, 1);
  r->slice[value] = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_slice,
                               .name = "kept",
                               .in = {value},
                               .attrs = {[NX_slice_axis] = nxc_integer(1),
                                         [NX_slice_parts] = nxc_integer(n),
                                         [NX_slice_part] = nxc_attribute(graph, &part)}});
}

/* The inputs of what is computed again are kept in slices. */
static void keep_slices(recompute *r) {
  nxc_graph *graph = r->graph;
  const nxc_program_list forward = graph->programs[NXC_FORWARD];
  graph->program = NXC_FORWARD;
  graph->programs[NXC_FORWARD] = (nxc_program_list){0};
  for (size_t i = 0; i < forward.n; i++) {
    nxc_program_push(graph, &graph->programs[NXC_FORWARD], forward.operators[i]);
    if (i + 1 == forward.n) break;
    const nxc_operator_node op = graph->operators[forward.operators[i]];
    const nxc_operator_node *next = &graph->operators[forward.operators[i + 1]];
    if (next->layer == op.layer || !drops(r, next) || op.n_out == 0 || r->dropped[op.args[op.n_in]]) continue;
    graph->origin = op.origin;
    graph->layer = op.layer;
    keep_slice(r, op.args[op.n_in]);
  }
}

static nxc_id gathered(recompute *r, nxc_id value) {
  nxc_graph *graph = r->graph;
  graph->program = NXC_BACKWARD;
  graph->origin = graph->operators[graph->values[value].producer].origin;
  r->clone[value] =
      nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                          .name = "again",
                                          .in = {r->slice[value]},
                                          .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                          .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR)});
  nxc_program_push(graph, &r->backward, (nxc_id)graph->n_operators - 1);
  return r->clone[value];
}

static void mark_dropped(recompute *r) {
  nxc_graph *graph = r->graph;
  const nxc_program_list *forward = &graph->programs[NXC_FORWARD];
  for (size_t i = 0; i < forward->n; i++) {
    const nxc_operator_node *op = &graph->operators[forward->operators[i]];
    bool next_is_another =
        i + 1 == forward->n || graph->operators[forward->operators[i + 1]].layer != op->layer;
    bool kept = next_is_another && ends_group(r, op);
    for (uint32_t out = 0; out < op->n_out; out++)
      r->dropped[op->args[op->n_in + out]] = drops(r, op) && !kept;
  }
}

/* The value itself where it is kept, else its clone; appends what is needed to have it. */
static nxc_id available(recompute *r, nxc_id value, size_t n_forward_values) {
  nxc_graph *graph = r->graph;
  if (value >= n_forward_values || (!r->dropped[value] && !r->slice[value])) return value;
  if (r->clone[value]) return r->clone[value];
  if (r->slice[value]) return gathered(r, value);
  nxc_operator_node op = graph->operators[graph->values[value].producer];
  nxc_operator_node copy = op;
  for (uint32_t i = 0; i < op.n_in; i++) copy.args[i] = available(r, op.args[i], n_forward_values);
  for (uint32_t i = 0; i < op.n_out; i++) {
    nxc_id original = op.args[op.n_in + i];
    const char *name = nxc_arena_printf(graph->arena, "%s.again", graph->values[original].name);
    const nxc_shape shape = graph->values[original].shape;
    nxc_id clone = nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
    graph->values[clone].producer = (nxc_id)graph->n_operators;
    copy.args[op.n_in + i] = r->clone[original] = clone;
  }
  graph->operators =
      nxc_arena_grow(graph->arena, graph->operators, graph->n_operators, sizeof *graph->operators);
  graph->operators[graph->n_operators] = copy;
  nxc_program_push(graph, &r->backward, (nxc_id)graph->n_operators++);
  return r->clone[value];
}

void nxc_recompute(nxc_graph *graph, const nxc_training *training) {
  if (!training->recomputation.full && training->recomputation.n_modules == 0 &&
      !training->layout.sequence_parallel && training->lora.base == NULL && !training->types.fp8.used)
    return;
  size_t n_values = graph->n_values;
  recompute r = {.graph = graph, .t = training};
  r.clone = nxc_arena_array(graph->arena, n_values, sizeof *r.clone);
  r.dropped = nxc_arena_array(graph->arena, n_values, sizeof *r.dropped);
  r.slice = nxc_arena_array(graph->arena, n_values, sizeof *r.slice);
  mark_dropped(&r);
  if (training->recomputation.distribute) keep_slices(&r);
  const nxc_program_list old = graph->programs[NXC_BACKWARD];
  for (size_t i = 0; i < old.n; i++) {
    nxc_id index = old.operators[i];
    for (uint32_t in = 0; in < graph->operators[index].n_in; in++) {
      nxc_id value = available(&r, graph->operators[index].args[in], n_values);
      graph->operators[index].args[in] = value;
    }
    nxc_program_push(graph, &r.backward, index);
  }
  graph->programs[NXC_BACKWARD] = r.backward;
}
