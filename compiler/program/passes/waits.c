/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"

/* A collective that was started: an operator, and when its wait is to run. */
typedef struct pending {
  nxc_id operators[64];
  uint8_t when[64];
  size_t n;
} pending;

static void drop(pending *started, size_t index) {
  for (started->n--; index < started->n; index++) {
    started->operators[index] = started->operators[index + 1];
    started->when[index] = started->when[index + 1];
  }
}

/* Whether an operator may not run before the collective is complete: it touches the result, or writes the
 * input. */
static bool conflicts(const nxc_graph *graph, const nxc_operator_node *op,
                      const nxc_operator_node *collective) {
  nxc_id input = nxc_value_root(graph, collective->args[0]),
         result = nxc_value_root(graph, collective->args[1]);
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
    nxc_id root = nxc_value_root(graph, op->args[i]);
    if (root == result || (root == input && i >= op->n_in)) return true;
  }
  return false;
}

static void wait(nxc_graph *graph, nxc_program_list *list, pending *started, size_t index) {
  const nxc_operator_node *collective = &graph->operators[started->operators[index]];
  const nxc_operator_node op = {.op = NX_OP_wait,
                                .when = started->when[index],
                                .n_in = 1,
                                .args = {collective->args[1]},
                                .layer = collective->layer,
                                .origin = collective->origin};
  graph->operators =
      nxc_arena_grow(graph->arena, graph->operators, graph->n_operators, sizeof *graph->operators);
  graph->operators[graph->n_operators] = op;
  nxc_program_push(graph, list, (nxc_id)graph->n_operators++);
  drop(started, index);
}

static void wait_for(nxc_graph *graph, nxc_program_list *list, pending *started,
                     const nxc_operator_node *op) {
  for (size_t i = 0; i < started->n;) {
    if (conflicts(graph, op, &graph->operators[started->operators[i]]))
      wait(graph, list, started, i);
    else
      i++;
  }
}

/* The phases of a step are run apart (schema/plan.h): what one starts it completes. Evaluations run a part of
 * one. */
static void wait_for_phase(nxc_graph *graph, nxc_program_list *list, pending *started, uint8_t when) {
  for (size_t i = 0; i < started->n;) {
    if ((started->when[i] ^ when) & ~NX_WHEN_EVALUATED)
      wait(graph, list, started, i);
    else
      i++;
  }
}

/* A wait that was put there: stays if its collective is under way. */
static void keep_wait(nxc_graph *graph, nxc_program_list *list, pending *started, nxc_id index) {
  const nxc_operator_node *wait = &graph->operators[index];
  for (size_t i = 0; i < started->n; i++) {
    if (graph->operators[started->operators[i]].args[1] != wait->args[0] || started->when[i] != wait->when)
      continue;
    nxc_program_push(graph, list, index);
    drop(started, i);
    return;
  }
}

/* What may go on when the backward pass of the last micro-batch has ended: sums of gradients, whose places
 * outlive it. The first phase of the step waits for them. */
static bool outlives(const nxc_graph *graph, nxc_id index) {
  const nxc_operator_node *op = &graph->operators[index];
  return op->when == NX_WHEN_LAST &&
         graph->values[nxc_value_root(graph, op->args[0])].role == NXC_ROLE_GRADIENT &&
         graph->values[nxc_value_root(graph, op->args[1])].role == NXC_ROLE_GRADIENT;
}

static void end_program(nxc_graph *graph, nxc_program_index program, nxc_program_list *list,
                        pending *started) {
  for (size_t i = 0; i < started->n;) {
    if (program < NXC_BACKWARD || program == NXC_STEP || !outlives(graph, started->operators[i]))
      wait(graph, list, started, i);
    else
      started->when[i++] = NX_WHEN_FIRST;
  }
}

void nxc_waits(nxc_graph *graph) {
  pending started = {.n = 0};
  for (nxc_program_index program = 0; program <= NXC_STEP; program++) {
    const nxc_program_list old = graph->programs[program];
    nxc_program_list list = {0};
    for (size_t i = 0; i < old.n; i++) {
      const nxc_operator_node op = graph->operators[old.operators[i]];
      if (op.op == NX_OP_wait) {
        keep_wait(graph, &list, &started, old.operators[i]);
        continue;
      }
      if (program == NXC_STEP) wait_for_phase(graph, &list, &started, op.when);
      wait_for(graph, &list, &started, &op);
      nxc_program_push(graph, &list, old.operators[i]);
      if (!nx_op_is_collective(nx_op_find(op.op))) continue;
      if (started.n == sizeof started.operators / sizeof *started.operators) wait(graph, &list, &started, 0);
      started.when[started.n] = op.when;
      started.operators[started.n++] = old.operators[i];
    }
    end_program(graph, program, &list, &started);
    graph->programs[program] = list;
  }
}
