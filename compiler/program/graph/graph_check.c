/* SPDX-License-Identifier: Apache-2.0 */
/* The checker that runs after every pass. It knows no pass: it infers everything again from the rules. */
#include "compiler/program/graph/rules.h"

#include <string.h>

typedef struct check {
  nxc_graph *graph;
  bool *written; /* per root value */
} check;

static const char *value_name(const nxc_graph *graph, nxc_id value) {
  return graph->values[value].name;
}

static void check_inference(check *c, const nxc_operator_node *op) {
  nxc_graph *graph = c->graph;
  nxc_shape shapes[NX_MAX_ARGS] = {0};
  const char *name = nx_op_find(op->op)->name;
  const char *fault = nxc_rule_of(op->op)->infer(graph, op, shapes);
  if (fault != NULL) nxc_graph_fault(graph, "%s in %s: %s", name, op->origin, fault);
  for (uint32_t i = 0; i < op->n_out && fault == NULL; i++) {
    fault = nxc_same(&shapes[i], nxc_out(graph, op, i));
    if (fault != NULL)
      nxc_graph_fault(graph, "%s in %s: %s is not what follows: %s", name, op->origin,
                      value_name(graph, op->args[op->n_in + i]), fault);
  }
}

static void check_order(check *c, const nxc_operator_node *op) {
  nxc_graph *graph = c->graph;
  for (uint32_t i = 0; i < op->n_in; i++)
    if (!c->written[nxc_value_root(graph, op->args[i])] && !graph->values[op->args[i]].elsewhere)
      nxc_graph_fault(graph, "%s in %s reads %s before it is written", nx_op_find(op->op)->name, op->origin,
                      value_name(graph, op->args[i]));
  for (uint32_t i = 0; i < op->n_out; i++) c->written[nxc_value_root(graph, op->args[op->n_in + i])] = true;
}

/* A residual add of the model must not add summands; gradients may be added before they are summed over
 * ranks. */
static void check_sums(check *c, nxc_program_index program, const nxc_operator_node *op) {
  nxc_graph *graph = c->graph;
  if (program == NXC_FORWARD && op->op == NX_OP_add && nxc_whole(nxc_in(graph, op, 0)))
    nxc_graph_fault(graph, "a partial sum is added to the residual stream in %s", op->origin);
  for (uint32_t i = 0; i < op->n_out; i++) {
    const nxc_value_node *value = &graph->values[op->args[op->n_in + i]];
    bool trained =
        value->role == NXC_ROLE_PARAMETER || value->role == NXC_ROLE_MASTER || value->role == NXC_ROLE_STATE;
    if (trained && nxc_whole(&value->shape))
      nxc_graph_fault(graph, "%s is updated by a partial sum", value->name);
  }
}

/* Once the step exists: its results are whole, and each parameter's gradient lies in a range that is reduced
 * over exactly the atoms where the gradient is partial. */
static void check_step(check *c) {
  nxc_graph *graph = c->graph;
  const nxc_id results[] = {graph->loss_total, graph->grad_norm, graph->lr, graph->metrics_total};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (results[i] && nxc_whole(&graph->values[results[i]].shape))
      nxc_graph_fault(graph, "%s is a partial sum at the end of the step", value_name(graph, results[i]));
  for (size_t i = 0; i < graph->n_parameters; i++) {
    if (graph->values[graph->parameters[i]].frozen) continue;
    const nxc_value_node *gradient = &graph->values[graph->values[graph->parameters[i]].gradient];
    uint32_t partial = nxc_atoms_placed(&gradient->shape.placement, NXC_PARTIAL);
    const nxc_range_node *range = &graph->ranges[graph->values[graph->parameters[i]].range];
    if (range->pass_grad != gradient->view_of || range->group_atoms != partial ||
        nxc_whole(&graph->values[range->summed].shape))
      nxc_graph_fault(graph, "%s is reduced over other ranks than hold its summands", gradient->name);
  }
}

const char *nxc_graph_check(nxc_graph *graph) {
  check c = {graph, nxc_arena_array(graph->arena, graph->n_values, sizeof *c.written)};
  for (size_t i = 1; i < graph->n_values; i++) {
    const nxc_value_node *value = &graph->values[i];
    c.written[i] = value->view_of == 0 && value->role != NXC_ROLE_ACTIVATION &&
                   value->role != NXC_ROLE_GRADIENT && value->role != NXC_ROLE_SCALAR;
  }
  const nx_port received[] = {NX_PORT_INPUT, NX_PORT_OUTPUT_GRADIENT};
  for (size_t i = 0; i < sizeof received / sizeof *received; i++)
    if (graph->ports[received[i]]) c.written[graph->ports[received[i]]] = true;
  for (nxc_program_index program = 0; program < NXC_N_PROGRAMS && graph->fault == NULL; program++) {
    const nxc_program_list *list = &graph->programs[program];
    for (size_t i = 0; i < list->n && graph->fault == NULL; i++) {
      const nxc_operator_node *op = &graph->operators[list->operators[i]];
      check_inference(&c, op);
      check_order(&c, op);
      check_sums(&c, program, op);
    }
  }
  if (graph->programs[NXC_STEP].n && graph->fault == NULL) check_step(&c);
  return graph->fault;
}
