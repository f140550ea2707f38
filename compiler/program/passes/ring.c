/* SPDX-License-Identifier: Apache-2.0 */
/* The ring pass: attention over a ring becomes attention over one rank's keys at a time.
 *
 * In round t a rank has the keys of the t-th rank before it; those of the next round are under way
 * meanwhile. Forward joins what the rounds give. Backward each round's gradient follows from the o and lse
 * of all; that of the queries is added up here, those of keys and values travel on with them, one round
 * behind, and are home after the last.
 *
 *   forward    k_t, v_t ─ shift ─▶ k_t+1, v_t+1     attention(q, k_t, v_t) ─ merge ─▶ o, lse
 *   backward   k_t, v_t ─ shift ─▶ k_t+1, v_t+1     attention_grad(do, q, k_t, v_t, o, lse)
 *              dk, dv ─ add ─ shift ─▶ dk, dv       dq ─ add ─▶ dq
 *
 * While they come home nothing of the ring is left to compute: there run the gradients of the layer's weights
 * that could have been made before. */
#include "compiler/program/graph/rules.h"
#include "compiler/program/passes/passes.h"

#include <string.h>

typedef struct ring {
  nxc_graph *graph;
  const nxc_operator_node *op; /* that is replaced */
  uint32_t n_rounds;
  const bool *forward; /* per operator that was there before: it is the forward program's */
  size_t n_before;
} ring;

static const char *of_round(const ring *r, const char *name, uint32_t round) {
  return nxc_arena_printf(r->graph->arena, "%s.%u", name, round);
}

static nxc_id shift(const ring *r, nxc_id x, nxc_id into, const char *name, uint32_t round) {
  return nxc_append(r->graph, &(nxc_op_request){.op = NX_OP_shift,
                                                .name = of_round(r, name, round),
                                                .in = {x},
                                                .out = {into},
                                                .group_atoms = r->op->group_atoms});
}

/* Results of a gradient that stay where they are made; those between them travel. */
enum { DQ = 0, DTABLE = 3 };

/* a + b, or b where there is no a; the last sum has the type of the result. */
static nxc_id add(const ring *r, nxc_id a, nxc_id b, uint32_t result, const char *name, uint32_t round) {
  if (a == 0) return b;
  bool last = round + 1 == r->n_rounds;
  nxc_id to = r->op->args[r->op->n_in + result];
  nxc_op_request request = {.op = NX_OP_add, .name = of_round(r, name, round), .in = {a, b}};
  if (last) request.dtype = r->graph->values[to].shape.dtype;
  if (last && (result == DQ || result == DTABLE)) request.out[0] = to;
  return nxc_append(r->graph, &request);
}

/* The operator for one round's keys; those and values are inputs from `first_key` on. */
static nxc_op_request block(const ring *r, uint32_t first_key, nxc_id k, nxc_id v, uint32_t round) {
  const nxc_operator_node *op = r->op;
  nxc_op_request request = {.op = op->op, .dtype = r->graph->types.partial, .group_atoms = op->group_atoms};
  memcpy(request.in, op->args, op->n_in * sizeof *op->args);
  memcpy(request.attrs, op->attrs, sizeof op->attrs);
  request.in[first_key] = k;
  request.in[first_key + 1] = v;
  request.in[op->n_in - 2] = r->graph->place_rows[round];
  return request;
}

/* What travels: the keys and values of the round at hand, and those of the next. */
typedef struct travellers {
  nxc_id k, v, next_k, next_v;
} travellers;

static void send_on(const ring *r, travellers *at, uint32_t round) {
  if (round > 0) at->k = at->next_k, at->v = at->next_v;
  if (round + 1 == r->n_rounds) return;
  at->next_k = shift(r, at->k, 0, "k", round + 1);
  at->next_v = shift(r, at->v, 0, "v", round + 1);
}

static void expand_forward(const ring *r) {
  const nxc_operator_node *op = r->op;
  travellers at = {.k = op->args[1], .v = op->args[2]};
  nxc_id o = 0, lse = 0;
  for (uint32_t round = 0; round < r->n_rounds; round++) {
    send_on(r, &at, round);
    nxc_op_request request = block(r, 1, at.k, at.v, round);
    request.name = of_round(r, "block", round);
    nxc_id block_o = nxc_append(r->graph, &request), block_lse = nxc_last_output(r->graph, 1);
    bool last = round + 1 == r->n_rounds;
    if (round > 0) {
      nxc_op_request merge = {.op = NX_OP_attention_merge,
                              .name = of_round(r, "merged", round),
                              .in = {o, lse, block_o, block_lse},
                              .dtype = r->graph->types.partial};
      if (last) memcpy(merge.out, op->args + op->n_in, op->n_out * sizeof *op->args);
      block_o = nxc_append(r->graph, &merge);
      block_lse = nxc_last_output(r->graph, 1);
    }
    o = block_o, lse = block_lse;
  }
}

/* ---- what runs while gradients come home ---- */

/* A product of an activation that is kept: what is computed again would take memory for longer. */
static bool is_weight_gradient(const ring *r, const nxc_operator_node *op) {
  const nxc_value_node *values = r->graph->values;
  if (op->n_out != 1 || values[nxc_value_root(r->graph, op->args[op->n_in])].role != NXC_ROLE_GRADIENT)
    return false;
  for (uint32_t i = 0; i < op->n_in; i++) {
    nxc_id producer = values[nxc_value_root(r->graph, op->args[i])].producer;
    if (producer < r->n_before && r->forward[producer]) return true; /* NX_NONE is greater */
  }
  return false;
}

/* Whether the operator behind touches what the first one writes, or writes what it reads. */
static bool needs(const nxc_graph *graph, const nxc_operator_node *behind, const nxc_operator_node *first) {
  for (uint32_t i = 0; i < behind->n_in + behind->n_out; i++)
    for (uint32_t k = 0; k < first->n_in + first->n_out; k++)
      if ((i >= behind->n_in || k >= first->n_in) &&
          nxc_value_root(graph, behind->args[i]) == nxc_value_root(graph, first->args[k]))
        return true;
  return false;
}

/* Takes from the end of the program the gradients of the layer's weights that nothing behind them needs. */
static nxc_program_list take_weight_gradients(const ring *r, nxc_program_list *program) {
  const nxc_graph *graph = r->graph;
  nxc_program_list taken = {0}, left = {0};
  size_t first = program->n;
  while (first > 0 && graph->operators[program->operators[first - 1]].layer == r->op->layer) first--;
  for (size_t i = first; i < program->n; i++) {
    const nxc_operator_node *op = &graph->operators[program->operators[i]];
    bool moves = is_weight_gradient(r, op) && !needs(graph, r->op, op);
    for (size_t k = i + 1; moves && k < program->n; k++)
      moves = !needs(graph, &graph->operators[program->operators[k]], op);
    nxc_program_push(r->graph, moves ? &taken : &left, program->operators[i]);
  }
  program->n = first;
  for (size_t i = 0; i < left.n; i++) nxc_program_push(r->graph, program, left.operators[i]);
  return taken;
}

static void expand_backward(const ring *r) {
  const nxc_operator_node *op = r->op;
  const nxc_id *out = op->args + op->n_in;
  travellers at = {.k = op->args[2], .v = op->args[3]};
  nxc_id dq = 0, dk = 0, dv = 0, dtable = 0;
  nxc_program_list *program = &r->graph->programs[NXC_BACKWARD];
  const nxc_program_list meanwhile = take_weight_gradients(r, program);
  for (uint32_t round = 0; round < r->n_rounds; round++) {
    bool last = round + 1 == r->n_rounds;
    send_on(r, &at, round);
    nxc_op_request request = block(r, 2, at.k, at.v, round);
    request.name = of_round(r, "block", round);
    nxc_id block_dq = nxc_append(r->graph, &request);
    nxc_id block_dk = nxc_last_output(r->graph, 1), block_dv = nxc_last_output(r->graph, 2);
    nxc_id block_dtable = op->n_out > DTABLE ? nxc_last_output(r->graph, DTABLE) : 0;
    dq = add(r, dq, block_dq, DQ, "dq", round);
    if (block_dtable) dtable = add(r, dtable, block_dtable, DTABLE, "dtable", round);
    dk = shift(r, add(r, dk, block_dk, 1, "dk.sum", round), last ? out[1] : 0, "dk", round);
    dv = shift(r, add(r, dv, block_dv, 2, "dv.sum", round), last ? out[2] : 0, "dv", round);
  }
  for (size_t i = 0; i < meanwhile.n; i++) nxc_program_push(r->graph, program, meanwhile.operators[i]);
}

static const bool *of_forward(const nxc_graph *graph) {
  const nxc_program_list *program = &graph->programs[NXC_FORWARD];
  bool *forward = nxc_arena_array(graph->arena, graph->n_operators, sizeof *forward);
  for (size_t i = 0; i < program->n; i++) forward[program->operators[i]] = true;
  return forward;
}

/* Recomputed attention stands in the backward program too. */
static bool is_forward(const nxc_operator_node *op) {
  return nxc_rule_of(op->op)->grad != NULL;
}

void nxc_ring(nxc_graph *graph) {
  const size_t n_before = graph->n_operators;
  const bool *forward = of_forward(graph);
  for (nxc_program_index program = NXC_FORWARD; program <= NXC_BACKWARD; program++) {
    const nxc_program_list old = graph->programs[program];
    graph->programs[program] = (nxc_program_list){0};
    graph->program = program;
    for (size_t i = 0; i < old.n; i++) {
      const nxc_operator_node op = graph->operators[old.operators[i]];
      const ring r = {graph, &op, nxc_mesh_size(&graph->mesh, op.group_atoms), forward, n_before};
      graph->origin = op.origin;
      graph->layer = op.layer;
      bool over_ring = nx_op_find(op.op)->class == NX_ATTENTION && op.group_atoms;
      if (!over_ring)
        nxc_program_push(graph, &graph->programs[program], old.operators[i]);
      else if (is_forward(&op))
        expand_forward(&r);
      else
        expand_backward(&r);
    }
  }
}
