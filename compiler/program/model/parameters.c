/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/parameters.h"

#include "compiler/program/model/tensors.h"
#include "compiler/program/pipeline/pipeline.h"

#include <math.h>
#include <string.h>

/* Drawn with the smaller standard deviation of what is added to the residual stream. */
static bool is_output(nxc_part part) {
  enum { PLAIN, OUTPUT };
  static const char kinds[NXC_N_PARTS] = {
#define PART(id, name, kind) [NXC_PART_##id] = kind,
#include "compiler/settings/parts.def"
#undef PART
  };
  return kinds[part] == OUTPUT;
}

static bool shares_weights(const nxc_graph *graph, const nxc_training *t) {
  return t->model.unique_layers != t->model.layers && graph->layer >= 0;
}

nxc_id nxc_parameter_find(const nxc_graph *graph, const char *name) {
  const char *full = nxc_arena_printf(graph->arena, "%s.%s", graph->weights_origin, name);
  for (size_t i = 0; i < graph->n_parameters; i++)
    if (strcmp(graph->values[graph->parameters[i]].name, full) == 0) return graph->parameters[i];
  return 0;
}

/* What an earlier layer of the graph shares with this one; 0: nothing. */
static nxc_id known_parameter(const nxc_graph *graph, const nxc_training *t, const char *name) {
  return shares_weights(graph, t) ? nxc_parameter_find(graph, name) : 0;
}

nxc_id nxc_parameter_new(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_shape *shape) {
  const char *full = nxc_arena_printf(graph->arena, "%s.%s", graph->weights_origin, name);
  nxc_id value = nxc_value_new(graph, full, NXC_ROLE_PARAMETER, shape);
  graph->parameters =
      nxc_arena_grow(graph->arena, graph->parameters, graph->n_parameters, sizeof *graph->parameters);
  graph->parameters[graph->n_parameters++] = value;
  graph->values[value].frozen = t->lora.rank > 0; /* adapters and some biases are not: trains() */
  if (shares_weights(graph, t))
    graph->values[value].shared = nxc_pipeline_holders(graph->pipeline, t, graph->weights_layer);
  return value;
}

nxc_piece_node *nxc_piece_new(nxc_graph *graph, const nxc_training *t, nxc_id value, nxc_part part,
                                 bool bias) {
  const nxc_shape *shape = &graph->values[value].shape;
  graph->pieces = nxc_arena_grow(graph->arena, graph->pieces, graph->n_pieces, sizeof *graph->pieces);
  nxc_piece_node *piece = &graph->pieces[graph->n_pieces++];
  *piece = (nxc_piece_node){
      .value = value,
      .transposed = !bias && t->model.family->tensors[part]->transposed,
      .n_dims = bias || shape->n_dims == 1 ? 1 : 2,
      .row_start = nxc_rank_number_of(0),
      .column_start = nxc_rank_number_of(0),
      .owner = nxc_parameter_owner(graph, nxc_parameter_copies(graph, value, &shape->placement),
                                   graph->values[value].shared),
      .init = NX_INIT_ZEROS,
      .part = part,
      .bias = bias,
      .layer = graph->weights_layer,
  };
  return piece;
}

/* Rows of the matrix that the model has these boxes in: queries, keys and values are one where they are
 * fused, whether this mesh keeps them so or not. */
static int64_t rows_of_matrix(const nxc_graph *graph, const nxc_training *t, nxc_part part, int64_t rows) {
  bool projected = part == NXC_PART_Q || part == NXC_PART_K || part == NXC_PART_V ||
                   part == NXC_PART_ATTENTION_GATE;
  const nxc_attention_spec *a = projected ? &nxc_model_layer(&t->model, graph->layer)->attention : NULL;
  return a != NULL && a->fused && a->kv_rank == 0 ? (a->heads + 2 * a->kv_heads) * a->head_dim + a->gates
                                                  : rows;
}

static const nxc_init_spec *init_of(const nxc_model *model, nxc_part part) {
  if (part == NXC_PART_EMBEDDING) return &model->embedding_init;
  if (part == NXC_PART_POSITIONS) return &model->position_init;
  bool shares = part == NXC_PART_SHARED_MIX && model->mixture && model->mixture->shared_softmax;
  if (part == NXC_PART_ROUTER || shares) return &model->router_init;
  if (part == NXC_PART_RELATIVE) return &model->relative_init;
  return is_output(part) ? &model->output_init : &model->init;
}

/* Of so many rows or columns those that are drawn together: where tensor-parallel ranks each draw their own
 * matrix, their part. */
static int64_t drawn_of(const nxc_graph *graph, const nxc_training *t, int64_t n, uint32_t atoms) {
  uint32_t tensor = atoms & nxc_axis(&graph->mesh, NXC_AXIS_TENSOR);
  return t->model.init_by_part ? n / nxc_mesh_size(&graph->mesh, tensor) : n;
}

/* How a piece of a matrix is drawn that has so many rows and columns. Numbers of an orthogonal one are the
 * smaller the longer it is, and its parts, which are drawn alone, have numbers of that size. */
static void draw(const nxc_training *t, nxc_piece_node *piece, int64_t matrix_rows, int64_t matrix_columns) {
  const nxc_init_spec *init = init_of(&t->model, piece->part);
  double columns = (double)piece->logical_columns, rows = (double)piece->logical_rows;
  piece->init = init->uniform ? NX_INIT_UNIFORM : init->orthogonal ? NX_INIT_ORTHOGONAL : NX_INIT_NORMAL;
  piece->init_std = init->xavier ? sqrt(2.0 / (double)(matrix_rows + matrix_columns)) : init->std;
  if (init->orthogonal)
    piece->init_std *= sqrt(fmax(rows, columns) / fmax((double)matrix_rows, (double)matrix_columns));
}

uint32_t nxc_parameter_copies(const nxc_graph *graph, nxc_id parameter, const nxc_placement *placement) {
  uint32_t held_by = nxc_axis(&graph->mesh, NXC_AXIS_STAGE);
  if (graph->values[parameter].shared) held_by |= nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE);
  return nxc_atoms_placed(placement, NXC_REPLICATED) & held_by;
}

void nxc_parameter_share(nxc_graph *graph, nxc_id parameter, const nxc_stages *stages) {
  nxc_value_node *value = &graph->values[parameter];
  value->shared = stages;
  uint32_t copies = nxc_parameter_copies(graph, parameter, &value->shape.placement);
  for (size_t i = 0; i < graph->n_pieces; i++)
    if (graph->pieces[i].value == parameter)
      graph->pieces[i].owner = nxc_parameter_owner(graph, copies, stages);
}

nxc_rank_number nxc_parameter_owner(nxc_graph *graph, uint32_t copies, const nxc_stages *stages) {
  uint32_t pipeline = nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE), n = nxc_mesh_size(&graph->mesh, pipeline);
  if (stages && stages->in_chunks && !graph->is_last) return nxc_rank_number_of(0);
  if (stages == NULL || stages->at[0] == 0) return nxc_rank_number_first(copies);
  nxc_rank_number owner = nxc_rank_number_first(copies & ~pipeline);
  int64_t *owns = nxc_arena_array(graph->arena, n, sizeof *owns);
  owns[stages->at[0]] = 1;
  nxc_rank_number_table(graph, &owner, pipeline, owns, true);
  return owner;
}

/* Where a model is frozen, the adapters' files hold what is trained of its biases too. */
static void trains_bias(nxc_graph *graph, const nxc_training *t, nxc_id value, nxc_part part) {
  size_t n = graph->n_pieces;
  if (t->lora.rank == 0 || !nxc_lora_trains_bias(&t->lora, part)) return;
  graph->values[value].frozen = false;
  for (size_t i = 0; i < n; i++) {
    if (graph->pieces[i].value != value) continue;
    graph->pieces = nxc_arena_grow(graph->arena, graph->pieces, graph->n_pieces, sizeof *graph->pieces);
    graph->pieces[graph->n_pieces] = graph->pieces[i];
    graph->pieces[graph->n_pieces].alias = true;
    graph->pieces[graph->n_pieces++].adapter = NXC_ADAPTED_BIAS;
  }
}

static int64_t rows_of(const nxc_box *boxes, uint32_t n_boxes) {
  int64_t rows = 0;
  for (uint32_t i = 0; i < n_boxes; i++) rows += boxes[i].n_local;
  return rows;
}

/* The pieces of boxes one below the other, by their rows; returns the first. */
static size_t add_boxes(nxc_graph *graph, const nxc_training *t, nxc_id value, const nxc_box *boxes,
                        uint32_t n_boxes, bool bias) {
  size_t first = graph->n_pieces;
  int64_t row = 0;
  for (uint32_t i = 0; i < n_boxes; i++) {
    nxc_tensor_cut *cuts;
    size_t n_cuts = nxc_tensor_cuts(graph, t, boxes[i].part, boxes[i].n_local, &boxes[i].start, &cuts);
    for (size_t j = 0; j < n_cuts; row += cuts[j++].rows) {
      nxc_piece_node *piece = nxc_piece_new(graph, t, value, boxes[i].part, bias);
      piece->logical_rows = nxc_tensor_rows(graph, t, boxes[i].part);
      piece->rows = cuts[j].rows;
      piece->row = row;
      piece->row_start = cuts[j].start;
    }
  }
  return first;
}

nxc_id nxc_parameter_rows(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *boxes,
                          uint32_t n_boxes, int64_t columns, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 2, (int64_t[]){rows_of(boxes, n_boxes), columns});
  nxc_place_atoms(&shape.placement, atoms, NXC_SPLIT);
  nxc_id value = known_parameter(graph, t, name);
  if (value) return value;
  value = nxc_parameter_new(graph, t, name, &shape);
  int64_t all_rows = shape.dims[0] * nxc_mesh_size(&graph->mesh, atoms);
  for (size_t i = add_boxes(graph, t, value, boxes, n_boxes, false); i < graph->n_pieces; i++) {
    nxc_piece_node *piece = &graph->pieces[i];
    piece->logical_columns = piece->columns = columns;
    draw(t, piece, drawn_of(graph, t, rows_of_matrix(graph, t, piece->part, all_rows), atoms), columns);
  }
  return value;
}

nxc_id nxc_parameter_columns(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *box,
                             int64_t rows, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 2, (int64_t[]){rows, box->n_local});
  nxc_place_atoms(&shape.placement, atoms, NXC_SPLIT + 1);
  nxc_id value = known_parameter(graph, t, name);
  if (value) return value;
  value = nxc_parameter_new(graph, t, name, &shape);
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, box->part, false);
  piece->logical_rows = piece->rows = rows;
  piece->logical_columns = box->n_local * nxc_mesh_size(&graph->mesh, atoms);
  piece->columns = box->n_local;
  piece->column_start = box->start;
  draw(t, piece, rows, drawn_of(graph, t, piece->logical_columns, atoms));
  return value;
}

nxc_id nxc_parameter_bias(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *boxes,
                          uint32_t n_boxes, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){rows_of(boxes, n_boxes)});
  nxc_place_atoms(&shape.placement, atoms, NXC_SPLIT);
  nxc_id value = known_parameter(graph, t, name);
  if (value) return value;
  value = nxc_parameter_new(graph, t, name, &shape);
  for (size_t i = add_boxes(graph, t, value, boxes, n_boxes, true); i < graph->n_pieces; i++) {
    nxc_piece_node *piece =
        &graph->pieces[i]; /* a bias is a row: what are rows of the matrix are its columns */
    piece->logical_columns = piece->logical_rows;
    piece->columns = piece->rows;
    piece->column_start = piece->row_start;
    piece->logical_rows = piece->rows = 1;
    piece->row_start = nxc_rank_number_of(0);
  }
  trains_bias(graph, t, value, boxes[0].part);
  return value;
}

/* 0 at first; on every rank, unless what calls says otherwise. */
static nxc_id vector(nxc_graph *graph, const nxc_training *t, const char *name, nxc_part part, bool bias,
                     const nxc_shape *shape) {
  nxc_id value = known_parameter(graph, t, name);
  if (value) return value;
  value = nxc_parameter_new(graph, t, name, shape);
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, part, bias);
  piece->logical_rows = piece->rows = 1;
  piece->logical_columns = piece->columns = shape->dims[0];
  if (bias) trains_bias(graph, t, value, part);
  return value;
}

nxc_id nxc_parameter_norm(nxc_graph *graph, const nxc_training *t, const char *name, nxc_part part,
                          nxc_norm_vector kind, int64_t width) {
  const nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){width});
  size_t n_pieces = graph->n_pieces;
  nxc_id value = vector(graph, t, name, part, kind == NXC_NORM_BIAS, &shape);
  if (graph->n_pieces > n_pieces && kind == NXC_NORM_ONES) graph->pieces[n_pieces].init = NX_INIT_ONES;
  return value;
}

nxc_id nxc_parameter_correction(nxc_graph *graph, const nxc_training *t, int64_t n_experts) {
  const nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){n_experts});
  return vector(graph, t, "correction", NXC_PART_ROUTER_CORRECTION, false, &shape);
}

nxc_id nxc_parameter_memory(nxc_graph *graph, const nxc_training *t, const char *name, nxc_part part,
                            int64_t length) {
  const nxc_shape shape = nxc_shape_of(NX_f32, 1, (int64_t[]){length});
  nxc_id value = nxc_parameter_new(graph, t, name, &shape);
  nxc_value_node *node = &graph->values[value];
  node->name = nxc_arena_printf(graph->arena, "%s.%s_%s", graph->origin, nxc_part_name(part), name);
  node->frozen = node->memory = true;
  node->shared = NULL; /* each layer remembers what it did, whoever has its weights */
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, part, true);
  piece->memory = name;
  piece->layer = graph->layer;
  piece->logical_rows = piece->rows = 1;
  piece->logical_columns = piece->columns = length;
  return value;
}

nxc_id nxc_parameter_of_range(nxc_graph *graph, const nxc_training *t, const char *name, uint32_t copies,
                              int64_t length) {
  uint32_t apart = nxc_axis(&graph->mesh, NXC_AXIS_STAGE) & ~copies;
  nxc_shape shape = nxc_shape_of(NX_f32, 2, (int64_t[]){1, length});
  nxc_place_atoms(&shape.placement, apart, NXC_SPLIT);
  nxc_id value = nxc_parameter_new(graph, t, name, &shape);
  graph->values[value].frozen = graph->values[value].memory = true;
  graph->values[value].shared = NULL;
  nxc_piece_node *piece = nxc_piece_new(graph, t, value, 0, true);
  piece->memory = name;
  piece->of_range = true;
  piece->n_dims = 2;
  piece->layer = graph->first_layer;
  piece->logical_rows = nxc_mesh_size(&graph->mesh, apart);
  piece->rows = 1;
  piece->logical_columns = piece->columns = length;
  nxc_rank_number_stride(&piece->row_start, apart, 1);
  return value;
}

/* The rows of an expert begin behind the logical tensor on ranks that do not hold it: there, nothing of it
 * is. */
static void hold(nxc_graph *graph, nxc_rank_number *row_start, int64_t logical_rows, uint32_t holder) {
  uint32_t ranks = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT), n = nxc_mesh_size(&graph->mesh, ranks);
  int64_t *start = nxc_arena_array(graph->arena, n, sizeof *start);
  for (uint32_t rank = 0; rank < n; rank++) start[rank] = rank == holder ? 0 : logical_rows;
  if (ranks) nxc_rank_number_table(graph, row_start, ranks, start, false);
}

/* The expert's matrix, transposed, stands behind those before it. */
static void stack(nxc_piece_node *piece, int64_t n_experts) {
  piece->column_start.base += piece->expert * piece->logical_columns;
  piece->logical_columns *= n_experts;
  piece->slices = (uint32_t)n_experts;
}

nxc_id nxc_parameter_experts(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *boxes,
                             uint32_t n_boxes, int64_t n_other, nxc_expert_cut cut) {
  bool divides_columns = cut == NXC_CUT_COLUMNS;
  int64_t rows = divides_columns ? n_other : rows_of(boxes, n_boxes);
  int64_t columns = divides_columns ? boxes[0].n_local : n_other;
  uint32_t ranks = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT),
           tensor = cut == NXC_CUT_NOTHING ? 0 : nxc_axis(&graph->mesh, NXC_AXIS_EXPERT_TENSOR);
  int64_t n_experts = t->model.mixture->n_experts;
  int64_t n_local = n_experts / nxc_mesh_size(&graph->mesh, ranks);
  int64_t n_tensor = nxc_mesh_size(&graph->mesh, tensor);
  nxc_shape shape = nxc_shape_of(graph->types.param, 3, (int64_t[]){n_local, rows, columns});
  nxc_place_atoms(&shape.placement, ranks, NXC_SPLIT);
  nxc_place_atoms(&shape.placement, tensor, divides_columns ? NXC_SPLIT + 2 : NXC_SPLIT + 1);
  nxc_id value = nxc_parameter_new(graph, t, name, &shape);
  for (int64_t expert = 0; expert < n_experts; expert++) {
    int64_t row = expert % n_local * rows;
    for (uint32_t i = 0; i < n_boxes; row += boxes[i++].n_local) {
      nxc_piece_node *piece = nxc_piece_new(graph, t, value, boxes[i].part, false);
      piece->expert = (int32_t)expert;
      piece->rows = divides_columns ? rows : boxes[i].n_local;
      piece->columns = columns;
      piece->logical_rows = nxc_tensor_rows(graph, t, boxes[i].part);
      piece->logical_columns = divides_columns ? columns * nxc_mesh_size(&graph->mesh, tensor) : columns;
      piece->row = row;
      *(divides_columns ? &piece->column_start : &piece->row_start) = boxes[i].start;
      int64_t drawn = t->model.init_by_part ? 1 : n_tensor;
      draw(t, piece, divides_columns ? rows : rows * drawn, divides_columns ? columns * drawn : columns);
      int64_t most_rows =
          piece->logical_rows > t->lora.rank ? piece->logical_rows : t->lora.rank; /* of an adapter */
      hold(graph, &piece->row_start, most_rows, (uint32_t)(expert / n_local));
      if (t->model.family->tensors[boxes[i].part]->stacked) stack(piece, n_experts);
    }
  }
  return value;
}

nxc_id nxc_parameter_expert_bias(nxc_graph *graph, const nxc_training *t, const char *name,
                                 const nxc_box *boxes, uint32_t n_boxes, bool divided) {
  uint32_t ranks = nxc_axis(&graph->mesh, NXC_AXIS_EXPERT);
  int64_t n_experts = t->model.mixture->n_experts, rows = rows_of(boxes, n_boxes);
  int64_t n_local = n_experts / nxc_mesh_size(&graph->mesh, ranks);
  nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){n_local * rows});
  nxc_place_atoms(&shape.placement, ranks, NXC_SPLIT);
  if (divided) nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_EXPERT_TENSOR), NXC_SPLIT);
  nxc_id value = nxc_parameter_new(graph, t, name, &shape);
  for (int64_t expert = 0; expert < n_experts; expert++) {
    int64_t row = expert % n_local * rows;
    for (uint32_t i = 0; i < n_boxes; row += boxes[i++].n_local) {
      bool stacked = t->model.family->tensors[boxes[i].part]->stacked;
      nxc_piece_node *piece = nxc_piece_new(graph, t, value, boxes[i].part, true);
      piece->expert = (int32_t)expert;
      piece->n_dims = stacked ? 2 : 1;
      piece->rows = 1;
      piece->columns = boxes[i].n_local;
      piece->logical_rows = stacked ? n_experts : 1;
      piece->logical_columns = nxc_tensor_rows(graph, t, boxes[i].part);
      piece->row = row;
      piece->row_start.base = stacked ? expert : 0;
      piece->column_start = boxes[i].start;
      hold(graph, &piece->row_start, piece->logical_rows, (uint32_t)(expert / n_local));
    }
  }
  trains_bias(graph, t, value, boxes[0].part);
  return value;
}

nxc_id nxc_parameter_sinks(nxc_graph *graph, const nxc_training *t, int64_t n_local) {
  uint32_t tensor = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR);
  nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){n_local});
  nxc_place_atoms(&shape.placement, tensor, NXC_SPLIT);
  nxc_id value = vector(graph, t, "sinks", NXC_PART_SINKS, false, &shape);
  nxc_piece_node *piece = &graph->pieces[graph->n_pieces - 1];
  if (piece->value != value) return value;
  piece->logical_columns = n_local * nxc_mesh_size(&graph->mesh, tensor);
  piece->column_start = nxc_rank_number_tensor(graph, 0, n_local);
  return value;
}

nxc_id nxc_parameter_relative(nxc_graph *graph, const nxc_training *t, int64_t n_buckets, int64_t n_heads) {
  const nxc_box rows = {NXC_PART_RELATIVE, n_buckets, nxc_rank_number_of(0)};
  const char *origin = graph->weights_origin;
  int32_t layer = graph->weights_layer;
  graph->weights_origin = "relative", graph->weights_layer = -1;
  nxc_id table = nxc_parameter_rows(graph, t, "weight", &rows, 1, n_heads, 0);
  graph->weights_origin = origin, graph->weights_layer = layer;
  if (graph->pipeline->all) nxc_parameter_share(graph, table, graph->pipeline->all);
  return table;
}
