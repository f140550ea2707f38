/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/parameters.h"
#include "compiler/program/passes/passes.h"

#include <stdlib.h>
#include <string.h>

typedef struct cutter {
  nxc_graph *graph;
  const nxc_training *t;
  uint64_t *written;  /* per value: the last operator of the backward pass that writes it */
  nxc_id *parameters; /* in the order in which they join ranges */
  bool by_unit;
} cutter;

static uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* Elements that fill NX_BLOCK_BYTES in every type that a range is stored in. */
static uint64_t block_elements(const nxc_graph *graph, nx_dtype dtype) {
  const nx_dtype types[] = {dtype, graph->types.grad, graph->types.state, graph->types.second_moment};
  uint32_t bits = 32;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (nx_dtype_bits(types[i]) < bits) bits = nx_dtype_bits(types[i]);
  return NX_BLOCK_BYTES * 8 / bits;
}

static bool is_divided(const nxc_range_node *range) {
  return range->shard_atoms != 0;
}

/* ---- which parameters stand together ---- */

static const nxc_piece_node *piece_of(const nxc_graph *graph, nxc_id parameter) {
  size_t i = 0;
  while (graph->pieces[i].value != parameter) i++;
  return &graph->pieces[i];
}

/* Whether its rule needs whole tensors. */
static bool is_of_tensors(const nxc_graph *graph, uint32_t parameter_group) {
  if (parameter_group == NX_NONE) return false;
  return graph->tables->parameter_groups[parameter_group].update.rule->kind != NX_ELEMENT;
}

/* Whole tensors are dealt to ranks, so that many stand together. What stages share stands by itself: they
 * declare it in different orders. */
static int32_t unit_of(const cutter *c, nxc_id parameter, uint32_t parameter_group) {
  const nxc_piece_node *piece = piece_of(c->graph, parameter);
  if (!c->graph->values[parameter].shared && (!c->by_unit || is_of_tensors(c->graph, parameter_group)))
    return NXC_UNIT_ANY;
  if (piece->layer >= 0) return piece->layer;
  bool input = piece->part == NXC_PART_EMBEDDING || piece->part == NXC_PART_POSITIONS;
  return input ? NXC_UNIT_INPUT : NXC_UNIT_OUTPUT;
}

static const char *range_name(nxc_graph *graph, const nxc_range_node *range, uint32_t bucket) {
  nxc_arena *arena = graph->arena;
  const char *over = range->group_atoms ? nxc_mesh_set_name(arena, &graph->mesh, range->group_atoms) : "none";
  const char *copied = range->copy_atoms ? nxc_mesh_set_name(arena, &graph->mesh, range->copy_atoms) : NULL;
  const char *unit = range->unit >= 0                 ? nxc_arena_printf(arena, "layers.%d.", range->unit)
                     : range->unit == NXC_UNIT_INPUT  ? "embedding."
                     : range->unit == NXC_UNIT_OUTPUT ? "output."
                                                      : "";
  const char *group = range->memory   ? "memory"
                      : range->frozen ? "frozen"
                                      : graph->tables->parameter_groups[range->parameter_group].name;
  if (range->frozen && !range->memory && range->type != graph->types.param)
    group = nxc_arena_printf(arena, "%s.%s", group, nx_dtype_name(range->type));
  const char *name = nxc_arena_printf(arena, "%s%s%s.%s%s%s", unit, group, range->kept ? ".kept" : "", over,
                                      copied ? ".copied_over_" : "", copied ? copied : "");
  return bucket ? nxc_arena_printf(arena, "%s.bucket%u", name, bucket) : name;
}

static bool is_same_class(const nxc_range_node *a, const nxc_range_node *b) {
  return a->group_atoms == b->group_atoms && a->copy_atoms == b->copy_atoms &&
         a->parameter_group == b->parameter_group && a->kept == b->kept && a->shared == b->shared &&
         a->type == b->type && a->memory == b->memory;
}

static uint32_t class_of(const nxc_graph *graph, const nxc_range_node *new) {
  uint32_t n_classes = 0;
  for (size_t i = 0; i < graph->n_ranges; i++) {
    if (is_same_class(&graph->ranges[i], new)) return graph->ranges[i].class;
    if (graph->ranges[i].class >= n_classes) n_classes = graph->ranges[i].class + 1;
  }
  return n_classes;
}

/* Frozen parameters are divided like what ZeRO 3 divides of trained ones: over their copies. */
static nxc_range_node new_frozen_range(cutter *c, nxc_id parameter) {
  const nxc_shape *shape = &c->graph->values[parameter].shape;
  return (nxc_range_node){.frozen = true,
                          .memory = c->graph->values[parameter].memory,
                          .type = shape->dtype,
                          .parameter_group = NX_NONE,
                          .copy_atoms = nxc_parameter_copies(c->graph, parameter, &shape->placement),
                          .shared = c->graph->values[parameter].shared,
                          .kept = (uint64_t)nxc_shape_elements(shape) < c->t->sharding.keep_below,
                          .unit = unit_of(c, parameter, NX_NONE)};
}

static nxc_range_node new_range(cutter *c, nxc_id parameter) {
  if (c->graph->values[parameter].frozen) return new_frozen_range(c, parameter);
  const nxc_shape *gradient = &c->graph->values[c->graph->values[parameter].gradient].shape;
  uint32_t group = nxc_parameter_group_of(c->graph, c->t, parameter);
  return (nxc_range_node){.group_atoms = nxc_atoms_placed(&gradient->placement, NXC_PARTIAL),
                          .copy_atoms = nxc_parameter_copies(c->graph, parameter, &gradient->placement),
                          .shared = c->graph->values[parameter].shared,
                          .parameter_group = group,
                          .type = c->graph->values[parameter].shape.dtype,
                          .kept = (uint64_t)nxc_shape_elements(gradient) < c->t->sharding.keep_below,
                          .unit = unit_of(c, parameter, group)};
}

/* A parameter joins the newest range of its class and unit, unless that would be larger than a bucket
 * then. */
static void join(cutter *c, nxc_id parameter) {
  nxc_graph *graph = c->graph;
  nxc_range_node new = new_range(c, parameter), *range = NULL;
  uint64_t n = round_up((uint64_t)nxc_shape_elements(&graph->values[parameter].shape),
                        block_elements(graph, new.type));
  bool whole = c->by_unit || c->t->sharding.bucket_elements == 0 || is_of_tensors(graph, new.parameter_group);
  uint64_t most = whole ? UINT64_MAX : c->t->sharding.bucket_elements;
  uint32_t n_before = 0;
  for (size_t i = 0; i < graph->n_ranges; i++) {
    if (!is_same_class(&graph->ranges[i], &new) || graph->ranges[i].unit != new.unit) continue;
    range = &graph->ranges[i];
    n_before++;
  }
  if (range == NULL || (range->n_elements > 0 && n + range->n_elements > most)) {
    new.class = class_of(graph, &new);
    new.name = range_name(graph, &new, n_before);
    graph->ranges = nxc_arena_grow(graph->arena, graph->ranges, graph->n_ranges, sizeof *graph->ranges);
    range = &graph->ranges[graph->n_ranges++];
    *range = new;
  }
  graph->values[parameter].range = (nxc_id)(range - graph->ranges);
  graph->values[parameter].range_start = range->n_elements;
  range->n_elements += n;
}

static int compare_written(const void *left, const void *right, void *context) {
  const cutter *c = context;
  const nxc_value_node *values = c->graph->values;
  nxc_id a = *(const nxc_id *)left, b = *(const nxc_id *)right;
  uint64_t at = c->written[values[a].gradient], other = c->written[values[b].gradient];
  if (at != other) return at < other ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* In the order of their declaration; where buckets are filled, in the order in which gradients are
 * complete. */
static void order_parameters(cutter *c) {
  nxc_graph *graph = c->graph;
  const nxc_program_list *list = &graph->programs[NXC_BACKWARD];
  c->parameters = nxc_arena_array(graph->arena, graph->n_parameters, sizeof *c->parameters);
  memcpy(c->parameters, graph->parameters, graph->n_parameters * sizeof *c->parameters);
  if (c->by_unit || c->t->sharding.bucket_elements == 0) return;
  c->written = nxc_arena_array(graph->arena, graph->n_values, sizeof *c->written);
  for (size_t i = 0; i < list->n; i++) {
    const nxc_operator_node *op = &graph->operators[list->operators[i]];
    for (uint32_t out = 0; out < op->n_out; out++) c->written[op->args[op->n_in + out]] = i;
  }
  qsort_r(c->parameters, graph->n_parameters, sizeof *c->parameters, compare_written, c);
}

/* ---- what a range consists of ---- */

static nxc_id range_value(nxc_graph *graph, const nxc_range_node *range, const char *what, nxc_role role,
                          nx_dtype dtype, bool whole, uint8_t placed) {
  uint64_t n = whole ? range->n_elements : range->n_shard;
  nxc_shape shape = nxc_shape_of(dtype, 1, (int64_t[]){(int64_t)n});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), NXC_SPLIT);
  nxc_place_atoms(&shape.placement, range->copy_atoms, NXC_REPLICATED);
  nxc_place_atoms(&shape.placement, range->group_atoms, placed);
  if (range->shared && !range->shared->in_chunks)
    nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), placed);
  if (!whole) nxc_place_atoms(&shape.placement, range->shard_atoms, NXC_SPLIT);
  return nxc_value_new(graph, nxc_arena_printf(graph->arena, "%s.%s", range->name, what), role, &shape);
}

/* This rank's part of a whole value: a view at a place that depends on the rank. */
static nxc_id shard_of(nxc_graph *graph, const nxc_range_node *range, nxc_id value, const char *what) {
  nxc_shape shape = graph->values[value].shape;
  shape.dims[0] = (int64_t)range->n_shard;
  nxc_place_atoms(&shape.placement, range->shard_atoms, NXC_SPLIT);
  const char *name = nxc_arena_printf(graph->arena, "%s.%s.shard", range->name, what);
  nxc_id shard = nxc_view_new(graph, name, nxc_value_root(graph, value), 0, &shape);
  nxc_rank_number start = range->shard_start;
  for (uint32_t i = 0; i < start.n_terms; i++) start.terms[i].stride *= nx_dtype_bits(shape.dtype) / 8;
  graph->values[shard].shift = nxc_constant(graph, &start);
  return shard;
}

/* The same bytes, summed over some of what is still to be summed. */
static nxc_id summed(nxc_graph *graph, const nxc_range_node *range, nxc_id gradient, uint32_t over,
                     const char *what) {
  nxc_value_node of = graph->values[gradient];
  uint32_t partial = nxc_atoms_placed(&of.shape.placement, NXC_PARTIAL) & over;
  if (partial == 0) return gradient;
  nxc_place_atoms(&of.shape.placement, partial, NXC_REPLICATED);
  const char *name = nxc_arena_printf(graph->arena, "%s.grad.%s", range->name, what);
  nxc_id sum = nxc_view_new(graph, name, nxc_value_root(graph, gradient), of.view_offset, &of.shape);
  graph->values[sum].shift = of.shift;
  return sum;
}

static void make_parameters(nxc_graph *graph, nxc_range_node *range) {
  nx_dtype dtype = range->type;
  bool divided = range->storage == NXC_DIVIDED;
  nxc_id held = range_value(graph, range, "param", NXC_ROLE_PARAMETER, dtype, !divided, NXC_REPLICATED);
  range->whole = divided ? 0 : held;
  range->param_shard = divided || !is_divided(range) ? held : shard_of(graph, range, held, "param");
  range->param = range->storage == NXC_WHOLE ? held : range->param_shard;
}

static void make_gradients(nxc_graph *graph, nxc_range_node *range) {
  nx_dtype dtype = graph->types.grad;
  bool whole = !range->divided_gradients;
  range->grad = range_value(graph, range, "grad", NXC_ROLE_GRADIENT, dtype, whole, NXC_PARTIAL);
  range->pass_grad = range->grad;
  if (graph->in_pairs) nxc_pairs_make(graph, range);
  if (!whole || graph->in_pairs || graph->votes)
    range->pass_grad =
        range_value(graph, range, "grad.whole", NXC_ROLE_ACTIVATION, dtype, true, NXC_PARTIAL);
  range->handed = range->pass_grad;
  nxc_id grad = range->grad;
  if (range->shared)
    range->stage_sum = grad =
        summed(graph, range, grad, nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), "stage_sum");
  if (is_divided(range)) range->grad_shard = whole ? shard_of(graph, range, grad, "grad") : grad;
  if (is_divided(range)) grad = range->grad_shard;
  range->summed = summed(graph, range, grad, nxc_axis(&graph->mesh, NXC_AXIS_WORLD), "sum");
}

/* ---- whole tensors ---- */

/* Parameters of one form: each rank has as many slots for them. */
typedef struct form {
  const nxc_piece_node *piece; /* the first of one of them */
  nxc_shape shape;
  uint64_t n, n_dealt, size, start; /* size: of a slot; start: of the first, in a rank's share */
} form;

static form *form_of(nxc_graph *graph, form *forms, size_t *n_forms, nxc_id parameter) {
  const nxc_piece_node *piece = piece_of(graph, parameter);
  const nxc_shape *shape = &graph->values[parameter].shape;
  for (size_t i = 0; i < *n_forms; i++)
    if (forms[i].piece->part == piece->part &&
        memcmp(forms[i].shape.dims, shape->dims, sizeof shape->dims) == 0)
      return &forms[i];
  uint64_t size = round_up((uint64_t)nxc_shape_elements(shape), block_elements(graph, graph->types.param));
  forms[*n_forms] = (form){.piece = piece, .shape = *shape, .size = size};
  return &forms[(*n_forms)++];
}

/* Tensors go round the ranks, form by form, so that all ranks do the same; where they do not come out even
 * some ranks have an empty slot, which stays 0. A share is whole blocks. */
static void deal(nxc_graph *graph, nxc_range_node *range, uint32_t n_ranks, uint64_t block) {
  nxc_id index = (nxc_id)(range - graph->ranges);
  form *forms = nxc_arena_array(graph->arena, graph->n_parameters, sizeof *forms);
  size_t n_forms = 0;
  range->n_shard = 0;
  for (size_t i = 0; i < graph->n_parameters; i++)
    if (graph->values[graph->parameters[i]].range == index)
      form_of(graph, forms, &n_forms, graph->parameters[i])->n++;
  for (size_t i = 0; i < n_forms; i++) {
    forms[i].start = range->n_shard;
    range->n_shard += (forms[i].n + n_ranks - 1) / n_ranks * forms[i].size;
  }
  range->n_shard = round_up(range->n_shard, block);
  for (size_t i = 0; i < graph->n_parameters; i++) {
    nxc_value_node *value = &graph->values[graph->parameters[i]];
    if (value->range != index) continue;
    form *of = form_of(graph, forms, &n_forms, graph->parameters[i]);
    value->range_start =
        of->n_dealt % n_ranks * range->n_shard + of->start + of->n_dealt / n_ranks * of->size;
    of->n_dealt++;
  }
  range->n_elements = n_ranks * range->n_shard;
}

static uint32_t divisible(const nxc_training *t, const nxc_range_node *range) {
  if (!range->frozen) return range->group_atoms;
  if (range->memory) return 0;
  return t->sharding.stage == 3 ? range->copy_atoms : 0;
}

static void divide(nxc_graph *graph, const nxc_training *t, nxc_range_node *range) {
  uint32_t over = divisible(t, range) & graph->shard_axis, n_ranks = nxc_mesh_size(&graph->mesh, over);
  bool tensors = is_of_tensors(graph, range->parameter_group);
  uint32_t padded_for = range->frozen ? over : range->group_atoms;
  uint64_t block = block_elements(graph, range->type);
  if (t->sharding.in_pairs && !range->frozen) block = NXC_SQUARES_BLOCK;
  range->n_elements = round_up(range->n_elements, nxc_mesh_size(&graph->mesh, padded_for) * block);
  range->shard_atoms = over;
  range->n_shard = range->n_elements / n_ranks;
  if (tensors) deal(graph, range, n_ranks, block);
  range->shard_start = nxc_rank_number_of(0);
  if (over == 0) return;
  nxc_rank_number_stride(&range->shard_start, over, (int64_t)range->n_shard);
  range->divided_gradients = graph->divides_gradients && !range->frozen;
  if (t->sharding.stage == 3 && !tensors)
    range->storage = t->sharding.reshard_after_forward && !range->kept ? NXC_DIVIDED : NXC_GATHERED;
  else
    range->storage = t->sharding.overlap_gather ? NXC_GATHERED : NXC_WHOLE;
}

static void lay_out(nxc_graph *graph, const nxc_training *t, nxc_range_node *range) {
  divide(graph, t, range);
  make_parameters(graph, range);
  if (range->frozen) return;
  make_gradients(graph, range);
  if (t->types.master && range->type != NX_f32)
    range->master = range_value(graph, range, "master", NXC_ROLE_MASTER, NX_f32, false, NXC_REPLICATED);
  const nx_optimizer_row *rule = graph->tables->parameter_groups[range->parameter_group].update.rule;
  for (uint32_t i = 0; rule != NULL && i < nx_optimizer_n_same(rule); i++) {
    const char *name = rule->states[i].name;
    nx_dtype type = strcmp(name, "moment2") == 0 ? t->types.second_moment : t->types.state;
    range->states[i] = range_value(graph, range, name, NXC_ROLE_STATE, type, false, NXC_REPLICATED);
  }
}

void nxc_range_view(nxc_graph *graph, nxc_id parameter, nxc_id value, nxc_id base) {
  nxc_value_node *node = &graph->values[value];
  node->view_of = base;
  node->view_offset = graph->values[parameter].range_start * nx_dtype_bits(node->shape.dtype) / 8;
}

void nxc_ranges_build(nxc_graph *graph, const nxc_training *t) {
  cutter c = {.graph = graph, .t = t};
  bool early = t->sharding.stage > 1 || t->sharding.overlap_reduce ||
               (t->sharding.stage > 0 && t->sharding.overlap_gather);
  c.by_unit = t->sharding.stage == 3 || (early && t->sharding.bucket_elements == 0) ||
              t->sharding.in_pairs; /* their squares are then summed alike, whatever is divided or early */
  order_parameters(&c);
  for (size_t i = 0; i < graph->n_parameters; i++) join(&c, c.parameters[i]);
  for (size_t i = 0; i < graph->n_ranges; i++) lay_out(graph, t, &graph->ranges[i]);
  size_t n_ranges = graph->n_ranges, n_parameters = graph->n_parameters;
  nxc_compression_begin(graph, t);
  nxc_factors_begin(graph, t);
  for (size_t i = n_parameters; i < graph->n_parameters; i++) join(&c, graph->parameters[i]);
  for (size_t i = n_ranges; i < graph->n_ranges; i++) lay_out(graph, t, &graph->ranges[i]);
  for (size_t i = 0; i < graph->n_parameters; i++) {
    nxc_id parameter = graph->parameters[i];
    const nxc_range_node *range = &graph->ranges[graph->values[parameter].range];
    if (range->whole) nxc_range_view(graph, parameter, parameter, range->whole);
    if (!range->frozen) nxc_range_view(graph, parameter, graph->values[parameter].gradient, range->pass_grad);
  }
}
