/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes.h"
#include "compiler/program/pipeline.h"
#include "compiler/program/rules.h"

#include <string.h>

typedef struct step {
  nxc_graph *graph;
  const nxc_training *t;
  nxc_id *shards;     /* per range: this rank's part of the summed gradient */
  uint32_t *range_of; /* per parameter (value) */
  nxc_id scale;
} step;

/* ---- ranges ---- */

static uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* Elements that fill NX_BLOCK_BYTES in every type that a range is stored in. */
static uint64_t block_elements(const nxc_graph *graph) {
  const nx_dtype types[] = {graph->types.param, graph->types.grad, graph->types.state};
  uint32_t bits = 32;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (nx_dtype_bits(types[i]) < bits) bits = nx_dtype_bits(types[i]);
  return NX_BLOCK_BYTES * 8 / bits;
}

static const char *range_name(nxc_graph *graph, uint32_t group, uint32_t copies, bool decayed) {
  const char *over = group ? nxc_mesh_set_name(graph->arena, &graph->mesh, group) : "none";
  const char *copied = copies ? nxc_mesh_set_name(graph->arena, &graph->mesh, copies) : NULL;
  return nxc_arena_printf(graph->arena, "%s.%s%s%s", decayed ? "decayed" : "plain", over,
                          copied ? ".copied_over_" : "", copied ? copied : "");
}

/* The range for parameters of these properties, made where there is none yet. */
static nxc_range_node *range_for(nxc_graph *graph, uint32_t group, uint32_t copies, bool decayed,
                                 double weight_decay) {
  const char *name = range_name(graph, group, copies, decayed);
  for (size_t i = 0; i < graph->n_ranges; i++)
    if (strcmp(graph->ranges[i].name, name) == 0) return &graph->ranges[i];
  graph->ranges = nxc_arena_grow(graph->arena, graph->ranges, graph->n_ranges, sizeof *graph->ranges);
  nxc_range_node *range = &graph->ranges[graph->n_ranges++];
  *range = (nxc_range_node){
      .name = name, .group_atoms = group, .copy_atoms = copies, .weight_decay = decayed ? weight_decay : 0};
  return range;
}

static void join(nxc_graph *graph, const nxc_training *t, nxc_id parameter, uint32_t *range_of,
                 uint64_t *start_of) {
  const nxc_value_node *gradient = &graph->values[graph->values[parameter].gradient];
  uint32_t group = nxc_placed(&gradient->shape.place, NXC_PARTIAL);
  uint32_t stage = nxc_axis(&graph->mesh, NXC_AXIS_STAGE);
  uint32_t copies = nxc_placed(&gradient->shape.place, NXC_REPLICATED) & stage;
  bool decayed = gradient->shape.n_dims > 1 || t->norm_weight_decay;
  nxc_range_node *range = range_for(graph, group, copies, decayed, t->weight_decay);
  range_of[parameter] = (uint32_t)(range - graph->ranges);
  start_of[parameter] = range->n_elements;
  range->n_elements += round_up((uint64_t)nxc_shape_elements(&gradient->shape), block_elements(graph));
}

static nxc_id range_value(nxc_graph *graph, const nxc_range_node *range, const char *what, nxc_role role,
                          nx_dtype dtype, uint64_t n, uint8_t group_place) {
  nxc_shape shape = nxc_shape_of(dtype, 1, (int64_t[]){(int64_t)n});
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_SPLIT);
  nxc_place(&shape.place, range->copy_atoms, NXC_REPLICATED);
  nxc_place(&shape.place, range->group_atoms, group_place);
  return nxc_value_new(graph, nxc_arena_printf(graph->arena, "%s.%s", range->name, what), role, &shape);
}

static void lay_out(nxc_graph *graph, const nxc_training *t, nxc_range_node *range) {
  uint32_t n_ranks = nxc_mesh_size(&graph->mesh, range->group_atoms);
  range->n_elements = round_up(range->n_elements, n_ranks * block_elements(graph));
  bool divided = t->zero_stage > 0 && n_ranks > 1;
  range->n_shard = divided ? range->n_elements / n_ranks : range->n_elements;
  range->shard_start = nxc_rank_number_of(0);
  if (divided) nxc_rank_number_stride(&range->shard_start, range->group_atoms, (int64_t)range->n_shard);
  uint8_t shard = divided ? NXC_SPLIT : NXC_REPLICATED;
  range->param = range_value(graph, range, "param", NXC_ROLE_PARAMETER, t->types.param, range->n_elements,
                             NXC_REPLICATED);
  range->grad =
      range_value(graph, range, "grad", NXC_ROLE_GRADIENT, t->types.grad, range->n_elements, NXC_PARTIAL);
  if (t->types.master)
    range->master = range_value(graph, range, "master", NXC_ROLE_MASTER, NX_f32, range->n_shard, shard);
  if (!t->adamw) return;
  range->moment1 =
      range_value(graph, range, "moment1", NXC_ROLE_STATE, t->types.state, range->n_shard, shard);
  range->moment2 =
      range_value(graph, range, "moment2", NXC_ROLE_STATE, t->types.state, range->n_shard, shard);
}

static void view(nxc_graph *graph, nxc_id value, nxc_id base, uint64_t start) {
  nxc_value_node *node = &graph->values[value];
  node->view_of = base;
  node->view_offset = start * nx_dtype_bits(node->shape.dtype) / 8;
}

static void make_ranges(step *s) {
  nxc_graph *graph = s->graph;
  const nxc_training *t = s->t;
  uint32_t *range_of = nxc_arena_array(graph->arena, graph->n_values, sizeof *range_of);
  uint64_t *start_of = nxc_arena_array(graph->arena, graph->n_values, sizeof *start_of);
  for (size_t i = 0; i < graph->n_parameters; i++) join(graph, t, graph->parameters[i], range_of, start_of);
  for (size_t i = 0; i < graph->n_ranges; i++) lay_out(graph, t, &graph->ranges[i]);
  for (size_t i = 0; i < graph->n_parameters; i++) {
    nxc_id parameter = graph->parameters[i];
    const nxc_range_node *range = &graph->ranges[range_of[parameter]];
    view(graph, parameter, range->param, start_of[parameter]);
    view(graph, graph->values[parameter].gradient, range->grad, start_of[parameter]);
  }
  s->range_of = range_of;
}

/* ---- the step ---- */


static nxc_id scalar(nxc_graph *graph, const char *name) {
  const nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  graph->values[value].unplaced = true;
  return value;
}

static bool is_divided(const nxc_range_node *range) {
  return range->n_shard != range->n_elements;
}

/* This rank's part of a range's value: a view at a place that depends on the rank. */
static nxc_id shard_of(nxc_graph *graph, const nxc_range_node *range, nxc_id value, const char *what) {
  if (!is_divided(range)) return value;
  nxc_shape shape = graph->values[value].shape;
  shape.dims[0] = (int64_t)range->n_shard;
  nxc_place(&shape.place, range->group_atoms, NXC_SPLIT);
  const char *name = nxc_arena_printf(graph->arena, "%s.%s.shard", range->name, what);
  nxc_id shard = nxc_view_new(graph, name, value, 0, &shape);
  nxc_rank_number start = range->shard_start;
  for (uint32_t i = 0; i < start.n_terms; i++) start.terms[i].stride *= nx_dtype_bits(shape.dtype) / 8;
  graph->values[shard].shift = nxc_constant(graph, &start);
  return shard;
}

/* The same bytes, summed over the ranks. */
static nxc_id summed(nxc_graph *graph, const nxc_range_node *range, nxc_id gradient) {
  nxc_shape shape = graph->values[gradient].shape;
  nxc_place(&shape.place, range->group_atoms, NXC_REPLICATED);
  const char *name = nxc_arena_printf(graph->arena, "%s.sum", graph->values[gradient].name);
  return nxc_view_new(graph, name, range->grad, graph->values[gradient].view_offset, &shape);
}

static void reduce_gradients(step *s) {
  nxc_graph *graph = s->graph;
  s->shards = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *s->shards);
  for (size_t i = 0; i < graph->n_ranges; i++) {
    const nxc_range_node *range = &graph->ranges[i];
    graph->origin = range->name;
    s->shards[i] = range->grad;
    if (range->group_atoms == 0) continue;
    bool divided = is_divided(range);
    s->shards[i] = divided ? shard_of(graph, range, range->grad, "grad") : summed(graph, range, range->grad);
    nxc_append(graph, &(nxc_op_request){.op = divided ? NX_OP_reduce_scatter : NX_OP_all_reduce,
                                        .in = {range->grad},
                                        .out = {s->shards[i]},
                                        .when = NX_WHEN_FIRST,
                                        .group_atoms = range->group_atoms});
  }
}

/* The entry of a parameter in the table of squares, which is in the order of the model. */
static nxc_id square_entry(step *s, size_t parameter) {
  nxc_graph *graph = s->graph;
  nxc_shape shape = graph->values[graph->squares].shape;
  shape.dims[0] = 1;
  const char *of = graph->values[graph->parameters[parameter]].name;
  const char *name = nxc_arena_printf(graph->arena, "%s.square", of);
  nxc_id entry = nxc_view_new(graph, name, graph->squares, 0, &shape);
  nxc_rank_number offset = nxc_rank_number_of((int64_t)(parameter * sizeof(double)));
  const nxc_pipeline *pipeline = graph->pipeline;
  nxc_rank_number_chunk(graph, &offset, pipeline->first_squares[pipeline->chunks[graph->chunk].graph]);
  graph->values[entry].view_offset = offset.n_terms ? 0 : (uint64_t)offset.base;
  graph->values[entry].shift = offset.n_terms ? nxc_constant(graph, &offset) : NX_NONE;
  return entry;
}

/* Sums of squares, each element counted on one rank: one sum per parameter, or per range where ranks hold a
 * shard, which begins and ends anywhere. */
static void squares(step *s) {
  nxc_graph *graph = s->graph;
  bool *counted = nxc_arena_array(graph->arena, graph->n_ranges, sizeof *counted);
  graph->origin = "grad_norm";
  for (size_t i = 0; i < graph->n_parameters; i++) {
    uint32_t index = s->range_of[graph->parameters[i]];
    const nxc_range_node *range = &graph->ranges[index];
    nxc_id gradient = graph->values[graph->parameters[i]].gradient;
    if (is_divided(range) && counted[index]) continue;
    counted[index] = true;
    nxc_id x = gradient;
    if (range->group_atoms) x = is_divided(range) ? s->shards[index] : summed(graph, range, gradient);
    uint32_t held_by_all = range->copy_atoms | (is_divided(range) ? 0 : range->group_atoms);
    nxc_rank_number weight = nxc_rank_number_first(held_by_all);
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_norm_sq,
                                        .in = {x},
                                        .out = {square_entry(s, i)},
                                        .when = NX_WHEN_FIRST,
                                        .attrs = {[NX_norm_sq_accumulate] = nxc_integer(0),
                                                  [NX_norm_sq_weight] = nxc_attribute(graph, &weight)}});
  }
}

static void global_norm(step *s) {
  nxc_graph *graph = s->graph;
  nxc_id sum = graph->squares;
  graph->origin = "grad_norm";
  uint32_t world = nxc_placed(&graph->values[sum].shape.place, NXC_PARTIAL);
  if (world) {
    nxc_shape shape = graph->values[sum].shape;
    nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_REPLICATED);
    nxc_id total = nxc_value_new(graph, "grad_norm.total", NXC_ROLE_SCALAR, &shape);
    sum = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                              .in = {sum},
                                              .out = {total},
                                              .when = NX_WHEN_MIDDLE,
                                              .group_atoms = world});
  }
  graph->grad_norm = scalar(graph, "grad_norm");
  s->scale = scalar(graph, "grad_scale");
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_clip_scale,
                                      .in = {sum},
                                      .out = {graph->grad_norm, s->scale},
                                      .when = NX_WHEN_MIDDLE,
                                      .attrs = {[NX_clip_scale_clip] = nxc_real(s->t->clip_norm)}});
}

static void learning_rate(step *s) {
  nxc_graph *graph = s->graph;
  const nxc_training *t = s->t;
  graph->origin = "schedule";
  graph->lr = scalar(graph, "lr");
  nxc_append(graph,
             &(nxc_op_request){.op = NX_OP_lr_schedule,
                               .in = {graph->step},
                               .out = {graph->lr},
                               .when = NX_WHEN_MIDDLE,
                               .attrs = {[NX_lr_schedule_shape] = nxc_integer(t->schedule_shape),
                                         [NX_lr_schedule_lr] = nxc_real(t->lr),
                                         [NX_lr_schedule_min_lr] = nxc_real(t->min_lr),
                                         [NX_lr_schedule_warmup_steps] = nxc_integer(t->warmup_steps),
                                         [NX_lr_schedule_constant_steps] = nxc_integer(t->constant_steps),
                                         [NX_lr_schedule_max_steps] = nxc_integer(t->max_steps)}});
}

static void update(step *s, size_t index) {
  nxc_graph *graph = s->graph;
  const nxc_training *t = s->t;
  const nxc_range_node range = graph->ranges[index];
  graph->origin = range.name;
  nxc_id copy = shard_of(graph, &range, range.param, "param");
  nxc_id param = range.master ? range.master : copy;
  uint32_t n_copies = range.master ? 1 : 0;
  if (t->adamw) {
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_adamw,
                                        .in = {param, range.moment1, range.moment2, s->shards[index],
                                               graph->lr, s->scale, graph->step},
                                        .out = {param, range.moment1, range.moment2, n_copies ? copy : 0},
                                        .n_out = 3 + n_copies,
                                        .when = NX_WHEN_LAST,
                                        .attrs = {[NX_adamw_beta1] = nxc_real(t->beta1),
                                                  [NX_adamw_beta2] = nxc_real(t->beta2),
                                                  [NX_adamw_epsilon] = nxc_real(t->epsilon),
                                                  [NX_adamw_weight_decay] = nxc_real(range.weight_decay)}});
  } else {
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_sgd,
                                        .in = {param, s->shards[index], graph->lr, s->scale},
                                        .out = {param, n_copies ? copy : 0},
                                        .n_out = 1 + n_copies,
                                        .when = NX_WHEN_LAST,
                                        .attrs = {[NX_sgd_weight_decay] = nxc_real(range.weight_decay)}});
  }
  if (is_divided(&range))
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                        .in = {copy},
                                        .out = {range.param},
                                        .when = NX_WHEN_LAST,
                                        .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                        .group_atoms = range.group_atoms});
}

static void total_loss(step *s) {
  nxc_graph *graph = s->graph;
  graph->origin = "loss";
  graph->loss_total = graph->loss;
  uint32_t partial = nxc_placed(&graph->values[graph->loss].shape.place, NXC_PARTIAL);
  if (partial == 0) return;
  graph->loss_total = scalar(graph, "loss_total");
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_reduce,
                                      .in = {graph->loss},
                                      .out = {graph->loss_total},
                                      .when = NX_WHEN_MIDDLE,
                                      .group_atoms = partial});
}

/* Before all else in the first micro-batch. */
static void clear(nxc_graph *graph, nxc_id value) {
  nxc_program_list *list = &graph->programs[NXC_FORWARD];
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_fill,
                                      .out = {value},
                                      .attrs = {nxc_real(0)},
                                      .when = graph->n_micro_batches > 1 ? NX_WHEN_FIRST : NX_WHEN_ALWAYS});
  nxc_id op = list->operators[list->n - 1];
  memmove(list->operators + 1, list->operators, (list->n - 1) * sizeof *list->operators);
  list->operators[0] = op;
}

/* What stages sum together: a stage without the loss has 0 of it, and 0 where others' parameters are
 * counted. */
void nxc_step_begin(nxc_graph *graph, const nxc_training *t, int64_t n_squares) {
  bool alone = graph->pipeline->n_chunks == 1;
  graph->program = NXC_FORWARD;
  graph->layer = -1;
  if (!graph->is_last) {
    graph->origin = "loss";
    graph->loss = scalar(graph, "loss");
    nxc_value_node *loss = &graph->values[graph->loss];
    loss->unplaced = false;
    nxc_place(&loss->shape.place, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_PARTIAL);
    nxc_place(&loss->shape.place, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), NXC_PARTIAL);
    clear(graph, graph->loss);
  }
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){n_squares});
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_PARTIAL);
  graph->squares = nxc_value_new(graph, "grad_norm.squares", NXC_ROLE_SCALAR, &shape);
  graph->origin = "grad_norm";
  if (!alone || t->zero_stage > 0) clear(graph, graph->squares);
}

/* In the phases of a step item (schema/plan.h): each chunk's gradients, what the chunks share, each chunk's
 * update. */
void nxc_step_build(nxc_graph *graph, const nxc_training *training) {
  step s = {.graph = graph, .t = training};
  graph->program = NXC_STEP;
  graph->layer = -1;
  make_ranges(&s);
  reduce_gradients(&s);
  squares(&s);
  total_loss(&s);
  global_norm(&s);
  learning_rate(&s);
  for (size_t i = 0; i < graph->n_ranges; i++) update(&s, i);
}
