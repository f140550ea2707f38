/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameters are updated alike. */
#include "compiler/program/model/tensors.h"
#include "compiler/program/passes/passes.h"

#include <fnmatch.h>
#include <string.h>

/* The pattern of optimizer.groups that the parameter's first tensor matches. A pattern says nothing about the
 * number of a layer, because chunks of layers share programs: in the name that it is held against there is no
 * such number. */
static const nxc_group_pattern *pattern_of(const nxc_graph *graph, const nxc_training *t,
                                           const nxc_piece_node *piece) {
  const char *name = t->optimizer.n_patterns ? nxc_piece_name(graph->arena, t, piece, -1) : "";
  for (size_t i = 0; i < t->optimizer.n_patterns; i++)
    if (fnmatch(t->optimizer.patterns[i].pattern, name, 0) == 0) return &t->optimizer.patterns[i];
  return NULL;
}

static bool is_decoupled(const nxc_training *t, const nxc_piece_node *piece) {
  return t->optimizer.decoupled && (piece->part == NXC_PART_EMBEDDING || piece->part == NXC_PART_OUTPUT);
}

/* Whether a rule for matrices updates it: a matrix of a layer, and routers and positions where that is asked
 * for. */
static bool is_layer_matrix(const nxc_optimizer *o, const nxc_piece_node *piece, bool matrix) {
  bool asked = piece->part == NXC_PART_ROUTER || piece->part == NXC_PART_SHARED_MIX ||
               piece->part == NXC_PART_POSITIONS;
  return matrix && (asked ? o->matrix_routers : piece->layer >= 0);
}

static nxc_learning_rate scaled(nxc_learning_rate rate, double factor) {
  for (size_t i = 0; i < rate.n_segments; i++) {
    nx_segment *segment = &rate.segments[i];
    segment->from *= factor, segment->to *= factor, segment->towards *= factor, segment->least *= factor;
  }
  return rate;
}

static nxc_learning_rate constant(double value) {
  const nx_segment segment = {.kind = NX_SEGMENT_CONSTANT, .every = 1, .span = 1, .from = value, .to = value};
  return (nxc_learning_rate){.segments = {segment}, .n_segments = 1};
}

/* In the order in which one overrules the other. Its name is made of what made it so. */
static nxc_parameter_group group_of(const nxc_graph *graph, const nxc_training *t,
                                    const nxc_piece_node *piece, bool matrix) {
  const nxc_optimizer *o = &t->optimizer;
  if (piece->part == NXC_PART_ROUTER_CORRECTION)
    return (nxc_parameter_group){.name = "correction",
                                 .update = {.rule = nx_optimizer_find("signsgd")},
                                 .uncounted = true,
                                 .own_rate = true,
                                 .lr_factor = 1,
                                 .rate = constant(t->model.mixture->correction_rate),
                                 .weight_decay = constant(0)};
  bool of_keys = piece->part == NXC_PART_Q_NORM || piece->part == NXC_PART_K_NORM;
  bool decayed = matrix || o->norm_weight_decay || (of_keys && o->qk_norm_weight_decay);
  const nxc_group_pattern *pattern = pattern_of(graph, t, piece);
  nxc_parameter_group group = {.name = decayed ? "decayed" : "plain",
                               .update = o->update,
                               .lr_factor = 1,
                               .rate = t->rate,
                               .weight_decay = decayed ? o->weight_decay : constant(0)};
  if (o->update.rule->kind == NX_MATRIX && is_layer_matrix(o, piece, matrix)) {
    group.name = nxc_arena_printf(graph->arena, "%s.%s", group.name, o->update.rule->name);
    group.rate = scaled(group.rate, o->matrix_factor);
    group.lr_factor = o->matrix_factor;
    group.own_rate = o->matrix_factor != 1;
  } else if (o->update.rule->kind == NX_MATRIX) {
    group.update = o->others;
  }
  if (is_decoupled(t, piece)) {
    group.name = nxc_arena_printf(graph->arena, "%s.decoupled", group.name);
    group.rate = o->decoupled_rate;
    group.lr_factor = o->decoupled_factor;
    group.own_rate = true;
  }
  if (pattern == NULL) return group;
  group.name = nxc_arena_printf(graph->arena, "%s.%s", group.name, pattern->pattern);
  group.rate = scaled(group.rate, pattern->lr_factor);
  group.lr_factor *= pattern->lr_factor;
  group.own_rate |= pattern->lr_factor != 1;
  if (pattern->weight_decay >= 0) group.weight_decay = constant(pattern->weight_decay);
  return group;
}

uint32_t nxc_parameter_group_of(nxc_graph *graph, const nxc_training *t, nxc_id parameter) {
  nxc_tables *tables = graph->tables;
  size_t at = 0;
  while (graph->pieces[at].value != parameter) at++;
  nxc_parameter_group new = group_of(graph, t, &graph->pieces[at], graph->values[parameter].shape.n_dims > 1);
  for (uint32_t i = 0; i < tables->n_parameter_groups; i++)
    if (strcmp(tables->parameter_groups[i].name, new.name) == 0) return i;
  tables->parameter_groups = nxc_arena_grow(graph->arena, tables->parameter_groups,
                                            tables->n_parameter_groups, sizeof *tables->parameter_groups);
  tables->parameter_groups[tables->n_parameter_groups] = new;
  return (uint32_t)tables->n_parameter_groups++;
}

static bool is_used(nxc_graph *const *graphs, uint32_t n_graphs, const nxc_training *t,
                    const nxc_group_pattern *pattern) {
  for (uint32_t g = 0; g < n_graphs; g++)
    for (size_t i = 0; i < graphs[g]->n_pieces; i++)
      if (pattern_of(graphs[g], t, &graphs[g]->pieces[i]) == pattern) return true;
  return false;
}

const char *nxc_parameter_groups_build(nxc_graph *const *graphs, uint32_t n_graphs, const nxc_training *t) {
  for (uint32_t g = 0; g < n_graphs; g++)
    for (size_t i = 0; i < graphs[g]->n_parameters; i++)
      if (!graphs[g]->values[graphs[g]->parameters[i]].frozen)
        (void)nxc_parameter_group_of(graphs[g], t, graphs[g]->parameters[i]);
  for (size_t i = 0; i < t->optimizer.n_patterns; i++)
    if (!is_used(graphs, n_graphs, t, &t->optimizer.patterns[i])) return t->optimizer.patterns[i].pattern;
  return NULL;
}
