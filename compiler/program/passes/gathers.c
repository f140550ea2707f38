/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/passes.h"

#include <stdlib.h>

/* Operators of a pass that read parameters of one range, before any other range of its class is read. */
typedef struct visit {
  nxc_id range;
  nxc_id whole;  /* where the parameters are brought together */
  size_t first;  /* the first reader */
  size_t start;  /* the operator before which the gather is started */
  size_t number; /* of the visits of the program */
} visit;

typedef struct gathers {
  nxc_graph *graph;
  const nxc_training *t;
  nxc_program_index program;
  visit *visits;
  size_t n_visits;
  size_t *current;       /* per class: its newest visit, plus 1; 0: none */
  bool *gathered;        /* per range: by this program */
  nxc_id *seen;          /* per parameter (value): as the visit in seen_by sees it */
  size_t *seen_by;       /* number of the visit, plus 1 */
} gathers;

static bool is_gathered(const gathers *g, const nxc_range_node *range) {
  return range->storage == NXC_DIVIDED || (range->storage == NXC_GATHERED && g->program == NXC_FORWARD);
}

static nxc_id new_whole(nxc_graph *graph, const nxc_range_node *range) {
  nxc_shape shape = graph->values[range->param].shape;
  shape.dims[0] = (int64_t)range->n_elements;
  nxc_place_atoms(&shape.placement, range->shard_atoms, NXC_REPLICATED);
  const char *name = nxc_arena_printf(graph->arena, "%s.param.whole", range->name);
  return nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
}

/* What keeps its place can be there at once. */
static size_t start_of(const gathers *g, const nxc_range_node *range) {
  size_t newest = g->current[range->class];
  return range->storage == NXC_GATHERED || newest == 0 ? 0 : g->visits[newest - 1].first;
}

static void new_visit(gathers *g, nxc_id range, size_t at) {
  const nxc_range_node *of = &g->graph->ranges[range];
  visit v = {.range = range, .whole = of->whole, .first = at, .start = at, .number = g->n_visits};
  if (v.whole == 0) v.whole = new_whole(g->graph, of);
  if (g->t->sharding.overlap_gather) v.start = start_of(g, of);
  g->visits = nxc_arena_grow(g->graph->arena, g->visits, g->n_visits, sizeof *g->visits);
  g->visits[g->n_visits++] = v;
  g->current[of->class] = g->n_visits;
  g->gathered[range] = true;
}

/* The parameter within what the newest visit of its range has gathered. Its first such place is its own. */
static nxc_id as_seen(gathers *g, nxc_id parameter) {
  nxc_graph *graph = g->graph;
  size_t by = g->current[graph->ranges[graph->values[parameter].range].class];
  if (g->seen_by[parameter] == by) return g->seen[parameter];
  nxc_id value = parameter;
  if (graph->values[parameter].view_of) {
    const nxc_value_node of = graph->values[parameter];
    value = nxc_value_new(graph, of.name, of.role, &of.shape);
  }
  nxc_range_view(graph, parameter, value, g->visits[by - 1].whole);
  g->seen_by[parameter] = by;
  return g->seen[parameter] = value;
}

static void find_visits(gathers *g, const nxc_program_list *list) {
  nxc_graph *graph = g->graph;
  for (size_t i = 0; i < list->n; i++) {
    for (uint32_t in = 0; in < graph->operators[list->operators[i]].n_in; in++) {
      nxc_id parameter = graph->operators[list->operators[i]].args[in];
      if (graph->values[parameter].role != NXC_ROLE_PARAMETER) continue;
      nxc_id range = graph->values[parameter].range;
      const nxc_range_node *of = &graph->ranges[range];
      if (!is_gathered(g, of) || (of->storage == NXC_GATHERED && g->gathered[range])) continue;
      size_t newest = g->current[of->class];
      if (newest == 0 || g->visits[newest - 1].range != range) new_visit(g, range, i);
      if (of->storage == NXC_DIVIDED) {
        nxc_id seen = as_seen(g, parameter);
        graph->operators[list->operators[i]].args[in] = seen;
      }
    }
  }
}

static int compare_visits(const void *left, const void *right) {
  const visit *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static void gather(const gathers *g, const visit *v) {
  nxc_graph *graph = g->graph;
  const nxc_range_node *range = &graph->ranges[v->range];
  uint8_t when = range->storage == NXC_GATHERED ? NX_WHEN_FIRST : NX_WHEN_ALWAYS;
  graph->origin = range->name;
  graph->layer = range->unit >= 0 ? range->unit : -1;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                      .in = {range->param_shard},
                                      .out = {v->whole},
                                      .when = when,
                                      .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                      .group_atoms = range->shard_atoms});
  if (!g->t->sharding.overlap_gather)
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_wait, .in = {v->whole}, .when = when});
}

static void insert(gathers *g, const nxc_program_list *list) {
  nxc_graph *graph = g->graph;
  size_t next = 0;
  qsort(g->visits, g->n_visits, sizeof *g->visits, compare_visits);
  graph->program = g->program;
  graph->programs[g->program] = (nxc_program_list){0};
  for (size_t i = 0; i < list->n; i++) {
    while (next < g->n_visits && g->visits[next].start == i) gather(g, &g->visits[next++]);
    nxc_program_push(graph, &graph->programs[g->program], list->operators[i]);
  }
}

void nxc_gathers_build(nxc_graph *graph, const nxc_training *t) {
  size_t n_values = graph->n_values; /* parameters are below it */
  for (nxc_program_index program = NXC_FORWARD; program <= NXC_BACKWARD; program++) {
    const nxc_program_list list = graph->programs[program];
    gathers g = {.graph = graph, .t = t, .program = program};
    g.current = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *g.current);
    g.gathered = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *g.gathered);
    g.seen = nxc_arena_array(graph->arena, n_values, sizeof *g.seen);
    g.seen_by = nxc_arena_array(graph->arena, n_values, sizeof *g.seen_by);
    find_visits(&g, &list);
    if (g.n_visits) insert(&g, &list);
  }
}
