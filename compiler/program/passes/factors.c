/* SPDX-License-Identifier: Apache-2.0 */
/* States that are not of their parameter's shape: of each matrix that a rank updates, memory that stands in
 * no shard. Ranks that were dealt other tensors have theirs in the same bytes, under their tensors' names, so
 * that a checkpoint has one of each tensor. Tensor-parallel ranks have one each of their part, one below the
 * other. */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/matrices.h"
#include "compiler/program/passes/passes.h"
#include "compiler/settings/family.h"

/* The atoms that parts of a matrix are on. */
static uint32_t divided_over(const nxc_graph *graph, const nxc_piece_node *matrix) {
  const nxc_placement *placement = &graph->values[matrix->value].shape.placement;
  uint32_t atoms = 0;
  for (uint32_t atom = 0; atom < graph->mesh.n_atoms; atom++)
    if (placement->at[atom] >= NXC_SPLIT) atoms |= 1u << atom;
  return atoms;
}

static int64_t side_of(const nxc_piece_node *matrix, const nx_state_row *state) {
  return state->shape == NX_ROWS ? matrix->rows : matrix->columns;
}

static bool is_of_expert(const nxc_piece_node *matrix) {
  return matrix->part >= NXC_PART_EXPERT_GATE && matrix->part <= NXC_PART_EXPERT_DOWN;
}

/* Rows begin behind the logical ones on all ranks but one of these. */
static void only_on(nxc_graph *graph, nxc_piece_node *piece, uint32_t atoms, uint32_t holder) {
  uint32_t n = nxc_mesh_size(&graph->mesh, atoms);
  int64_t *start = nxc_arena_array(graph->arena, n, sizeof *start);
  for (uint32_t rank = 0; rank < n; rank++) start[rank] = rank == holder ? 0 : piece->logical_rows;
  if (n > 1) nxc_rank_number_table(graph, &piece->row_start, atoms, start, false);
}

/* Parts that a checkpoint has in one tensor are updated alone, so what they keep is told apart. */
static const char *name_of(nxc_arena *arena, const nxc_training *t, const nxc_piece_node *matrix,
                           const nx_state_row *state) {
  if (t->model.family->tensors[matrix->part]->n_parts == 1) return state->name;
  return nxc_arena_printf(arena, "%s.%s", nxc_part_name((nxc_part)matrix->part), state->name);
}

/* A matrix's name for what is in `value` where it is. */
static void name_factor(nxc_graph *graph, const nxc_training *t, const nxc_range_node *range, nxc_id value,
                        const nxc_piece_node *matrix, const nx_state_row *state) {
  const nxc_value_node *parameter = &graph->values[matrix->value];
  uint32_t divided = divided_over(graph, matrix), experts = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT);
  int64_t side = side_of(matrix, state), n_local = 1;
  if (is_of_expert(matrix)) {
    n_local = t->model.mixture->n_experts / nxc_mesh_size(&graph->mesh, experts);
    divided &= ~experts;
  }
  graph->values[value].shared = parameter->shared;
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, matrix->part, false);
  graph->values[value].shared = NULL;
  piece->transposed = false;
  piece->memory = name_of(graph->arena, t, matrix, state);
  piece->expert = matrix->expert;
  piece->layer = matrix->layer;
  piece->rows = 2 * side;
  piece->columns = piece->logical_columns = side;
  piece->logical_rows = 2 * side * nxc_mesh_size(&graph->mesh, divided);
  if (divided) nxc_rank_number_stride(&piece->row_start, divided, 2 * side);
  only_on(graph, piece, range->shard_atoms, (uint32_t)(parameter->range_start / range->n_shard));
  if (is_of_expert(matrix)) only_on(graph, piece, experts, (uint32_t)(matrix->expert / n_local));
}

static nxc_id new_factor(nxc_graph *graph, const nxc_training *t, const nxc_range_node *range,
                         const nxc_piece_node *matrix, const nx_state_row *state) {
  int64_t side = side_of(matrix, state);
  nxc_shape shape = nxc_shape_of(NX_f32, 2, (int64_t[]){2 * side, side});
  nxc_place_atoms(&shape.placement, divided_over(graph, matrix) | range->shard_atoms, NXC_SPLIT);
  const char *name = nxc_arena_printf(graph->arena, "%s.%lld.%s", graph->values[matrix->value].name,
                                      (long long)matrix->row, state->name);
  nxc_id value = nxc_parameter_new(graph, t, name, &shape);
  graph->values[value].frozen = graph->values[value].memory = true;
  return value;
}

/* Every tensor that stands where this one does in the share of a rank. */
static void name_for_all(nxc_graph *graph, const nxc_training *t, nxc_id index, const nxc_piece_node *of,
                         nxc_id value, const nx_state_row *state) {
  const nxc_range_node range = graph->ranges[index];
  const uint64_t place = graph->values[of->value].range_start;
  const size_t n = graph->n_pieces;
  size_t n_parts;
  for (size_t i = 0; i < n; i += n_parts) {
    const nxc_piece_node matrix = nxc_matrix_at(graph, t, i, &n_parts);
    const nxc_value_node *parameter = &graph->values[matrix.value];
    bool same = !parameter->memory && parameter->range == index &&
                parameter->range_start % range.n_shard == place;
    if (same && matrix.row == of->row && !matrix.alias) name_factor(graph, t, &range, value, &matrix, state);
  }
}

static void make_factors(nxc_graph *graph, const nxc_training *t, nxc_id index,
                         const nx_optimizer_row *rule) {
  const nxc_range_node range = graph->ranges[index];
  const size_t n = graph->n_pieces;
  size_t n_parts;
  for (size_t i = 0; i < n; i += n_parts) {
    const nxc_piece_node matrix = nxc_matrix_at(graph, t, i, &n_parts);
    const nxc_value_node parameter = graph->values[matrix.value];
    if (parameter.memory || parameter.range != index || parameter.range_start >= range.n_shard ||
        !nxc_matrix_is_first(graph, i))
      continue;
    for (uint32_t k = nx_optimizer_n_same(rule); k < nx_optimizer_n_states(rule); k++) {
      nxc_id value = new_factor(graph, t, &range, &matrix, &rule->states[k]);
      graph->pieces[i].factors[k] = value;
      name_for_all(graph, t, index, &matrix, value, &rule->states[k]);
    }
  }
}

void nxc_factors_begin(nxc_graph *graph, const nxc_training *t) {
  const size_t n = graph->n_ranges;
  for (nxc_id i = 0; i < n; i++) {
    if (graph->ranges[i].frozen) continue;
    const nx_optimizer_row *rule =
        graph->tables->parameter_groups[graph->ranges[i].parameter_group].update.rule;
    if (nx_optimizer_n_same(rule) < nx_optimizer_n_states(rule)) make_factors(graph, t, i, rule);
  }
}
