/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed reductions of 1-bit Adam. A rank is a worker, with a gradient and a momentum of its own, and
 * the server of a part of each range:
 *
 *     worker    momentum + its error -> bits, one size
 *     all_to_all bits, all_gather sizes
 *     server    the mean of its part over the workers + its error -> bits, one size
 *     all_gather both; all ranks have the momentum that they stand for, and update with it. */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/passes.h"

static bool has_rule(const nxc_graph *graph, const nxc_range_node *range) {
  if (range->frozen) return false;
  const nx_optimizer_row *rule = graph->tables->parameter_groups[range->parameter_group].update.rule;
  return rule != NULL && rule->op == NX_OP_onebitadam;
}

/* The number of ranks is part of the name: others begin without an error. */
static nxc_id remembered(nxc_graph *graph, const nxc_training *t, const nxc_range_node *range,
                         const char *what, uint64_t length) {
  uint32_t n = nxc_mesh_size(&graph->mesh, nxc_axis(&graph->mesh, NXC_AXIS_STAGE) & ~range->copy_atoms);
  const char *name = nxc_arena_printf(graph->arena, "%s.%s_of_%u", range->name, what, n);
  return nxc_parameter_of_range(graph, t, name, range->copy_atoms, (int64_t)length);
}

void nxc_compression_begin(nxc_graph *graph, const nxc_training *t) {
  uint32_t data = nxc_axis(&graph->mesh, NXC_AXIS_DATA);
  for (nxc_id i = 0; i < graph->n_ranges; i++) {
    const nxc_range_node range = graph->ranges[i];
    if (!has_rule(graph, &range) || !(range.group_atoms & data) || range.shard_atoms) continue;
    uint32_t workers = nxc_mesh_size(&graph->mesh, range.group_atoms);
    graph->compresses = true;
    graph->ranges[i].worker_error = remembered(graph, t, &range, "worker_error", range.n_elements);
    graph->ranges[i].server_error = remembered(graph, t, &range, "server_error", range.n_elements / workers);
  }
}

bool nxc_is_compressed(const nxc_range_node *range) {
  return range->worker_error != 0;
}

nxc_id nxc_compression_gradient(nxc_graph *graph, const nxc_range_node *range, nxc_id gradient) {
  const nxc_value_node of = graph->values[gradient];
  nxc_shape shape = nxc_shape_of(of.shape.dtype, 1, (int64_t[]){nxc_shape_elements(&of.shape)});
  shape.placement = of.shape.placement;
  nxc_place_atoms(&shape.placement, range->group_atoms, NXC_SPLIT);
  const char *name = nxc_arena_printf(graph->arena, "%s.own", of.name);
  return nxc_view_new(graph, name, nxc_value_root(graph, gradient), of.view_offset, &shape);
}

static nxc_id vector(nxc_graph *graph, const char *name, nx_dtype dtype, uint64_t n,
                     const nxc_placement *placement) {
  nxc_shape shape = nxc_shape_of(dtype, 1, (int64_t[]){(int64_t)n});
  shape.placement = *placement;
  return nxc_value_new(graph, nxc_arena_printf(graph->arena, "%s.%s", graph->origin, name),
                       NXC_ROLE_ACTIVATION, &shape);
}

static nxc_id gathered(nxc_graph *graph, const nxc_range_node *range, nxc_id value, const char *name) {
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                             .name = name,
                                             .in = {value},
                                             .when = NX_WHEN_LAST,
                                             .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                             .dtype = graph->values[value].shape.dtype,
                                             .group_atoms = range->group_atoms});
}

typedef struct packed {
  nxc_id bits, size;
} packed;

static packed pack(nxc_graph *graph, const nxc_range_node *range, const nxc_compressed_update *u) {
  nxc_id gradient = nxc_compression_gradient(graph, range, range->shared ? range->stage_sum : range->grad);
  nxc_id error = range->worker_error;
  nxc_placement placement = graph->values[error].shape.placement;
  packed to = {vector(graph, "signs", NX_u8, range->n_elements / 8, &placement),
               vector(graph, "size", NX_f32, 1, &placement)};
  int64_t workers = nxc_mesh_size(&graph->mesh, range->group_atoms);
  double beta1 = u->update->numbers[NX_onebitadam_beta1];
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_onebit_pack,
                                      .in = {range->states[0], gradient, error, u->scale},
                                      .out = {error, to.bits, to.size},
                                      .n_out = 3,
                                      .when = NX_WHEN_LAST,
                                      .attrs = {[NX_onebit_pack_beta1] = nxc_real(beta1),
                                                [NX_onebit_pack_workers] = nxc_integer(workers)}});
  return to;
}

static packed serve(nxc_graph *graph, const nxc_range_node *range, packed from,
                    const nxc_compressed_update *u) {
  nxc_id error = range->server_error;
  nxc_placement placement = graph->values[error].shape.placement;
  uint64_t n = range->n_elements / nxc_mesh_size(&graph->mesh, range->group_atoms);
  nxc_id sizes = gathered(graph, range, from.size, "sizes");
  nxc_id bits = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_to_all,
                                                    .name = "signs_of_workers",
                                                    .in = {from.bits},
                                                    .when = NX_WHEN_LAST,
                                                    .attrs = {[NX_all_to_all_split_axis] = nxc_integer(0),
                                                              [NX_all_to_all_concat_axis] = nxc_integer(0)},
                                                    .dtype = NX_u8,
                                                    .group_atoms = range->group_atoms});
  packed to = {vector(graph, "mean_signs", NX_u8, n / 8, &placement),
               vector(graph, "mean_size", NX_f32, 1, &placement)};
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_onebit_sum,
                                      .in = {bits, sizes, error, u->scale},
                                      .out = {error, to.bits, to.size},
                                      .n_out = 3,
                                      .when = NX_WHEN_LAST});
  return to;
}

void nxc_compression_update(nxc_graph *graph, const nxc_range_node *range, const nxc_compressed_update *u) {
  packed mean = serve(graph, range, pack(graph, range, u), u);
  nxc_id bits = gathered(graph, range, mean.bits, "all_signs");
  nxc_id sizes = gathered(graph, range, mean.size, "all_sizes");
  double epsilon = u->update->numbers[NX_onebitadam_epsilon];
  nxc_op_request request = {.op = NX_OP_onebit_apply,
                            .in = {u->param, range->states[0], range->states[1], bits, sizes, u->numbers.lr,
                                   u->numbers.decay, u->scale, graph->updates ? graph->updates : graph->step},
                            .out = {u->param, range->states[0], u->copy},
                            .n_out = u->copy ? 3 : 2,
                            .when = NX_WHEN_LAST,
                            .attrs = {[NX_onebit_apply_epsilon] = nxc_real(epsilon)}};
  nxc_append(graph, &request);
}
