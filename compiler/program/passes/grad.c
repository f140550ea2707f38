/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/fp8.h"
#include "compiler/program/graph/grad.h"
#include "compiler/program/pipeline/ports.h"

#include <assert.h>

/* Readers of a value: products and adapters of queries, keys, values, gate and up, where both branches read
 * it. */
enum { MAX_GIVEN = 16 };

struct nxc_grad {
  nxc_graph *graph;
  nx_op op; /* of the forward operator whose gradient is being built */
  double loss_scale;
  size_t n_forward_values; /* values made later have no gradients */
  nxc_id (*given)[MAX_GIVEN]; /* per value: summands, not yet added up; 0 ends */
  nxc_id *replaced_by;     /* per value; 0: none */
};

nxc_graph *nxc_grad_graph(nxc_grad *grad) {
  return grad->graph;
}

void nxc_grad_replace(nxc_grad *grad, nxc_id value, nxc_id by) {
  grad->replaced_by[value] = by;
}

nxc_id nxc_grad_value(const nxc_grad *grad, nxc_id value) {
  return grad->replaced_by[value] ? grad->replaced_by[value] : value;
}

double nxc_grad_loss_scale(const nxc_grad *grad) {
  return grad->loss_scale;
}

void nxc_grad_give(nxc_grad *grad, nxc_id value, nxc_id gradient) {
  if (grad->graph->values[value].role != NXC_ROLE_ACTIVATION) return;
  assert(value < grad->n_forward_values);
  int at = 0;
  while (at < MAX_GIVEN && grad->given[value][at]) at++;
  assert(at < MAX_GIVEN);
  grad->given[value][at] = gradient;
}

static uint32_t partial_atoms(const nxc_graph *graph, nxc_id value) {
  return nxc_atoms_placed(&graph->values[value].shape.placement, NXC_PARTIAL);
}

static nxc_id reduce(nxc_graph *graph, nxc_id of, nxc_id value, uint32_t atoms) {
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                             .of = {of},
                                             .in = {value},
                                             .dtype = graph->values[of].shape.dtype,
                                             .group_atoms = atoms});
}

/* One operator's input gradients may come partial from several products: those are added before they are
 * summed over the ranks. */
static nxc_id add_up(nxc_grad *grad, nxc_id value, uint32_t partial, nxc_id *whole) {
  nxc_graph *graph = grad->graph;
  nxc_id sum = 0;
  *whole = 0;
  for (int i = 0; i < MAX_GIVEN && grad->given[value][i]; i++) {
    nxc_id summand = grad->given[value][i];
    nxc_id *to = partial_atoms(graph, summand) == partial ? &sum : whole;
    *to = *to == 0
              ? summand
              : nxc_append(graph, &(nxc_op_request){.op = NX_OP_add, .of = {value}, .in = {*to, summand}});
  }
  return sum;
}

static bool takes_partial(const nxc_graph *graph, const nxc_operator_node *producer, nxc_id value) {
  const nxc_rule *rule = nxc_rule_of(producer->op);
  if (nxc_fp8_product_of(graph, value)) return false; /* sums are rounded, not summands */
  return rule->linear || (rule->linear_of_heads && graph->values[value].shape.n_dims == NX_MAX_DIMS);
}

nxc_id nxc_grad_of(nxc_grad *grad, nxc_id value) {
  nxc_graph *graph = grad->graph;
  if (grad->given[value][0] == 0) return 0;
  uint32_t partial = 0;
  for (int i = 0; i < MAX_GIVEN && grad->given[value][i]; i++)
    partial |= partial_atoms(graph, grad->given[value][i]);
  nxc_id whole, sum = add_up(grad, value, partial, &whole);
  const nxc_operator_node *producer = nxc_producer(graph, value);
  bool may_stay = producer != NULL && whole == 0 && takes_partial(graph, producer, value);
  if (partial && !may_stay) sum = reduce(graph, value, sum, partial);
  if (whole) sum = nxc_append(graph, &(nxc_op_request){.op = NX_OP_add, .of = {value}, .in = {sum, whole}});
  grad->given[value][0] = sum;
  for (int i = 1; i < MAX_GIVEN; i++) grad->given[value][i] = 0;
  return sum;
}

static nxc_id new_gradient(nxc_graph *graph, const char *name, const nxc_shape *like) {
  nxc_shape shape = *like;
  shape.dtype = graph->types.grad;
  nxc_id gradient = nxc_value_new(graph, name, NXC_ROLE_GRADIENT, &shape);
  graph->values[gradient].unplaced = true;
  return gradient;
}

/* A matrix that is embedding and output has an accumulator for either use, which are added once: so it makes
 * no difference whether one stage has both. */
nxc_id nxc_grad_parameter(nxc_grad *grad, nxc_id parameter) {
  nxc_graph *graph = grad->graph;
  const nxc_shape shape = graph->values[parameter].shape;
  if (graph->values[parameter].frozen || graph->values[parameter].role != NXC_ROLE_PARAMETER) return 0;
  if (parameter == graph->tied && grad->op != NX_OP_embedding) {
    if (graph->tied_gradient == 0) graph->tied_gradient = new_gradient(graph, "output.weight.grad", &shape);
    return graph->tied_gradient;
  }
  if (graph->values[parameter].gradient) return graph->values[parameter].gradient;
  const char *name = nxc_arena_printf(graph->arena, "%s.grad", graph->values[parameter].name);
  nxc_id gradient = new_gradient(graph, name, &shape);
  graph->values[parameter].gradient = gradient;
  return gradient;
}


static bool first_writer(const nxc_grad *grad, nxc_id parameter_gradient) {
  return grad->graph->values[parameter_gradient].producer == NX_NONE;
}

/* Whether a pass begins the gradient anew and hands it over at its end, instead of adding to the passes
 * before. */
static bool is_of_one_pass(const nxc_graph *graph, nxc_id gradient) {
  return graph->in_pairs || graph->votes ||
         (graph->divides_gradients && (partial_atoms(graph, gradient) & graph->shard_axis) != 0);
}

/* The outputs that are gradients of parameters are all of one operator, so all or none of them are written
 * first. */
void nxc_grad_accumulate(nxc_grad *grad, nxc_op_request *request) {
  uint32_t accumulate = nx_op_accumulate(nx_op_find(request->op));
  nxc_graph *graph = grad->graph;
  nxc_id gradient = 0;
  for (int i = 0; i < NX_MAX_ARGS; i++)
    if (request->out[i] && graph->values[request->out[i]].role == NXC_ROLE_GRADIENT)
      gradient = request->out[i];
  if (gradient == 0 && request->out[0] == 0 && request->of[0] == 0) return;
  bool first = gradient && first_writer(grad, gradient);
  request->attrs[accumulate] = nxc_integer(gradient && !first);
  request->when = NX_WHEN_ALWAYS;
  nxc_append(graph, request);
  nxc_operator_node op = graph->operators[graph->n_operators - 1];
  if (first && graph->n_micro_batches > 1 && !is_of_one_pass(graph, gradient)) {
    graph->operators[graph->n_operators - 1].when = NX_WHEN_FIRST;
    for (uint32_t i = 0; i < op.n_out; i++) request->out[i] = op.args[op.n_in + i];
    request->attrs[accumulate] = nxc_integer(1);
    request->when = NX_WHEN_MIDDLE | NX_WHEN_LAST;
    nxc_append(graph, request);
  }
}

void nxc_grad_scatter(nxc_grad *grad, const nxc_op_request *request) {
  nxc_graph *graph = grad->graph;
  nxc_id gradient = request->out[0], cleared = NX_NONE;
  if (gradient == 0) return;
  if (first_writer(grad, gradient)) {
    cleared = (nxc_id)graph->n_operators;
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill, .out = {gradient}, .attrs = {nxc_real(0)}});
  }
  nxc_append(graph, request);
  if (cleared != NX_NONE && graph->n_micro_batches > 1 && !is_of_one_pass(graph, gradient))
    graph->operators[cleared].when = NX_WHEN_FIRST;
}

void nxc_grad_add(nxc_grad *grad, nxc_id parameter, nxc_id summand) {
  nxc_graph *graph = grad->graph;
  nxc_id gradient = nxc_grad_parameter(grad, parameter);
  if (gradient == 0) return;
  nxc_value_node *value = &graph->values[gradient];
  if (value->unplaced) value->shape.placement = graph->values[summand].shape.placement;
  value->unplaced = false;
  nxc_grad_scatter(
      grad, &(nxc_op_request){.op = NX_OP_add, .in = {gradient, summand}, .out = {gradient}});
}

static void add_tied(nxc_graph *graph) {
  if (graph->tied_gradient == 0) return;
  nxc_id gradient = graph->values[graph->tied].gradient;
  bool of_one_pass = is_of_one_pass(graph, graph->tied_gradient);
  if (of_one_pass) graph->values[graph->tied_gradient].role = NXC_ROLE_ACTIVATION;
  graph->origin = "output";
  graph->layer = -1;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_add,
                                      .in = {gradient, graph->tied_gradient},
                                      .out = {gradient},
                                      .when = graph->n_micro_batches > 1 && !of_one_pass ? NX_WHEN_LAST
                                                                                         : NX_WHEN_ALWAYS});
}

void nxc_grad_build(nxc_graph *graph, double loss_scale) {
  nxc_grad grad = {.graph = graph, .loss_scale = loss_scale, .n_forward_values = graph->n_values};
  grad.given = nxc_arena_array(graph->arena, graph->n_values, sizeof *grad.given);
  grad.replaced_by = nxc_arena_array(graph->arena, graph->n_values, sizeof *grad.replaced_by);
  graph->program = NXC_BACKWARD;
  if (graph->output) nxc_grad_give(&grad, graph->output, graph->output_gradient);
  for (size_t i = graph->programs[NXC_FORWARD].n; i-- > 0;) {
    nxc_operator_node op = graph->operators[graph->programs[NXC_FORWARD].operators[i]];
    if (!(op.when & NX_WHEN_FIRST)) continue; /* the same operator for later micro-batches */
    graph->origin = op.origin;
    graph->layer = op.layer;
    const nxc_rule *rule = nxc_rule_of(op.op);
    grad.op = op.op;
    if (rule->grad != NULL) rule->grad(&grad, &op);
  }
  add_tied(graph);
  nxc_fp8_remember(graph, NXC_FP8_GRADIENT);
  if (graph->input) nxc_port_send(graph, NX_PORT_INPUT_GRADIENT, nxc_grad_of(&grad, graph->input));
}
