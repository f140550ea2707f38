/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged of a step beside its loss. Each is a sum that every pass or chunk adds to, and that all
 * ranks have the whole of before the update. */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/passes.h"
#include "compiler/program/pipeline/pipeline.h"

/* A sum of f64 whose parts all ranks of these atoms have. */
static nxc_id sum_new(nxc_graph *graph, const char *name, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  nxc_place_atoms(&shape.placement, atoms, NXC_PARTIAL);
  nxc_id sum = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  nxc_clear_first(graph, sum);
  return sum;
}

void nxc_measures_begin(nxc_graph *graph, const nxc_training *t) {
  uint32_t world = nxc_axis(&graph->mesh, NXC_AXIS_WORLD);
  graph->origin = "measures";
  if (t->measures.parameter_norm) graph->parameter_squares = sum_new(graph, "params_norm.squares", world);
  if (t->measures.zero_gradients) graph->zeros = sum_new(graph, "zero_gradients", world);
  if (graph->router_losses) nxc_clear_first(graph, graph->router_losses);
  if (graph->router_layers) nxc_clear_first(graph, graph->router_layers);
}

static void add(nxc_graph *graph, nx_op op, nxc_id x, nxc_id sum, nxc_rank_number weight) {
  nxc_append(graph, &(nxc_op_request){.op = op,
                                      .in = {x},
                                      .out = {sum},
                                      .when = NX_WHEN_FIRST,
                                      .attrs = {[NX_norm_sq_accumulate] = nxc_integer(1),
                                                [NX_norm_sq_weight] = nxc_attribute(graph, &weight)}});
}

void nxc_measure_gradient(nxc_graph *graph, nxc_id gradient, nxc_rank_number weight) {
  if (graph->zeros) add(graph, NX_OP_count_zeros, gradient, graph->zeros, weight);
}

/* Ranges, as the step updates them: what stands between parameters is 0. */
static void add_parameters(nxc_graph *graph, bool in_pairs) {
  for (nxc_id i = 0; i < graph->n_ranges; i++) {
    const nxc_range_node range = graph->ranges[i];
    if (range.frozen || graph->tables->parameter_groups[range.parameter_group].uncounted) continue;
    uint32_t held_by_all = range.copy_atoms | (range.group_atoms & ~range.shard_atoms);
    nxc_id x = range.master ? range.master : range.param_shard;
    if (in_pairs)
      nxc_pairs_squares(graph, &range, x, graph->parameter_squares, true);
    else
      add(graph, NX_OP_norm_sq, x, graph->parameter_squares,
          nxc_parameter_owner(graph, held_by_all, range.shared));
  }
}

static nxc_id total(nxc_graph *graph, nxc_id sum, const char *name) {
  uint32_t partial = nxc_atoms_placed(&graph->values[sum].shape.placement, NXC_PARTIAL);
  if (partial == 0) return sum;
  nxc_shape shape = graph->values[sum].shape;
  nxc_place_atoms(&shape.placement, partial, NXC_REPLICATED);
  nxc_id whole = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                             .in = {sum},
                                             .out = {whole},
                                             .when = NX_WHEN_MIDDLE,
                                             .group_atoms = partial});
}

void nxc_measures_build(nxc_graph *graph, const nxc_training *t) {
  graph->origin = "measures";
  if (graph->parameter_squares) {
    add_parameters(graph, t->sharding.in_pairs);
    graph->parameter_squares = total(graph, graph->parameter_squares, "params_norm.squares.total");
  }
  if (graph->zeros) graph->zeros = total(graph, graph->zeros, "zero_gradients.total");
  if (graph->router_losses) graph->router_losses = total(graph, graph->router_losses, "router_losses.total");
  if (graph->router_layers) graph->router_layers = total(graph, graph->router_layers, "router_layers.total");
}

/* Elements of divided gradients that are no parameter's, and 0, on all ranks that they are counted on. */
int64_t nxc_measures_gaps(const nxc_pipeline *p) {
  int64_t gaps = 0;
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    const nxc_graph *graph = p->graphs[p->chunks[c].graph];
    for (nxc_id i = 0; i < graph->n_ranges; i++) {
      const nxc_range_node *range = &graph->ranges[i];
      if (range->frozen || range->shard_atoms == 0) continue;
      uint32_t held_by_all = range->copy_atoms | (range->group_atoms & ~range->shard_atoms);
      uint32_t others = nxc_axis(&graph->mesh, NXC_AXIS_STAGE) & ~(held_by_all | range->shard_atoms);
      int64_t n = (int64_t)range->n_shard * nxc_mesh_size(&graph->mesh, range->shard_atoms);
      for (size_t v = 0; v < graph->n_parameters; v++)
        if (graph->values[graph->parameters[v]].range == i)
          n -= nxc_shape_elements(&graph->values[graph->parameters[v]].shape);
      gaps += n * nxc_mesh_size(&graph->mesh, others);
    }
  }
  return gaps;
}
