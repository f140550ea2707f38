/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that are the same however many ranks share a batch.
 *
 * A rank's micro-batches are neighbours in the batch. If it has a power of two of them, or all, then their
 * sum in pairs is a subtree of the sum in pairs over the batch, and the ranks' sums in pairs are the rest of
 * the tree. Squares are summed block by block, and shards are whole blocks, so that it makes no difference
 * who has which. */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/passes.h"

/* What passes are summed in, beside a value. */
static nxc_id beside(nxc_graph *graph, nxc_id value, const char *what, const nxc_shape *shape) {
  const char *name = nxc_arena_printf(graph->arena, "%s.%s", graph->values[value].name, what);
  return nxc_value_new(graph, name, graph->values[value].role, shape);
}

static nxc_id levels_of(nxc_graph *graph, nxc_id value, uint32_t n_levels) {
  nxc_shape shape = graph->values[value].shape;
  shape.dims[0] *= n_levels;
  return beside(graph, value, "levels", &shape);
}

static nxc_id count_of(nxc_graph *graph, nxc_id value) {
  const nxc_shape one = nxc_shape_of(NX_i32, 1, (int64_t[]){1});
  return beside(graph, value, "summed", &one);
}

/* As many levels as the last micro-batch but one may fill. */
void nxc_pairs_make(nxc_graph *graph, nxc_range_node *range) {
  uint32_t n_levels = 0;
  while ((graph->n_micro_batches - 1) >> n_levels) n_levels++;
  range->levels = levels_of(graph, range->grad, n_levels);
  range->n_summed = count_of(graph, range->grad);
}

static void sum_passes(nxc_graph *graph, nxc_id x, nxc_id levels, nxc_id count, nxc_id sum) {
  nxc_op_request first = {
      .op = NX_OP_pairs_begin, .in = {x}, .out = {levels, count}, .n_out = 2, .when = NX_WHEN_FIRST};
  nxc_op_request middle = {.op = NX_OP_pairs_add,
                           .in = {levels, count, x},
                           .out = {levels, count},
                           .n_out = 2,
                           .when = NX_WHEN_MIDDLE};
  nxc_op_request last = {
      .op = NX_OP_pairs_sum, .in = {x, levels, count}, .out = {sum}, .when = NX_WHEN_LAST};
  nxc_append(graph, &first);
  if (graph->n_micro_batches > 2) nxc_append(graph, &middle);
  nxc_append(graph, &last);
}

void nxc_pairs_add(nxc_graph *graph, nxc_id index) {
  const nxc_range_node *range = &graph->ranges[index];
  sum_passes(graph, range->handed, range->levels, range->n_summed, range->grad);
}

nxc_id nxc_pairs_of_passes(nxc_graph *graph, nxc_id x) {
  enum { N_LEVELS = 31 /* an evaluation may have more passes than a step */ };
  if (!graph->in_pairs) return x;
  const nxc_value_node of = graph->values[x];
  nxc_id sum = nxc_value_new(graph, of.name, of.role, &of.shape); /* all stages sum what has one name */
  graph->values[x].name = nxc_arena_printf(graph->arena, "%s.pass", of.name);
  sum_passes(graph, x, levels_of(graph, x, N_LEVELS), count_of(graph, x), sum);
  return sum;
}

void nxc_pairs_squares(nxc_graph *graph, const nxc_range_node *range, nxc_id x, nxc_id sum, bool accumulate) {
  nxc_rank_number weight = nxc_parameter_owner(graph, range->copy_atoms | range->group_atoms, range->shared);
  if (graph->tables->parameter_groups[range->parameter_group].uncounted) weight = nxc_rank_number_of(0);
  nxc_id squares = nxc_append(graph, &(nxc_op_request){.op = NX_OP_block_squares,
                                                       .name = nxc_arena_printf(graph->arena, "%s.squares",
                                                                                graph->values[x].name),
                                                       .in = {x},
                                                       .when = NX_WHEN_FIRST});
  if (range->shard_atoms)
    squares = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                                  .name = nxc_arena_printf(graph->arena, "%s.squares.whole",
                                                                           graph->values[x].name),
                                                  .in = {squares},
                                                  .when = NX_WHEN_FIRST,
                                                  .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                                  .group_atoms = range->shard_atoms});
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_blocks_sum,
                                      .in = {squares},
                                      .out = {sum},
                                      .when = NX_WHEN_FIRST,
                                      .attrs = {[NX_blocks_sum_accumulate] = nxc_integer(accumulate),
                                                [NX_blocks_sum_weight] = nxc_attribute(graph, &weight)}});
}
