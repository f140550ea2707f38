/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/graph/fp8.h"

/* Powers of two leave numbers of fp8 what 16 bits hold; e5m2 and e4m3 differ in range from fp16. */
static nx_dtype type_of(const nxc_graph *graph) {
  nx_fp8_scaling scaling = graph->types.fp8.recipe.scaling;
  bool exact = scaling == NX_FP8_SCALE_POWER || scaling == NX_FP8_SCALE_MX;
  return exact && graph->types.activation == NX_bf16 ? NX_bf16 : NX_f32;
}

static nx_fp8_format format_of(const nxc_graph *graph, nxc_fp8_operand operand) {
  return operand == NXC_FP8_GRADIENT ? graph->types.fp8.gradients : NX_FP8_E4M3;
}

/* A number that each rank has of its own, until it is gathered over some of these atoms. */
static nxc_id maximum(nxc_graph *graph, const char *name, nxc_role role) {
  nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){1});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_STAGE), NXC_SPLIT);
  return nxc_value_new(graph, name, role, &shape);
}

static void append_amax(nxc_graph *graph, nxc_id value, nxc_id to, uint8_t when) {
  nxc_append(graph, &(nxc_op_request){.op = NX_OP_fp8_amax, .in = {value}, .out = {to}, .when = when});
}

int64_t nxc_fp8_history(const nxc_graph *graph) {
  const nxc_fp8 *fp8 = &graph->types.fp8;
  if (!fp8->used || fp8->recipe.maxima != NXC_FP8_REMEMBERED) return 0;
  return fp8->newest ? 1 : fp8->history;
}

/* A weight is the same in all passes of a step. */
void nxc_fp8_note(nxc_graph *graph, nxc_fp8_product *product, nxc_fp8_operand operand, nxc_id value) {
  nxc_id history = product->history[operand];
  bool once = operand == NXC_FP8_WEIGHT;
  if (history == 0) return;
  product->maxima[operand] =
      maximum(graph, nxc_arena_printf(graph->arena, "%s.now", graph->values[history].name),
              once ? NXC_ROLE_GRADIENT : NXC_ROLE_ACTIVATION);
  append_amax(graph, value, product->maxima[operand],
              once && graph->n_micro_batches > 1 ? NX_WHEN_FIRST : NX_WHEN_ALWAYS);
}

/* Passes of other micro-batches may come between a forward pass and its gradients. */
void nxc_fp8_follow(nxc_graph *graph, nxc_fp8_product *product) {
  nxc_id history = product->history[NXC_FP8_X];
  if (history == 0) return;
  nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){1});
  const char *name = nxc_arena_printf(graph->arena, "%s.followed", graph->values[history].name);
  product->followed = nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
  append_amax(graph, history, product->followed, NX_WHEN_ALWAYS);
}

/* The maximum of what the ranks together hold that this is divided over: not of other ranks' samples. */
static nxc_id measured(nxc_graph *graph, nxc_id value) {
  const nxc_placement *placement = &graph->values[value].shape.placement;
  uint32_t whole = nxc_atoms_placed(placement, NXC_REPLICATED) | nxc_axis(&graph->mesh, NXC_AXIS_DATA);
  uint32_t atoms = nxc_axis(&graph->mesh, NXC_AXIS_STAGE) & ~whole;
  const char *of = graph->values[value].name;
  nxc_id most = maximum(graph, nxc_arena_printf(graph->arena, "%s.amax", of), NXC_ROLE_ACTIVATION);
  append_amax(graph, value, most, NX_WHEN_ALWAYS);
  if (atoms == 0) return most;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                             .name = nxc_arena_printf(graph->arena, "%s.maxima", of),
                                             .in = {most},
                                             .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                             .group_atoms = atoms});
}

static nxc_id round_blocks(nxc_graph *graph, const nxc_fp8_product *product, nxc_fp8_operand operand,
                           nxc_id value, int64_t rows, int64_t columns) {
  const nxc_fp8 *fp8 = &graph->types.fp8;
  nxc_op_request request = {.op = NX_OP_fp8_round,
                            .name = nxc_arena_printf(graph->arena, "%s.fp8", graph->values[value].name),
                            .in = {value},
                            .attrs = {[NX_fp8_round_format] = nxc_integer(format_of(graph, operand)),
                                      [NX_fp8_round_scaling] = nxc_integer(fp8->recipe.scaling),
                                      [NX_fp8_round_margin] = nxc_integer(fp8->margin),
                                      [NX_fp8_round_block_rows] = nxc_integer(rows),
                                      [NX_fp8_round_block_columns] = nxc_integer(columns)},
                            .dtype = type_of(graph)};
  if (fp8->recipe.maxima == NXC_FP8_REMEMBERED)
    request.in[1] = operand == NXC_FP8_X ? product->followed : product->history[operand];
  if (fp8->recipe.maxima == NXC_FP8_MEASURED) request.in[1] = measured(graph, value);
  return nxc_append(graph, &request);
}

nxc_id nxc_fp8_round(nxc_graph *graph, const nxc_fp8_product *product, nxc_fp8_operand operand,
                     nxc_id value) {
  const nxc_fp8_recipe *recipe = &graph->types.fp8.recipe;
  int64_t rows = operand == NXC_FP8_WEIGHT ? recipe->weight_rows : recipe->block ? 1 : 0;
  return round_blocks(graph, product, operand, value, rows, recipe->block);
}

/* As nxc_fp8_round, for a product that sums over its rows. */
static nxc_id round_columns(nxc_graph *graph, const nxc_fp8_product *product, nxc_fp8_operand operand,
                             nxc_id value) {
  const nxc_fp8_recipe *recipe = &graph->types.fp8.recipe;
  int64_t columns = operand == NXC_FP8_WEIGHT ? recipe->weight_rows : recipe->block ? 1 : 0;
  return round_blocks(graph, product, operand, value, recipe->block, columns);
}

nxc_fp8_product *nxc_fp8_product_of(const nxc_graph *graph, nxc_id y) {
  for (size_t i = 0; i < graph->n_fp8_products; i++)
    if (graph->fp8_products[i].y == y) return &graph->fp8_products[i];
  return NULL;
}

void nxc_fp8_product_add(nxc_graph *graph, const nxc_fp8_product *product) {
  graph->fp8_products = nxc_arena_grow(graph->arena, graph->fp8_products, graph->n_fp8_products,
                                       sizeof *graph->fp8_products);
  graph->fp8_products[graph->n_fp8_products++] = *product;
}

/* Scales of whole tensors serve both products; those of blocks are made for each. */
nxc_fp8_factors nxc_fp8_factors_of(nxc_graph *graph, nxc_id y, nxc_id x, nxc_id weight, nxc_id dy) {
  const nxc_fp8 *fp8 = &graph->types.fp8;
  nxc_fp8_product *product = nxc_fp8_product_of(graph, y);
  bool blocks = fp8->recipe.maxima == NXC_FP8_BLOCKS;
  if (product == NULL) return (nxc_fp8_factors){x, weight, dy, weight, dy, x};
  nxc_fp8_factors f = {product->x, product->weight, dy, product->weight, dy, product->x};
  if (!fp8->input_gradients) return f;
  nxc_fp8_note(graph, product, NXC_FP8_GRADIENT, dy);
  f.dy_of_x = nxc_fp8_round(graph, product, NXC_FP8_GRADIENT, dy);
  f.weight_of_x = blocks ? round_columns(graph, product, NXC_FP8_WEIGHT, product->weight) : weight;
  if (!fp8->weight_gradients) return f;
  f.dy_of_weight = blocks ? round_columns(graph, product, NXC_FP8_GRADIENT, dy) : f.dy_of_x;
  f.x_of_weight = blocks ? round_columns(graph, product, NXC_FP8_X, product->x) : x;
  return f;
}

/* Each rank's maxima are a part of one vector, as those of all ranks stand one after another. */
static nxc_id join_maxima(nxc_graph *graph, nxc_fp8_operand operand, const char *name) {
  nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){0});
  nxc_id first = 0;
  for (size_t i = 0; i < graph->n_fp8_products; i++) {
    nxc_id most = graph->fp8_products[i].maxima[operand];
    if (first == 0) first = most;
    shape.dims[0] += most != 0;
  }
  if (first == 0) return 0;
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_STAGE), NXC_SPLIT);
  nxc_id all = nxc_value_new(graph, name, graph->values[first].role, &shape);
  uint64_t offset = 0;
  for (size_t i = 0; i < graph->n_fp8_products; i++) {
    nxc_id most = graph->fp8_products[i].maxima[operand];
    if (most == 0) continue;
    graph->values[most].view_of = all;
    graph->values[most].view_offset = offset;
    offset += sizeof(float);
  }
  return all;
}

void nxc_fp8_remember(nxc_graph *graph, nxc_fp8_operand operand) {
  static const char *const names[] = {[NXC_FP8_X] = "fp8.x_maxima",
                                      [NXC_FP8_WEIGHT] = "fp8.weight_maxima",
                                      [NXC_FP8_GRADIENT] = "fp8.gradient_maxima"};
  uint8_t when = operand == NXC_FP8_WEIGHT ? NX_WHEN_LAST : NX_WHEN_ALWAYS;
  uint32_t stage = nxc_axis(&graph->mesh, NXC_AXIS_STAGE);
  nxc_id all = join_maxima(graph, operand, names[operand]);
  if (all == 0) return;
  int64_t n = graph->values[all].shape.dims[0], entry = 0;
  graph->origin = "fp8";
  graph->layer = -1;
  if (nxc_mesh_size(&graph->mesh, stage) > 1)
    all = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                              .name = "all_maxima",
                                              .in = {all},
                                              .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                              .when = when,
                                              .group_atoms = stage});
  nxc_shape shape = graph->values[all].shape;
  shape.n_dims = 2;
  shape.dims[0] /= n;
  shape.dims[1] = n;
  all = nxc_view_new(graph, nxc_arena_printf(graph->arena, "%s.of_ranks", names[operand]),
                     nxc_value_root(graph, all), 0, &shape);
  for (size_t i = 0; i < graph->n_fp8_products; i++) {
    nxc_id history = graph->fp8_products[i].history[operand];
    if (graph->fp8_products[i].maxima[operand] == 0) continue;
    nxc_append(graph, &(nxc_op_request){.op = NX_OP_fp8_history,
                                        .in = {history, all},
                                        .out = {history},
                                        .attrs = {[NX_fp8_history_entry] = nxc_integer(entry++)},
                                        .when = when});
  }
}
