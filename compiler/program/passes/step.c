/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/moe_route.h"
#include "compiler/program/model/parameters.h"
#include "compiler/program/graph/fp8.h"
#include "compiler/program/graph/rules.h"
#include "compiler/program/passes/matrices.h"
#include "compiler/program/passes/passes.h"
#include "compiler/program/pipeline/pipeline.h"

#include <string.h>

typedef struct step {
  nxc_graph *graph;
  const nxc_training *t;
  nxc_id scale;
} step;

static bool is_divided(const nxc_range_node *range) {
  return range->shard_atoms != 0;
}

static nxc_id clock_of(const nxc_graph *graph, const nxc_learning_rate *rate) {
  if (rate->follows_loss) return graph->reductions;
  return rate->by_samples ? graph->seen : graph->step;
}

/* A number that follows the steps, as segments. */
static void segments(nxc_graph *graph, const nxc_learning_rate *rate, nxc_id to) {
  for (size_t i = 0; i < rate->n_segments; i++) {
    const nx_segment *segment = &rate->segments[i];
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_segment,
                                        .in = {clock_of(graph, rate), i > 0 ? to : 0},
                                        .out = {to},
                                        .when = NX_WHEN_MIDDLE,
                                        .attrs = {[NX_segment_kind] = nxc_integer(segment->kind),
                                                  [NX_segment_first] = nxc_integer(segment->first),
                                                  [NX_segment_every] = nxc_integer(segment->every),
                                                  [NX_segment_origin] = nxc_real(segment->origin),
                                                  [NX_segment_span] = nxc_real(segment->span),
                                                  [NX_segment_from] = nxc_real(segment->from),
                                                  [NX_segment_to] = nxc_real(segment->to),
                                                  [NX_segment_exponent] = nxc_real(segment->exponent),
                                                  [NX_segment_towards] = nxc_real(segment->towards),
                                                  [NX_segment_least] = nxc_real(segment->least)}});
  }
}

/* Learning rate and weight decay of each group, whichever of them this graph has parameters of. */
static void rates(step *s) {
  nxc_graph *graph = s->graph;
  graph->origin = "schedule";
  graph->lr = nxc_step_scalar(graph, "lr");
  segments(graph, &s->t->rate, graph->lr);
  size_t n = graph->tables->n_parameter_groups;
  graph->group_numbers = nxc_arena_array(graph->arena, n, sizeof *graph->group_numbers);
  for (size_t i = 0; i < n; i++) {
    const nxc_parameter_group *group = &graph->tables->parameter_groups[i];
    nxc_group_numbers numbers = {.lr = graph->lr};
    if (group->own_rate)
      numbers.lr = nxc_step_scalar(graph, nxc_arena_printf(graph->arena, "lr.%s", group->name));
    if (group->own_rate) segments(graph, &group->rate, numbers.lr);
    numbers.decay = nxc_step_scalar(graph, nxc_arena_printf(graph->arena, "weight_decay.%s", group->name));
    segments(graph, &group->weight_decay, numbers.decay);
    graph->group_numbers[i] = numbers;
  }
}

static nx_attribute number_of(const nxc_update *update, const nx_op_row *op, uint32_t index) {
  double number = update->numbers[index];
  return op->attrs[index].type == NX_REAL ? nxc_real(number) : nxc_integer((int64_t)number);
}

/* What an update reads and writes: all of a range, or a box of one of its tensors. */
typedef struct update {
  const nxc_range_node *range;
  const nxc_parameter_group *group;
  nxc_group_numbers numbers;
  nxc_id param, copy, gradient, states[NX_MAX_STATES]; /* copy: 0: none */
  nxc_id whole[2 + NX_MAX_STATES]; /* p, states, gradient of the tensor; 0: the box is all of it */
  nx_attribute row_start, column_start, tensor_rows;
  double factor; /* of its update_factor */
  int64_t column_parts;
} update;

static nx_attribute attribute_of(const update *u, const nx_op_row *op, uint32_t index) {
  if (strcmp(op->attrs[index].name, "row_start") == 0) return u->row_start;
  if (strcmp(op->attrs[index].name, "column_start") == 0) return u->column_start;
  if (strcmp(op->attrs[index].name, "tensor_rows") == 0) return u->tensor_rows;
  if (strcmp(op->attrs[index].name, "update_factor") == 0)
    return nxc_real(u->factor * u->group->update.numbers[index]);
  if (strcmp(op->attrs[index].name, "column_parts") == 0) return nxc_integer(u->column_parts);
  return number_of(&u->group->update, op, index);
}

static void append_update(step *s, const update *u) {
  const nx_optimizer_row *rule = u->group->update.rule;
  const nx_op_row *op = nx_op_find(rule->op);
  uint32_t n_states = nx_optimizer_n_states(rule), n = 1 + n_states;
  nxc_op_request request = {.op = rule->op, .n_out = n, .when = NX_WHEN_LAST};
  request.in[0] = request.out[0] = u->param;
  for (uint32_t i = 0; i < n_states; i++) request.in[1 + i] = request.out[1 + i] = u->states[i];
  if (u->copy) request.out[request.n_out++] = u->copy;
  request.in[n + NX_UPDATE_GRADIENT] = u->gradient;
  request.in[n + NX_UPDATE_LR] = u->numbers.lr;
  request.in[n + NX_UPDATE_DECAY] = u->numbers.decay;
  request.in[n + NX_UPDATE_SCALE] = s->scale;
  request.in[n + NX_UPDATE_STEP] = s->graph->updates ? s->graph->updates : s->graph->step;
  for (uint32_t i = 0; i < n_states + 2; i++) request.in[n + NX_UPDATE_END + i] = u->whole[i];
  for (uint32_t i = 0; i < nx_op_n_attrs(op); i++) request.attrs[i] = attribute_of(u, op, i);
  nxc_append(s->graph, &request);
}

/* ---- rules of whole tensors ---- */

/* Atoms that a number of the rank hangs on. */
static uint32_t atoms_of(const nxc_rank_number *number) {
  uint32_t atoms = 0;
  for (uint32_t i = 0; i < number->n_terms; i++)
    if (number->terms[i].atoms != NX_NONE) atoms |= number->terms[i].atoms;
  return atoms;
}

/* The ranks that together have the tensor of which a piece is a box: what divides its rows (axis 0) or
 * columns. */
static uint32_t holders_of(const nxc_graph *graph, const nxc_piece_node *piece, int64_t *axis) {
  const nxc_shape *shape = &graph->values[piece->value].shape;
  for (*axis = shape->n_dims > 1 ? 0 : 1; *axis < 2; (*axis)++) {
    uint8_t divided = (uint8_t)(NXC_SPLIT + shape->n_dims - 2 + *axis);
    uint32_t atoms = nxc_atoms_placed(&shape->placement, divided) &
                     atoms_of(*axis ? &piece->column_start : &piece->row_start);
    if (atoms) return atoms;
  }
  return *axis = 0;
}

/* The piece's part of a vector of the range (or of the shard), as a matrix. */
static nxc_id box_of(nxc_graph *graph, nxc_id vector, const nxc_piece_node *piece, uint32_t holders,
                     int64_t axis) {
  const nxc_value_node base = graph->values[vector];
  nxc_shape shape = nxc_shape_of(base.shape.dtype, 2, (int64_t[]){piece->rows, piece->columns});
  const nxc_value_node *parameter = &graph->values[piece->value];
  int64_t row_elements = parameter->shape.n_dims == 1 ? 1 : piece->columns;
  uint64_t start = parameter->range_start + (uint64_t)(piece->row * row_elements);
  shape.placement = base.shape.placement;
  nxc_place_atoms(&shape.placement, holders, (uint8_t)(NXC_SPLIT + axis));
  const char *name = nxc_arena_printf(graph->arena, "%s.%s.%lld", base.name, graph->values[piece->value].name,
                                      (long long)piece->row);
  nxc_id box = nxc_view_new(graph, name, nxc_value_root(graph, vector),
                            base.view_offset + start * nx_dtype_bits(shape.dtype) / 8, &shape);
  graph->values[box].shift = base.shift;
  return box;
}

static nxc_id gathered(nxc_graph *graph, nxc_id box, uint32_t holders, int64_t axis) {
  return nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_all_gather,
                               .name = nxc_arena_printf(graph->arena, "%s.whole", graph->values[box].name),
                               .in = {box},
                               .when = NX_WHEN_LAST,
                               .attrs = {[NX_all_gather_axis] = nxc_integer(axis)},
                               .dtype = graph->values[box].shape.dtype,
                               .group_atoms = holders});
}

/* Where this rank's box begins, along the axis. */
static nx_attribute start_of(nxc_graph *graph, uint32_t holders, int64_t extent) {
  nxc_rank_number number = nxc_rank_number_of(0);
  if (holders) nxc_rank_number_stride(&number, holders, extent);
  return nxc_attribute(graph, &number);
}

static void update_matrix(step *s, const update *of_range, const nxc_piece_node *piece) {
  nxc_graph *graph = s->graph;
  update u = *of_range;
  int64_t axis;
  const nx_optimizer_row *rule = u.group->update.rule;
  uint32_t holders = holders_of(graph, piece, &axis), n_same = nx_optimizer_n_same(rule);
  bool has_factors = n_same < nx_optimizer_n_states(rule);
  bool whole = holders != 0 && !has_factors && !(s->t->optimizer.blockwise && rule->kind == NX_MATRIX);
  u.factor = nxc_matrix_factor(s->t, piece);
  u.column_parts = nxc_matrix_columns_apart(s->t, piece);
  u.param = box_of(graph, of_range->param, piece, holders, axis);
  if (of_range->copy) u.copy = box_of(graph, of_range->copy, piece, holders, axis);
  memcpy(u.states, piece->factors, sizeof u.states);
  for (uint32_t i = 0; i < n_same; i++)
    u.states[i] = box_of(graph, of_range->states[i], piece, holders, axis);
  u.gradient = box_of(graph, of_range->gradient, piece, holders, axis);
  int64_t rows = piece->rows * (whole && axis == 0 ? (int64_t)nxc_mesh_size(&graph->mesh, holders) : 1);
  u.tensor_rows = nxc_integer(rows < piece->logical_rows ? rows : piece->logical_rows);
  u.row_start = start_of(graph, whole && axis == 0 ? holders : 0, piece->rows);
  u.column_start = start_of(graph, whole && axis == 1 ? holders : 0, piece->columns);
  if (whole) {
    u.whole[0] = gathered(graph, u.param, holders, axis);
    for (uint32_t i = 0; i < n_same; i++) u.whole[1 + i] = gathered(graph, u.states[i], holders, axis);
    u.whole[1 + n_same] = gathered(graph, u.gradient, holders, axis);
  }
  append_update(s, &u);
}

/* A rule for matrices may work on parts of one, each by itself: so many rows, and the last what is left. */
static void update_parts(step *s, const update *u, nxc_piece_node piece) {
  int64_t n_parts = u->group->update.rule->kind == NX_MATRIX ? nxc_matrix_rows_apart(s->t, &piece) : 1;
  int64_t rows = piece.rows, most = (rows + n_parts - 1) / n_parts;
  for (int64_t row = 0; row < rows; row += most, piece.row += most) {
    piece.rows = most < rows - row ? most : rows - row;
    if (piece.rows < rows) piece.logical_rows = piece.rows;
    update_matrix(s, u, &piece);
  }
}

/* Each slot of a rank's share, in which ranks have other tensors of the same form: those of the first rank
 * stand for all. */
static void update_tensors(step *s, nxc_id index, const update *u) {
  nxc_graph *graph = s->graph;
  size_t n_pieces;
  for (size_t i = 0; i < graph->n_pieces; i += n_pieces) {
    const nxc_piece_node matrix = nxc_matrix_at(graph, s->t, i, &n_pieces);
    const nxc_value_node *value = &graph->values[matrix.value];
    if (value->range == index && value->range_start < u->range->n_shard && nxc_matrix_is_first(graph, i))
      update_parts(s, u, matrix);
  }
}

static void update_compressed(step *s, const update *u) {
  const nxc_compressed_update compressed = {u->param, u->copy, s->scale, u->numbers, &u->group->update};
  s->graph->steps = NXC_STEPS_PLAIN;
  append_update(s, u);
  s->graph->steps = NXC_STEPS_COMPRESSED;
  nxc_compression_update(s->graph, u->range, &compressed);
  s->graph->steps = NXC_STEPS_ALL;
}

static void update_range(step *s, nxc_id index) {
  nxc_graph *graph = s->graph;
  const nxc_range_node range = graph->ranges[index];
  const nxc_parameter_group *group = &graph->tables->parameter_groups[range.parameter_group];
  update u = {.range = &range,
              .group = group,
              .factor = 1,
              .numbers = graph->group_numbers[range.parameter_group],
              .param = range.master ? range.master : range.param_shard,
              .copy = range.master ? range.param_shard : 0,
              .gradient = range.summed};
  memcpy(u.states, range.states, sizeof u.states);
  graph->origin = range.name;
  if (nxc_is_compressed(&range)) update_compressed(s, &u);
  else if (group->update.rule->kind == NX_ELEMENT) append_update(s, &u);
  else update_tensors(s, index, &u);
  if (is_divided(&range) && range.storage == NXC_WHOLE)
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                        .in = {range.param_shard},
                                        .out = {range.whole},
                                        .when = NX_WHEN_LAST,
                                        .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                        .group_atoms = range.shard_atoms});
}

/* The sum over all ranks of what a step counts. */
static nxc_id total(step *s, nxc_id counted, const char *name) {
  nxc_graph *graph = s->graph;
  uint32_t partial = nxc_atoms_placed(&graph->values[counted].shape.placement, NXC_PARTIAL);
  if (partial == 0) return counted;
  nxc_shape shape = graph->values[counted].shape;
  nxc_place_atoms(&shape.placement, partial, NXC_REPLICATED);
  nxc_id sum = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  uint8_t evaluated = s->t->evaluates ? NX_WHEN_EVALUATED : 0;
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                      .in = {counted},
                                      .out = {sum},
                                      .when = NX_WHEN_MIDDLE | evaluated,
                                      .group_atoms = partial});
  return sum;
}

static void total_loss(step *s) {
  s->graph->origin = "loss";
  s->graph->loss_total = total(s, s->graph->loss, "loss_total");
  if (s->graph->metrics) s->graph->metrics_total = total(s, s->graph->metrics, "metrics_total");
}

/* An answer's ranks complete its sums before they count it; tokens are counted by whoever has them. */
static nxc_id counted_elsewhere(nxc_graph *graph, const nxc_training *t, const char *name, int64_t n) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_PARTIAL);
  if (!nxc_objective_compares(&t->objective))
    nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_PARTIAL);
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  nxc_clear_first(graph, value);
  return value;
}

/* What stages sum together: a stage without the loss has 0 of it, and 0 where others' parameters are
 * counted. */
void nxc_step_begin(nxc_graph *graph, const nxc_training *t, int64_t n_squares) {
  bool alone = graph->pipeline->n_chunks == 1;
  graph->program = NXC_FORWARD;
  graph->layer = -1;
  nxc_fp8_remember(graph, NXC_FP8_X);
  if (!graph->is_last) {
    graph->origin = "loss";
    graph->loss = counted_elsewhere(graph, t, "loss", 1);
    if (nxc_objective_compares(&t->objective))
      graph->metrics = counted_elsewhere(graph, t, "metrics", NX_N_ANSWER_METRICS);
  } else {
    graph->loss = nxc_pairs_of_passes(graph, graph->loss);
    if (graph->metrics) graph->metrics = nxc_pairs_of_passes(graph, graph->metrics);
  }
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n_squares});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_PARTIAL);
  graph->squares = nxc_value_new(graph, "grad_norm.squares", NXC_ROLE_SCALAR, &shape);
  graph->origin = "grad_norm";
  if (!alone || t->sharding.stage > 0 || t->sharding.in_pairs) nxc_clear_first(graph, graph->squares);
  nxc_measures_begin(graph, t);
}

/* What stages share goes first, in one order on all of them: that of the layers that have the weights. */
static void reduce(nxc_graph *graph, const nxc_training *t) {
  int64_t last = INT64_MIN;
  for (bool more = true; more;) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < graph->n_ranges; i++)
      if (graph->ranges[i].shared && graph->ranges[i].unit > last && graph->ranges[i].unit < next)
        next = graph->ranges[i].unit;
    more = next != INT64_MAX;
    for (size_t i = 0; more && i < graph->n_ranges; i++)
      if (graph->ranges[i].shared && graph->ranges[i].unit == next)
        nxc_reduce_in_step(graph, t, &graph->ranges[i]);
    last = next;
  }
  for (size_t i = 0; i < graph->n_ranges; i++)
    if (!graph->ranges[i].shared) nxc_reduce_in_step(graph, t, &graph->ranges[i]);
}

/* In the phases of a step item (schema/plan.h): each chunk's gradients, what the chunks share, each chunk's
 * update. */
void nxc_step_build(nxc_graph *graph, const nxc_training *training) {
  step s = {.graph = graph, .t = training};
  graph->program = NXC_STEP;
  graph->layer = -1;
  reduce(graph, training);
  graph->layer = -1;
  nxc_norm_squares(graph, training);
  nxc_measures_build(graph, training);
  total_loss(&s);
  s.scale = nxc_norm_build(graph, training);
  rates(&s);
  for (nxc_id i = 0; i < graph->n_ranges; i++)
    if (!graph->ranges[i].frozen) update_range(&s, i);
  nxc_fp8_remember(graph, NXC_FP8_WEIGHT);
  nxc_moe_settle(graph, training);
}
