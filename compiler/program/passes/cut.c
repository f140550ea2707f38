/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"
#include "compiler/program/pipeline/pipeline.h"

typedef struct cut {
  const nxc_graph *graph;
  bool *needed; /* [roots]: the inputs' part reads it */
  const nxc_operator_node **writers;
  size_t n_writers; /* of the inputs' part, behind the operator that is looked at */
} cut;

static bool overlap(const nxc_graph *graph, nxc_id a, nxc_id b) {
  const nxc_value_node *x = &graph->values[a], *y = &graph->values[b];
  if (nxc_value_root(graph, a) != nxc_value_root(graph, b)) return false;
  if (x->shift != NX_NONE || y->shift != NX_NONE) return true;
  return x->view_offset < y->view_offset + nxc_shape_bytes(&y->shape) &&
         y->view_offset < x->view_offset + nxc_shape_bytes(&x->shape);
}

/* Whether a later operator of the inputs' part writes what this one reads or writes. */
static bool is_overwritten(const cut *c, const nxc_operator_node *op) {
  for (size_t w = 0; w < c->n_writers; w++)
    for (uint32_t out = 0; out < c->writers[w]->n_out; out++)
      for (uint32_t arg = 0; arg < op->n_in + op->n_out; arg++)
        if (overlap(c->graph, c->writers[w]->args[c->writers[w]->n_in + out], op->args[arg])) return true;
  return false;
}

static bool is_of_inputs(const cut *c, const nxc_operator_node *op) {
  for (uint32_t out = 0; out < op->n_out; out++)
    if (c->needed[nxc_value_root(c->graph, op->args[op->n_in + out])]) return true;
  return op->op == NX_OP_wait || op->op == NX_OP_fp8_history || is_overwritten(c, op);
}

/* What the stage before waits for; of the first chunk, what the embedding's gradient is made from. */
static void begin(cut *c, const nxc_program_list *list) {
  const nxc_graph *graph = c->graph;
  if (graph->ports[NX_PORT_INPUT_GRADIENT])
    c->needed[nxc_value_root(graph, graph->ports[NX_PORT_INPUT_GRADIENT])] = true;
  for (size_t i = 0; graph->is_first && i < list->n; i++) {
    const nxc_operator_node *op = &graph->operators[list->operators[i]];
    for (uint32_t in = 0; op->op == NX_OP_embedding_grad && in < op->n_in; in++)
      c->needed[nxc_value_root(graph, op->args[in])] = true;
  }
}

void nxc_cut_backward(nxc_graph *graph) {
  nxc_program_list *back = &graph->programs[NXC_BACKWARD], old = *back;
  cut c = {graph, nxc_arena_array(graph->arena, graph->n_values, sizeof *c.needed),
           nxc_arena_array(graph->arena, old.n + 1, sizeof *c.writers), 0};
  bool *stays = nxc_arena_array(graph->arena, old.n + 1, sizeof *stays);
  if (!graph->pipeline->cuts) return;
  begin(&c, &old);
  for (size_t i = old.n; i-- > 0;) {
    const nxc_operator_node *op = &graph->operators[old.operators[i]];
    if (!(stays[i] = is_of_inputs(&c, op))) continue;
    c.writers[c.n_writers++] = op;
    for (uint32_t in = 0; in < op->n_in; in++) c.needed[nxc_value_root(graph, op->args[in])] = true;
  }
  *back = (nxc_program_list){0};
  for (size_t i = 0; i < old.n; i++)
    nxc_program_push(graph, &graph->programs[stays[i] ? NXC_BACKWARD : NXC_WEIGHTS], old.operators[i]);
}
