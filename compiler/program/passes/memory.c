/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/rules.h"
#include "compiler/program/passes/passes.h"
#include "compiler/program/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

/* When a root value is written first and used last, on the line of forward, backward and step operators. */
typedef struct lifetime {
  uint64_t first, last;
  uint64_t bytes;
  bool used;
  bool collective; /* enters or leaves one */
} lifetime;

/* Programs that values are placed for; the evaluation has the forward pass's. */
enum { N_PLACED = NXC_STEP + 1 };

typedef struct planner {
  nxc_graph *graph;
  lifetime *lives;                    /* per value; of roots only */
  uint64_t start[N_PLACED + 1]; /* position of each program's first operator */
} planner;

static uint64_t round_up(uint64_t bytes) {
  return (bytes + NX_VALUE_ALIGNMENT - 1) / NX_VALUE_ALIGNMENT * NX_VALUE_ALIGNMENT;
}

static void touch(planner *p, nxc_id value, uint64_t at) {
  lifetime *life = &p->lives[nxc_value_root(p->graph, value)];
  if (!life->used) life->first = at;
  life->used = true;
  life->last = at;
}

/* The operator that started what a wait completes: what it reads is in use until then. */
static const nxc_operator_node *started_by(const nxc_graph *graph, const nxc_program_list *list,
                                           size_t before, nxc_id y) {
  while (before-- > 0) {
    const nxc_operator_node *op = &graph->operators[list->operators[before]];
    if (op->n_out == 1 && op->args[op->n_in] == y && nx_op_is_collective(nx_op_find(op->op))) return op;
  }
  return NULL;
}

/* What is received is written before its program begins, and what is sent is read after it has ended: a
 * chunk's slot holds each from the pass that it belongs to, or the one before, to the end of the backward
 * pass. */
static void keep_ports(planner *p) {
  static const bool from_forward[NX_N_PORTS] = {[NX_PORT_INPUT] = true};
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    nxc_id value = p->graph->ports[port];
    if (value == 0) continue;
    lifetime *life = &p->lives[nxc_value_root(p->graph, value)];
    uint64_t first = from_forward[port] ? 0 : p->start[NXC_BACKWARD] - 1;
    if (!life->used || life->first > first) life->first = first;
    life->used = true;
    life->last = p->start[NXC_STEP] - 1;
    life->collective = true;
  }
}

static void find_lifetimes(planner *p) {
  nxc_graph *graph = p->graph;
  uint64_t at = 0;
  for (nxc_program_index program = 0; program <= NXC_STEP; program++) {
    const nxc_program_list *list = &graph->programs[program];
    p->start[program] = at;
    for (size_t i = 0; i < list->n; i++, at++) {
      const nxc_operator_node *op = &graph->operators[list->operators[i]];
      for (uint32_t arg = 0; arg < op->n_in + op->n_out; arg++) {
        touch(p, op->args[arg], at);
        if (nx_op_is_collective(nx_op_find(op->op)))
          p->lives[nxc_value_root(graph, op->args[arg])].collective = true;
      }
      const nxc_operator_node *collective =
          op->op == NX_OP_wait ? started_by(graph, list, i, op->args[0]) : NULL;
      if (collective != NULL) touch(p, collective->args[0], at);
    }
  }
  p->start[N_PLACED] = at;
  keep_ports(p);
  for (size_t i = 1; i < graph->n_values; i++) {
    const nxc_value_node *value = &graph->values[i];
    uint64_t end = value->view_offset + nxc_shape_bytes(&value->shape);
    lifetime *life = &p->lives[nxc_value_root(graph, (nxc_id)i)];
    if (round_up(end) > life->bytes) life->bytes = round_up(end);
  }
}

static nxc_program_index program_at(const planner *p, uint64_t position) {
  nxc_program_index program = NXC_FORWARD;
  while (position >= p->start[program + 1]) program++;
  return program;
}

static nx_arena_kind arena_of(const planner *p, nxc_id value) {
  static const nx_arena_kind by_role[] = {
      [NXC_ROLE_INPUT] = NX_ARENA_input,     [NXC_ROLE_SCALAR] = NX_ARENA_scalar,
      [NXC_ROLE_PARAMETER] = NX_ARENA_param, [NXC_ROLE_MASTER] = NX_ARENA_master,
      [NXC_ROLE_GRADIENT] = NX_ARENA_grad,   [NXC_ROLE_STATE] = NX_ARENA_state,
  };
  const lifetime *life = &p->lives[value];
  if (p->graph->values[value].role != NXC_ROLE_ACTIVATION) return by_role[p->graph->values[value].role];
  if (program_at(p, life->first) != program_at(p, life->last)) return NX_ARENA_slot;
  return life->collective ? NX_ARENA_comm : NX_ARENA_scratch;
}

/* ---- placing ---- */

typedef struct hole {
  uint64_t offset, bytes;
} hole;

/* Free space below `end`, in ascending order, no two holes touching. */
typedef struct space {
  nxc_arena *arena;
  hole *holes;
  size_t n_holes;
  uint64_t end;
} space;

static void hole_insert(space *s, size_t at, hole new_hole) {
  s->holes = nxc_arena_grow(s->arena, s->holes, s->n_holes, sizeof *s->holes);
  memmove(s->holes + at + 1, s->holes + at, (s->n_holes - at) * sizeof *s->holes);
  s->holes[at] = new_hole;
  s->n_holes++;
}

static void hole_remove(space *s, size_t at) {
  memmove(s->holes + at, s->holes + at + 1, (s->n_holes - at - 1) * sizeof *s->holes);
  s->n_holes--;
}

/* The smallest hole that is large enough; else the end, which a hole that touches it helps. */
static uint64_t space_take(space *s, uint64_t bytes) {
  size_t best = s->n_holes;
  for (size_t i = 0; i < s->n_holes; i++)
    if (s->holes[i].bytes >= bytes && (best == s->n_holes || s->holes[i].bytes < s->holes[best].bytes))
      best = i;
  if (best < s->n_holes) {
    uint64_t offset = s->holes[best].offset;
    s->holes[best].offset += bytes;
    s->holes[best].bytes -= bytes;
    if (s->holes[best].bytes == 0) hole_remove(s, best);
    return offset;
  }
  uint64_t offset = s->end;
  if (s->n_holes && s->holes[s->n_holes - 1].offset + s->holes[s->n_holes - 1].bytes == s->end)
    offset = s->holes[--s->n_holes].offset;
  s->end = offset + bytes;
  return offset;
}

static void space_give(space *s, uint64_t offset, uint64_t bytes) {
  size_t at = 0;
  while (at < s->n_holes && s->holes[at].offset < offset) at++;
  hole_insert(s, at, (hole){offset, bytes});
  if (at + 1 < s->n_holes && offset + bytes == s->holes[at + 1].offset) {
    s->holes[at].bytes += s->holes[at + 1].bytes;
    hole_remove(s, at + 1);
  }
  if (at > 0 && s->holes[at - 1].offset + s->holes[at - 1].bytes == offset) {
    s->holes[at - 1].bytes += s->holes[at].bytes;
    hole_remove(s, at);
  }
}

typedef struct event {
  uint64_t at;
  uint64_t bytes;
  nxc_id value;
  bool ends;
} event;

/* At one position values are written before others end: an operator's inputs and outputs are alive together.
 * Larger values are placed first. */
static int compare_events(const void *left, const void *right) {
  const event *a = left, *b = right;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->ends != b->ends) return a->ends ? 1 : -1;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->value < b->value ? -1 : a->value > b->value;
}

/* Places all values of an arena that are alive within some positions; returns how many bytes they need. */
static uint64_t lay_out(planner *p, nx_arena_kind arena, uint64_t from, uint64_t to) {
  nxc_graph *graph = p->graph;
  event *events = nxc_arena_array(graph->arena, 2 * graph->n_values, sizeof *events);
  size_t n = 0;
  for (nxc_id i = 1; i < graph->n_values; i++) {
    const lifetime *life = &p->lives[i];
    if (graph->values[i].view_of || !life->used || graph->values[i].arena != arena) continue;
    if (life->first < from || life->first >= to) continue;
    events[n++] = (event){life->first, life->bytes, i, false};
    events[n++] = (event){life->last, life->bytes, i, true};
  }
  qsort(events, n, sizeof *events, compare_events);
  space s = {.arena = graph->arena};
  for (size_t i = 0; i < n; i++) {
    nxc_value_node *value = &graph->values[events[i].value];
    if (events[i].ends)
      space_give(&s, value->offset, events[i].bytes);
    else
      value->offset = space_take(&s, events[i].bytes);
  }
  return s.end;
}

/* Values that live as long as the run, one after another. */
static uint64_t place_for_good(planner *p, nx_arena_kind arena) {
  uint64_t end = 0;
  for (nxc_id i = 1; i < p->graph->n_values; i++) {
    nxc_value_node *value = &p->graph->values[i];
    if (value->view_of || value->arena != arena || !p->lives[i].bytes || !p->lives[i].used) continue;
    value->offset = end;
    end += p->lives[i].bytes;
  }
  return end;
}

/* The place that chunks before this one gave to a value of its name; `taken` by no other of this chunk. */
static nxc_named_place *named_place(const nxc_pipeline *all, const nxc_named_place *wanted, bool *taken,
                                    size_t n) {
  for (size_t i = 0; i < n; i++) {
    const nxc_named_place *place = &all->places[i];
    if (taken[i] || place->arena != wanted->arena || place->bytes != wanted->bytes) continue;
    if (strcmp(place->name, wanted->name) != 0) continue;
    taken[i] = true;
    return &all->places[i];
  }
  return NULL;
}

/* Chunks of a stage have numbers of the step together, and some have more of them than others, as the last
 * those of the loss: what has one name has one place, and what is new stands behind. */
static uint64_t place_by_name(planner *p, nx_arena_kind arena) {
  nxc_pipeline *all = p->graph->pipeline;
  const size_t n_before = all->n_places;
  bool *taken = nxc_arena_array(p->graph->arena, n_before + 1, sizeof *taken);
  uint64_t end = 0;
  for (size_t i = 0; i < n_before; i++)
    if (all->places[i].arena == arena) end = all->places[i].offset + all->places[i].bytes;
  for (nxc_id i = 1; i < p->graph->n_values; i++) {
    nxc_value_node *value = &p->graph->values[i];
    const nxc_named_place wanted = {value->name, arena, end, p->lives[i].bytes};
    if (value->view_of || value->arena != arena || !wanted.bytes || !p->lives[i].used) continue;
    const nxc_named_place *place = named_place(all, &wanted, taken, n_before);
    value->offset = place ? place->offset : end;
    if (place) continue;
    all->places = nxc_arena_grow(all->arena, all->places, all->n_places, sizeof *all->places);
    all->places[all->n_places++] = wanted;
    end += wanted.bytes;
  }
  return end;
}

static void choose_arenas(planner *p) {
  nxc_graph *graph = p->graph;
  bool *is_input = nxc_arena_array(graph->arena, graph->n_values, sizeof *is_input);
  nxc_graph_mark_inputs(graph, is_input);
  for (size_t i = 0; i < graph->n_values; i++) p->lives[i].used |= is_input[i];
  for (nxc_id i = 1; i < graph->n_values; i++) {
    if (graph->values[i].view_of || !p->lives[i].used) continue;
    graph->values[i].arena = arena_of(p, i);
    if (p->lives[i].collective) graph->arena_shared[graph->values[i].arena] = true;
  }
}

void nxc_memory_plan(nxc_graph *graph) {
  planner p = {graph, nxc_arena_array(graph->arena, graph->n_values, sizeof *p.lives), {0}};
  find_lifetimes(&p);
  choose_arenas(&p);
  for (nx_arena_kind arena = 0; arena < NX_N_ARENAS; arena++) {
    uint64_t *bytes = &graph->arena_bytes[arena];
    if (arena == NX_ARENA_slot) {
      *bytes = lay_out(&p, arena, p.start[NXC_FORWARD], p.start[NXC_STEP]);
    } else if (arena == NX_ARENA_scratch || arena == NX_ARENA_comm) {
      for (nxc_program_index program = 0; program <= NXC_STEP; program++) {
        uint64_t need = lay_out(&p, arena, p.start[program], p.start[program + 1]);
        if (need > *bytes) *bytes = need;
      }
    } else if (arena == NX_ARENA_scalar || arena == NX_ARENA_input) {
      *bytes = place_by_name(&p, arena);
    } else {
      *bytes = place_for_good(&p, arena);
    }
  }
  for (nxc_id i = 1; i < graph->n_values; i++) {
    nxc_value_node *value = &graph->values[i];
    if (!value->view_of) continue;
    value->arena = graph->values[value->view_of].arena;
    value->offset = graph->values[value->view_of].offset + value->view_offset;
  }
}
