/* SPDX-License-Identifier: Apache-2.0 */
/* The norm of all gradients together, and the factor that clips it. */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/passes.h"
#include "compiler/program/pipeline/pipeline.h"

/* The same bytes, summed over the ranks. */
static nxc_id summed(nxc_graph *graph, const nxc_range_node *range, nxc_id gradient) {
  nxc_shape shape = graph->values[gradient].shape;
  nxc_place_atoms(&shape.placement, range->group_atoms, NXC_REPLICATED);
  const char *name = nxc_arena_printf(graph->arena, "%s.sum", graph->values[gradient].name);
  return nxc_view_new(graph, name, range->grad, graph->values[gradient].view_offset, &shape);
}

/* The entry of a parameter in the table of squares, which is in the order of the model; frozen ones have
 * none. */
static nxc_id square_entry(nxc_graph *graph, nxc_id parameter, size_t place) {
  nxc_shape shape = graph->values[graph->squares].shape;
  shape.dims[0] = 1;
  const char *of = graph->values[parameter].name;
  const char *name = nxc_arena_printf(graph->arena, "%s.square", of);
  nxc_id entry = nxc_view_new(graph, name, graph->squares, 0, &shape);
  nxc_rank_number offset = nxc_rank_number_of((int64_t)(place * sizeof(double)));
  const nxc_pipeline *pipeline = graph->pipeline;
  nxc_rank_number_chunk(graph, &offset, pipeline->first_squares[pipeline->chunks[graph->chunk].graph]);
  graph->values[entry].view_offset = offset.n_terms ? 0 : (uint64_t)offset.base;
  graph->values[entry].shift = offset.n_terms ? nxc_constant(graph, &offset) : NX_NONE;
  return entry;
}

static void square(nxc_graph *graph, nxc_id x, nxc_rank_number weight, nxc_id parameter, size_t at) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_norm_sq,
                                      .in = {x},
                                      .out = {square_entry(graph, parameter, at)},
                                      .when = NX_WHEN_FIRST,
                                      .attrs = {[NX_norm_sq_accumulate] = nxc_integer(0),
                                                [NX_norm_sq_weight] = nxc_attribute(graph, &weight)}});
}

/* The mean over the workers of their own squares: gradients are parts of a mean. */
static void square_of_workers(nxc_graph *graph, const nxc_range_node *range, nxc_id parameter, size_t at) {
  nxc_id gradient = graph->values[parameter].gradient;
  nxc_rank_number weight = nxc_parameter_owner(graph, range->copy_atoms, range->shared);
  graph->steps = NXC_STEPS_COMPRESSED;
  nxc_id own = nxc_compression_gradient(graph, range, gradient);
  nxc_measure_gradient(graph, own, weight);
  weight.base *= nxc_mesh_size(&graph->mesh, range->group_atoms);
  square(graph, own, weight, parameter, at);
  graph->steps = NXC_STEPS_PLAIN;
}

static void square_in_pairs(nxc_graph *graph, const nxc_range_node *range, nxc_id parameter, size_t at) {
  nxc_pairs_squares(graph, range, range->summed, square_entry(graph, parameter, at), false);
}

/* Sums of squares, each element counted on one rank: one sum per parameter, or per range where ranks hold a
 * shard, which begins and ends anywhere. */
void nxc_norm_squares(nxc_graph *graph, const nxc_training *t) {
  bool *counted = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *counted);
  graph->origin = "grad_norm";
  for (size_t i = 0, place = 0; i < graph->n_parameters; i++) {
    if (graph->values[graph->parameters[i]].frozen) continue;
    size_t at = place++;
    nxc_id index = graph->values[graph->parameters[i]].range;
    const nxc_range_node *range = &graph->ranges[index];
    nxc_id gradient = graph->values[graph->parameters[i]].gradient;
    bool divided = range->shard_atoms != 0, first = !counted[index];
    if (divided && !first) continue;
    counted[index] = true;
    bool apart = range->group_atoms || range->levels || graph->votes; /* from what passes write */
    nxc_id x = !apart ? gradient : divided ? range->summed : summed(graph, range, gradient);
    uint32_t held_by_all = range->copy_atoms | (range->group_atoms & ~range->shard_atoms);
    nxc_rank_number weight = nxc_parameter_owner(graph, held_by_all, range->shared);
    if (graph->tables->parameter_groups[range->parameter_group].uncounted) weight = nxc_rank_number_of(0);
    if (nxc_is_compressed(range)) square_of_workers(graph, range, graph->parameters[i], at);
    nxc_measure_gradient(graph, x, weight);
    if (!t->sharding.in_pairs) square(graph, x, weight, graph->parameters[i], at);
    else if (first) square_in_pairs(graph, range, graph->parameters[i], at);
    graph->steps = NXC_STEPS_ALL;
  }
}

nxc_id nxc_norm_build(nxc_graph *graph, const nxc_training *t) {
  nxc_id sum = graph->squares;
  graph->origin = "grad_norm";
  uint32_t world = nxc_atoms_placed(&graph->values[sum].shape.placement, NXC_PARTIAL);
  if (world) {
    nxc_shape shape = graph->values[sum].shape;
    nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_REPLICATED);
    nxc_id total = nxc_value_new(graph, "grad_norm.total", NXC_ROLE_SCALAR, &shape);
    sum = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                              .in = {sum},
                                              .out = {total},
                                              .when = NX_WHEN_MIDDLE,
                                              .group_atoms = world});
  }
  graph->grad_norm = nxc_step_scalar(graph, "grad_norm");
  nxc_id scale = nxc_step_scalar(graph, "grad_scale");
  nxc_append(graph,
             &(nxc_op_request){.op = NX_OP_clip_scale,
                               .in = {sum, graph->gradient_factor},
                               .out = {graph->grad_norm, scale},
                               .when = NX_WHEN_MIDDLE,
                               .attrs = {[NX_clip_scale_clip] = nxc_real(t->optimizer.clip_norm),
                                         [NX_clip_scale_maximize] = nxc_integer(t->optimizer.maximizes),
                                         [NX_clip_scale_goes_on] = nxc_integer(t->optimizer.goes_on)}});
  return scale;
}

nxc_id nxc_step_scalar(nxc_graph *graph, const char *name) {
  const nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  graph->values[value].unplaced = true;
  return value;
}
