/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes.h"
#include "compiler/program/rules.h"

#include <string.h>

/* Names of modules in recompute.modules, and the parts of a layer that they mean. Attention scores are never
 * kept, so there is nothing to recompute for the core of the attention. */
static const struct {
  const char *module, *part;
} modules[] = {
    {"CoreAttention", NULL},
    {"core_attn", NULL},
    {"attention", "attention"},
    {"ParallelAttention", "attention"},
    {"self_attention", "attention"},
    {"mlp", "ffn"},
    {"MLP", "ffn"},
    {"ParallelMLP", "ffn"},
    {"norm", "attention_norm"},
    {"norm", "ffn_norm"},
    {"layernorm", "attention_norm"},
    {"layernorm", "ffn_norm"},
};

typedef struct recompute {
  nxc_graph *graph;
  const nxc_training *t;
  nxc_id *clone; /* per forward value: its clone in the backward program, 0: none yet */
  bool *dropped; /* per forward value: is to be computed again */
  nxc_program_list backward;
} recompute;

static bool names_part(const nxc_training *t, const char *part) {
  for (size_t i = 0; i < t->n_recompute_modules; i++)
    for (size_t m = 0; m < sizeof modules / sizeof *modules; m++)
      if (modules[m].part != NULL && strcmp(modules[m].part, part) == 0 &&
          strcmp(modules[m].module, t->recompute_modules[i].text) == 0)
        return true;
  return false;
}

/* Whether what this operator writes is dropped after the forward pass. The last value of a layer is the next
 * one's input, and is kept. Of what was gathered along the sequence each rank keeps its own part and gathers
 * again, else sequence parallelism would save little. */
static bool drops(const nxc_training *t, const nxc_operator_node *op) {
  if (t->sequence_parallel && op->op == NX_OP_all_gather) return true;
  if (op->layer < 0) return false;
  if (t->recompute_full) return true;
  const char *dot = strrchr(op->origin, '.');
  return names_part(t, dot == NULL ? op->origin : dot + 1) && op->op != NX_OP_attention &&
         op->op != NX_OP_add;
}

static void mark_dropped(recompute *r) {
  nxc_graph *graph = r->graph;
  const nxc_program_list *forward = &graph->programs[NXC_FORWARD];
  for (size_t i = 0; i < forward->n; i++) {
    const nxc_operator_node *op = &graph->operators[forward->operators[i]];
    bool next_is_another =
        i + 1 == forward->n || graph->operators[forward->operators[i + 1]].layer != op->layer;
    for (uint32_t out = 0; out < op->n_out; out++)
      r->dropped[op->args[op->n_in + out]] = drops(r->t, op) && !next_is_another;
  }
}

/* The value itself where it is kept, else its clone; appends what is needed to have it. */
static nxc_id available(recompute *r, nxc_id value, size_t n_forward_values) {
  nxc_graph *graph = r->graph;
  if (value >= n_forward_values || !r->dropped[value]) return value;
  if (r->clone[value]) return r->clone[value];
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
  if (!training->recompute_full && training->n_recompute_modules == 0 && !training->sequence_parallel) return;
  size_t n_values = graph->n_values;
  recompute r = {.graph = graph, .t = training};
  r.clone = nxc_arena_array(graph->arena, n_values, sizeof *r.clone);
  r.dropped = nxc_arena_array(graph->arena, n_values, sizeof *r.dropped);
  mark_dropped(&r);
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
