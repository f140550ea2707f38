/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/graph.h"

#include "compiler/program/graph/rules.h"

#include <assert.h>
#include <string.h>

nxc_graph *nxc_graph_new(nxc_arena *arena, const nxc_mesh *mesh, const nxc_precision *types) {
  nxc_graph *graph = nxc_arena_alloc(arena, sizeof *graph);
  *graph =
      (nxc_graph){.arena = arena, .mesh = *mesh, .types = *types, .layer = -1, .origin = ""};
  graph->tables = nxc_arena_alloc(arena, sizeof *graph->tables);
  *graph->tables = (nxc_tables){0};
  nxc_value_new(graph, "", NXC_ROLE_ACTIVATION, &(nxc_shape){.dtype = NX_u8, .dims = {1, 1, 1, 1}});
  return graph;
}

nxc_id nxc_value_new(nxc_graph *graph, const char *name, nxc_role role, const nxc_shape *shape) {
  graph->values = nxc_arena_grow(graph->arena, graph->values, graph->n_values, sizeof *graph->values);
  graph->values[graph->n_values] =
      (nxc_value_node){.name = name, .shape = *shape, .role = role, .shift = NX_NONE, .producer = NX_NONE};
  return (nxc_id)graph->n_values++;
}

nxc_id nxc_view_new(nxc_graph *graph, const char *name, nxc_id base, uint64_t offset,
                    const nxc_shape *shape) {
  nxc_id view = nxc_value_new(graph, name, graph->values[base].role, shape);
  assert(graph->values[base].view_of == 0);
  graph->values[view].view_of = base;
  graph->values[view].view_offset = offset;
  return view;
}

nxc_id nxc_value_root(const nxc_graph *graph, nxc_id value) {
  return graph->values[value].view_of ? graph->values[value].view_of : value;
}

void nxc_program_push(nxc_graph *graph, nxc_program_list *list, nxc_id op) {
  list->operators = nxc_arena_grow(graph->arena, list->operators, list->n, sizeof *list->operators);
  list->operators[list->n++] = op;
}

static const char *output_name(nxc_graph *graph, const nxc_rule *rule, const nxc_op_request *request,
                               uint32_t index) {
  if (index < 4 && request->of[index])
    return nxc_arena_printf(graph->arena, "%s.grad", graph->values[request->of[index]].name);
  const char *suffix = index < 4 ? rule->suffixes[index] : NULL;
  const char *name = request->name == NULL ? "" : request->name;
  const char *dot = *name && suffix != NULL ? "." : "";
  return nxc_arena_printf(graph->arena, "%s.%s%s%s", graph->origin, name, dot, suffix == NULL ? "" : suffix);
}

/* Makes the outputs that were not given, as inferred; a gradient without a placement takes the inferred
 * one. */
static void make_outputs(nxc_graph *graph, const nxc_op_request *request, nxc_operator_node *op,
                         nxc_id index) {
  const nxc_rule *rule = nxc_rule_of(op->op);
  nxc_shape shapes[NX_MAX_ARGS] = {0};
  const char *fault = rule->infer(graph, op, shapes);
  if (fault != NULL) nxc_graph_fault(graph, "%s of %s: %s", nx_op_find(op->op)->name, graph->origin, fault);
  for (uint32_t i = 0; i < op->n_out; i++) {
    nxc_id *out = &op->args[op->n_in + i];
    if (i == 0 && request->dtype) shapes[0].dtype = request->dtype;
    if (*out == 0)
      *out = nxc_value_new(graph, output_name(graph, rule, request, i), NXC_ROLE_ACTIVATION, &shapes[i]);
    nxc_value_node *value = &graph->values[*out];
    if (value->unplaced && op->op != NX_OP_fill) {
      value->shape.placement = shapes[i].placement;
      value->unplaced = false;
    }
    if (value->producer == NX_NONE) value->producer = index;
  }
}

/* Operators of a step have their phase among plain steps, compressed ones, or both. */
static uint8_t when_of(const nxc_graph *graph, uint8_t when) {
  if (when == 0) when = NX_WHEN_ALWAYS;
  uint8_t compressed = (uint8_t)((when & NX_WHEN_ALWAYS) << NX_WHEN_COMPRESSED);
  if (graph->program != NXC_STEP || !graph->compresses || graph->steps == NXC_STEPS_PLAIN) return when;
  return graph->steps == NXC_STEPS_COMPRESSED ? compressed : when | compressed;
}

nxc_id nxc_append(nxc_graph *graph, const nxc_op_request *request) {
  const nx_op_row *row = nx_op_find(request->op);
  nx_signature signature = nx_op_signature(row);
  nxc_operator_node op = {.op = request->op,
                          .when = when_of(graph, request->when),
                          .n_out = request->n_out ? request->n_out : signature.min_out,
                          .n_attrs = nx_op_n_attrs(row),
                          .group_atoms = request->group_atoms,
                          .stages = request->stages,
                          .layer = graph->layer,
                          .origin = graph->origin};
  while (op.n_in < NX_MAX_ARGS && request->in[op.n_in]) op.n_in++;
  assert(nx_signature_admits(&signature, op.n_in, op.n_out));
  memcpy(op.args, request->in, op.n_in * sizeof *op.args);
  memcpy(op.args + op.n_in, request->out, op.n_out * sizeof *op.args);
  memcpy(op.attrs, request->attrs, sizeof op.attrs);
  for (uint32_t i = 0; i < op.n_attrs; i++)
    if (op.attrs[i].kind == NX_ATTRIBUTE_INT && row->attrs[i].type == NX_REAL)
      op.attrs[i] = nxc_real((double)op.attrs[i].integer);
  nxc_id index = (nxc_id)graph->n_operators;
  make_outputs(graph, request, &op, index);
  graph->operators =
      nxc_arena_grow(graph->arena, graph->operators, graph->n_operators, sizeof *graph->operators);
  graph->operators[graph->n_operators++] = op;
  nxc_program_push(graph, &graph->programs[graph->program], index);
  return op.n_out ? op.args[op.n_in] : 0;
}

void nxc_graph_mark_inputs(const nxc_graph *graph, bool *is_input) {
  const nxc_id all[] = {
      graph->tokens,        graph->labels,     graph->positions,       graph->samples,   graph->step,
      graph->places,        graph->starts,     graph->weights,         graph->seen,      graph->later_labels,
      graph->later_weights, graph->loss_scale, graph->gradient_factor, graph->reference, graph->rewards,
      graph->updates,       graph->reductions};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) is_input[all[i]] = all[i] != 0;
  for (size_t i = 0; i < graph->n_fixed; i++) is_input[graph->fixed[i].value] = true;
}

nxc_id nxc_fixed_value_new(nxc_graph *graph, const char *name, const nxc_shape *shape, const int64_t *bits) {
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_INPUT, shape);
  graph->fixed = nxc_arena_grow(graph->arena, graph->fixed, graph->n_fixed, sizeof *graph->fixed);
  graph->fixed[graph->n_fixed++] = (nxc_fixed_value){value, bits};
  return value;
}

const nxc_operator_node *nxc_producer(const nxc_graph *graph, nxc_id value) {
  nxc_id producer = graph->values[value].producer;
  return producer == NX_NONE ? NULL : &graph->operators[producer];
}

int64_t nxc_n_trained(const nxc_graph *graph) {
  int64_t n = 0;
  for (size_t i = 0; i < graph->n_parameters; i++) n += !graph->values[graph->parameters[i]].frozen;
  return n;
}

nxc_id nxc_last_output(const nxc_graph *graph, uint32_t index) {
  const nxc_operator_node *op = &graph->operators[graph->n_operators - 1];
  assert(index < op->n_out);
  return op->args[op->n_in + index];
}

void nxc_graph_fault(nxc_graph *graph, const char *format, ...) {
  if (graph->fault != NULL) return;
  va_list args;
  va_start(args, format);
  graph->fault = nxc_arena_vprintf(graph->arena, format, args);
  va_end(args);
}

void nxc_clear_first(nxc_graph *graph, nxc_id value) {
  nxc_program_list *list = &graph->programs[NXC_FORWARD];
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill,
                                      .out = {value},
                                      .attrs = {nxc_real(0)},
                                      .when = graph->n_micro_batches > 1 ? NX_WHEN_FIRST : NX_WHEN_ALWAYS});
  nxc_id op = list->operators[list->n - 1];
  memmove(list->operators + 1, list->operators, (list->n - 1) * sizeof *list->operators);
  list->operators[0] = op;
}
