/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/parameters.h"

#include <string.h>

/* Names without ".weight" and ".bias"; %d is the layer. Conv1D: GPT-2 keeps the transpose. */
typedef struct part_row {
  const char *llama, *gpt2;
  bool gpt2_transposed;
  bool output; /* drawn with the smaller standard deviation of what is added to the residual stream */
} part_row;

static const part_row part_rows[NXC_N_PARTS] = {
    [NXC_PART_EMBEDDING] = {"model.embed_tokens", "transformer.wte", false, false},
    [NXC_PART_POSITIONS] = {"model.embed_positions", "transformer.wpe", false, false},
    [NXC_PART_FINAL_NORM] = {"model.norm", "transformer.ln_f", false, false},
    [NXC_PART_OUTPUT] = {"lm_head", "lm_head", false, false},
    [NXC_PART_ATTENTION_NORM] = {"model.layers.%d.input_layernorm", "transformer.h.%d.ln_1", false, false},
    [NXC_PART_Q] = {"model.layers.%d.self_attn.q_proj", "transformer.h.%d.attn.c_attn", true, false},
    [NXC_PART_K] = {"model.layers.%d.self_attn.k_proj", "transformer.h.%d.attn.c_attn", true, false},
    [NXC_PART_V] = {"model.layers.%d.self_attn.v_proj", "transformer.h.%d.attn.c_attn", true, false},
    [NXC_PART_O] = {"model.layers.%d.self_attn.o_proj", "transformer.h.%d.attn.c_proj", true, true},
    [NXC_PART_FFN_NORM] = {"model.layers.%d.post_attention_layernorm", "transformer.h.%d.ln_2", false, false},
    [NXC_PART_GATE] = {"model.layers.%d.mlp.gate_proj", NULL, true, false},
    [NXC_PART_UP] = {"model.layers.%d.mlp.up_proj", "transformer.h.%d.mlp.c_fc", true, false},
    [NXC_PART_DOWN] = {"model.layers.%d.mlp.down_proj", "transformer.h.%d.mlp.c_proj", true, true},
};

const char *nxc_piece_name(nxc_arena *arena, const nxc_training *t, const nxc_piece_node *piece,
                           int32_t layer) {
  const part_row *row = &part_rows[piece->part];
  const char *stem = t->names == NX_NAMES_GPT2 ? row->gpt2 : row->llama;
  const char *hole = strstr(stem, "%d");
  const char *end = piece->bias ? "bias" : "weight";
  if (hole == NULL) return nxc_arena_printf(arena, "%s.%s", stem, end);
  return nxc_arena_printf(arena, "%.*s%d%s.%s", (int)(hole - stem), stem, layer, hole + 2, end);
}

/* GPT-2 keeps queries, keys and values in one tensor. */
static nxc_part tensor_part(const nxc_training *t, nxc_part part) {
  bool together = t->names == NX_NAMES_GPT2 && (part == NXC_PART_K || part == NXC_PART_V);
  return together ? NXC_PART_Q : part;
}

/* Rows of the logical matrix (entries of its bias). */
static int64_t logical_rows(const nxc_training *t, nxc_part part) {
  int64_t queries = t->heads * t->head_dim, keys = t->kv_heads * t->head_dim;
  switch (part) {
    case NXC_PART_EMBEDDING:
    case NXC_PART_OUTPUT: return t->vocab;
    case NXC_PART_POSITIONS: return t->max_positions;
    case NXC_PART_Q: return t->names == NX_NAMES_GPT2 ? queries + 2 * keys : queries;
    case NXC_PART_K:
    case NXC_PART_V: return keys;
    case NXC_PART_GATE:
    case NXC_PART_UP: return t->ffn_hidden;
    default: return t->hidden;
  }
}

/* Rows before the part in the logical tensor. */
static int64_t part_offset(const nxc_training *t, nxc_part part) {
  if (t->names != NX_NAMES_GPT2 || (part != NXC_PART_K && part != NXC_PART_V)) return 0;
  return t->head_dim * (part == NXC_PART_K ? t->heads : t->heads + t->kv_heads);
}

uint32_t nxc_piece_key(const nxc_training *t, const nxc_piece_node *piece, int32_t layer) {
  nxc_part part = tensor_part(t, piece->part);
  return layer < 0 ? 1 + part : 64 + 64 * (uint32_t)layer + part;
}

static nxc_id new_parameter(nxc_graph *graph, const char *name, const nxc_shape *shape) {
  const char *full = nxc_arena_printf(graph->arena, "%s.%s", graph->origin, name);
  nxc_id value = nxc_value_new(graph, full, NXC_ROLE_PARAMETER, shape);
  graph->parameters =
      nxc_arena_grow(graph->arena, graph->parameters, graph->n_parameters, sizeof *graph->parameters);
  graph->parameters[graph->n_parameters++] = value;
  return value;
}

/* What all pieces of a parameter share; its copies are owned by the first of the ranks that hold them. */
static nxc_piece_node *new_piece(nxc_graph *graph, const nxc_training *t, nxc_id value, nxc_part part,
                                 bool bias) {
  const nxc_shape *shape = &graph->values[value].shape;
  const part_row *row = &part_rows[part];
  uint32_t stage = nxc_axis(&graph->mesh, NXC_AXIS_STAGE);
  graph->pieces = nxc_arena_grow(graph->arena, graph->pieces, graph->n_pieces, sizeof *graph->pieces);
  nxc_piece_node *piece = &graph->pieces[graph->n_pieces++];
  *piece = (nxc_piece_node){
      .value = value,
      .transposed = !bias && t->names == NX_NAMES_GPT2 && row->gpt2_transposed,
      .n_dims = bias || shape->n_dims == 1 ? 1 : 2,
      .row_start = nxc_rank_number_of(0),
      .column_start = nxc_rank_number_of(0),
      .owner = nxc_rank_number_first(nxc_placed(&shape->place, NXC_REPLICATED) & stage),
      .init = bias ? NX_INIT_ZEROS : NX_INIT_NORMAL,
      .init_std = bias          ? 0
                  : row->output ? t->output_init_std
                                : t->init_std,
      .part = part,
      .bias = bias,
      .layer = graph->layer,
  };
  return piece;
}

static int64_t rows_of(const nxc_box *boxes, uint32_t n_boxes) {
  int64_t rows = 0;
  for (uint32_t i = 0; i < n_boxes; i++) rows += boxes[i].n_local;
  return rows;
}

nxc_id nxc_parameter_rows(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *boxes,
                          uint32_t n_boxes, int64_t columns, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 2, (int64_t[]){rows_of(boxes, n_boxes), columns});
  nxc_place(&shape.place, atoms, NXC_SPLIT);
  nxc_id value = new_parameter(graph, name, &shape);
  int64_t row = 0;
  for (uint32_t i = 0; i < n_boxes; row += boxes[i++].n_local) {
    nxc_piece_node *piece = new_piece(graph, t, value, boxes[i].part, false);
    piece->logical_rows = logical_rows(t, tensor_part(t, boxes[i].part));
    piece->logical_columns = piece->columns = columns;
    piece->rows = boxes[i].n_local;
    piece->row = row;
    piece->row_start = boxes[i].start;
    piece->row_start.base += part_offset(t, boxes[i].part);
  }
  return value;
}

nxc_id nxc_parameter_columns(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *box,
                             int64_t rows, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 2, (int64_t[]){rows, box->n_local});
  nxc_place(&shape.place, atoms, NXC_SPLIT + 1);
  nxc_id value = new_parameter(graph, name, &shape);
  nxc_piece_node *piece = new_piece(graph, t, value, box->part, false);
  piece->logical_rows = piece->rows = rows;
  piece->logical_columns = box->n_local * nxc_mesh_size(&graph->mesh, atoms);
  piece->columns = box->n_local;
  piece->column_start = box->start;
  return value;
}

nxc_id nxc_parameter_bias(nxc_graph *graph, const nxc_training *t, const char *name, const nxc_box *boxes,
                          uint32_t n_boxes, uint32_t atoms) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){rows_of(boxes, n_boxes)});
  nxc_place(&shape.place, atoms, NXC_SPLIT);
  nxc_id value = new_parameter(graph, name, &shape);
  int64_t row = 0;
  for (uint32_t i = 0; i < n_boxes; row += boxes[i++].n_local) {
    nxc_piece_node *piece = new_piece(graph, t, value, boxes[i].part, true);
    piece->logical_rows = piece->rows = 1;
    piece->logical_columns = logical_rows(t, tensor_part(t, boxes[i].part));
    piece->columns = boxes[i].n_local;
    piece->row = row;
    piece->column_start = boxes[i].start;
    piece->column_start.base += part_offset(t, boxes[i].part);
  }
  return value;
}

nxc_id nxc_parameter_norm(nxc_graph *graph, const nxc_training *t, const char *name, nxc_part part,
                          bool bias) {
  nxc_shape shape = nxc_shape_of(graph->types.param, 1, (int64_t[]){t->hidden});
  nxc_id value = new_parameter(graph, name, &shape);
  nxc_piece_node *piece = new_piece(graph, t, value, part, bias);
  piece->logical_rows = piece->rows = 1;
  piece->logical_columns = piece->columns = t->hidden;
  piece->init = bias ? NX_INIT_ZEROS : NX_INIT_ONES;
  piece->init_std = 0;
  return value;
}
