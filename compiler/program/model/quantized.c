/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen matrices that are kept quantized: what products read of them. */
#include "compiler/program/model/parameters.h"

#include <string.h>

/* The number over `by`, which divides it on every rank; what is added by a table begins behind all rows. */
static nxc_rank_number divided(nxc_rank_number number, int64_t by) {
  number.base /= by;
  for (uint32_t i = 0; i < number.n_terms; i++)
    if (number.terms[i].table == NULL) number.terms[i].stride /= by;
  return number;
}

/* A piece of a matrix, in entries of another form. */
static nxc_piece_node in_form(nxc_piece_node piece, nxc_id value, nx_form form) {
  int64_t elements = nx_form_elements(form), rows = nx_form_find(form)->rows;
  piece.value = value;
  piece.form = form;
  piece.columns /= elements;
  piece.logical_columns /= elements;
  piece.column_start = divided(piece.column_start, elements);
  piece.row /= rows;
  piece.rows /= rows;
  piece.logical_rows /= rows;
  piece.row_start = divided(piece.row_start, rows);
  return piece;
}

static nxc_shape shape_in_form(const nxc_shape *matrix, nx_form form) {
  nxc_shape shape = *matrix;
  shape.dtype = (nx_dtype)nx_form_find(form)->dtype;
  shape.dims[shape.n_dims - 1] /= nx_form_elements(form);
  shape.dims[shape.n_dims - 2] /= nx_form_find(form)->rows;
  return shape;
}

/* Whether all parts of the matrix have adapters. */
static bool is_quantized(const nxc_graph *graph, const nxc_training *t, nxc_id matrix) {
  if (t->lora.base == NULL) return false;
  for (size_t i = 0; i < graph->n_pieces; i++)
    if (graph->pieces[i].value == matrix && t->lora.of[graph->pieces[i].part] == NULL) return false;
  return true;
}

/* Codes and scales in the place of the matrix; returns the scales. */
static nxc_id quantize(nxc_graph *graph, const nxc_training *t, nxc_id matrix, const char *name) {
  const nxc_quantization *q = t->lora.base;
  nxc_value_node *node = &graph->values[matrix];
  const nxc_shape scales = shape_in_form(&node->shape, q->scales);
  node->shape = shape_in_form(&node->shape, q->codes);
  nxc_id scale = nxc_parameter_new(graph, t, nxc_arena_printf(graph->arena, "%s_scale", name), &scales);
  size_t n = graph->n_pieces;
  for (size_t i = 0; i < n; i++) {
    if (graph->pieces[i].value != matrix) continue;
    graph->pieces = nxc_arena_grow(graph->arena, graph->pieces, graph->n_pieces, sizeof *graph->pieces);
    graph->pieces[graph->n_pieces++] = in_form(graph->pieces[i], scale, q->scales);
    graph->pieces[i] = in_form(graph->pieces[i], matrix, q->codes);
  }
  return scale;
}

/* Each matrix of a layer has a key of its own; ranks that hold parts of it draw one after another. */
static void add_noise(nxc_graph *graph, const nxc_training *t, nxc_id matrix, nxc_op_request *read) {
  enum { SPACE = 7 << 28 };
  if (t->lora.base_noise <= 0) return;
  size_t i = 0;
  while (graph->pieces[i].value != matrix) i++;
  const nxc_shape *shape = &graph->values[matrix].shape;
  uint32_t copied = nxc_atoms_placed(&shape->placement, NXC_REPLICATED);
  uint32_t atoms = nxc_axis(&graph->mesh, NXC_AXIS_STAGE) & ~copied;
  nxc_rank_number first = nxc_rank_number_of(0);
  if (atoms)
    nxc_rank_number_stride(&first, atoms, nxc_shape_elements(shape) * nx_form_elements(t->lora.base->codes));
  int32_t layer = graph->layer < 0 ? 0 : graph->layer;
  const nxc_rank_number key = nxc_rank_number_layer(graph, SPACE + (int64_t)graph->pieces[i].part,
                                                    graph->layer < 0 ? 0 : NXC_N_PARTS, layer);
  read->in[2] = graph->step;
  read->attrs[NX_dequantize_nf4_noise] = nxc_real(t->lora.base_noise);
  read->attrs[NX_dequantize_nf4_tensor_id] = nxc_attribute(graph, &key);
  read->attrs[NX_dequantize_nf4_first] = nxc_attribute(graph, &first);
}

nxc_id nxc_parameter_read(nxc_graph *graph, const nxc_training *t, nxc_id matrix) {
  if (!is_quantized(graph, t, matrix)) return matrix;
  const char *name = strrchr(graph->values[matrix].name, '.') + 1;
  nxc_id scale = quantize(graph, t, matrix, name);
  nxc_op_request read = {.op = t->lora.base->op,
                         .name = nxc_arena_printf(graph->arena, "%s_read", name),
                         .in = {matrix, scale}};
  add_noise(graph, t, matrix, &read);
  return nxc_append(graph, &read);
}
