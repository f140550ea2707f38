/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained: pieces of parameters, their groups, and values that stay as they are. */
#include "compiler/program/emit/emit.h"

#include "compiler/program/model/tensors.h"

#include <stdlib.h>

/* Of the first graph: the numbers of the step are the same values in all. */
void nxc_emit_parameter_groups(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_parameter_groups; i++) {
    const nxc_parameter_group *group = &e->graph->tables->parameter_groups[i];
    const nxc_group_numbers *numbers = &e->graph->group_numbers[i];
    const nxc_learning_rate *decay = &group->weight_decay;
    nxc_emit_record(e, NX_SECTION_PARAMETER_GROUPS,
                    &(nx_parameter_group){.name = nxc_emit_string(e, group->name),
                                          .optimizer = group->update.rule->op,
                                          .lr = nxc_emit_value_of(e, numbers->lr),
                                          .decay = nxc_emit_value_of(e, numbers->decay),
                                          .lr_factor = group->lr_factor,
                                          .weight_decay = decay->segments[decay->n_segments - 1].to});
  }
}

static void emit_piece(nxc_emitter *e, uint32_t chunk, const nxc_piece_node *piece) {
  nxc_graph *graph = e->graph;
  const nxc_chunk_node *at = &e->pipeline->chunks[chunk];
  const nxc_value_node *value = &graph->values[piece->value];
  int32_t layer = piece->layer < 0 ? piece->layer : piece->layer - graph->first_layer + at->first_layer;
  const nxc_rank_number tensor_id = nxc_rank_number_of(nxc_piece_key(e->training, piece, layer));
  uint64_t row_elements = value->shape.n_dims == 1 ? 1 : (uint64_t)piece->columns;
  nx_piece record = {.name = nxc_emit_string(e, nxc_piece_name(e->arena, e->training, piece, layer)),
                     .value = nxc_emit_value_of(e, piece->value),
                     .range = e->first_range[at->graph] + value->range,
                     .flags = (piece->transposed ? NX_PIECE_TRANSPOSED : 0) |
                              (piece->adapter ? NX_PIECE_ADAPTER : 0) | (piece->alias ? NX_PIECE_ALIAS : 0) |
                              (piece->memory ? NX_PIECE_MEMORY : 0),
                     .logical_rows = piece->logical_rows,
                     .logical_columns = piece->logical_columns,
                     .rows = piece->rows,
                     .columns = piece->columns,
                     .row_start = nxc_constant(graph, &piece->row_start),
                     .column_start = nxc_constant(graph, &piece->column_start),
                     .row = piece->row,
                     .range_offset = value->range_start + (uint64_t)piece->row * row_elements,
                     .owner = nxc_constant(graph, &piece->owner),
                     .init = piece->init,
                     .init_std = piece->init_std,
                     .tensor_id = nxc_constant(graph, &tensor_id),
                     .n_dims = piece->n_dims,
                     .chunk = chunk,
                     .slices = piece->slices,
                     .form = piece->form};
  nxc_emit_record(e, NX_SECTION_PIECES, &record);
}

typedef struct turn {
  uint32_t name, first, index; /* the first piece of that name */
} turn;

static int compare(uint32_t a, uint32_t b) {
  return (a > b) - (a < b);
}

static int by_name(const void *left, const void *right) {
  const turn *a = left, *b = right;
  return a->name != b->name ? compare(a->name, b->name) : compare(a->index, b->index);
}

static int by_first(const void *left, const void *right) {
  const turn *a = left, *b = right;
  return a->first != b->first ? compare(a->first, b->first) : compare(a->index, b->index);
}

/* Boxes of one tensor stand beside each other, where the first of them did. */
static void join_tensors(nxc_emitter *e, uint32_t from) {
  nxc_section *section = &e->sections[NX_SECTION_PIECES];
  nx_piece *pieces = (nx_piece *)(void *)section->bytes + from;
  uint32_t n = section->n_records - from;
  nx_piece *before = nxc_arena_array(e->arena, n + 1, sizeof *before);
  turn *turns = nxc_arena_array(e->arena, n + 1, sizeof *turns);
  for (uint32_t i = 0; i < n; i++) before[i] = pieces[i], turns[i] = (turn){pieces[i].name, i, i};
  qsort(turns, n, sizeof *turns, by_name);
  for (uint32_t i = 1; i < n; i++)
    if (turns[i].name == turns[i - 1].name) turns[i].first = turns[i - 1].first;
  qsort(turns, n, sizeof *turns, by_first);
  for (uint32_t i = 0; i < n; i++) pieces[i] = before[turns[i].index];
}

void nxc_emit_pieces(nxc_emitter *e) {
  for (uint32_t chunk = 0; chunk < e->pipeline->n_chunks; chunk++) {
    uint32_t from = e->sections[NX_SECTION_PIECES].n_records;
    nxc_emit_enter(e, e->pipeline->chunks[chunk].graph);
    for (size_t i = 0; i < e->graph->n_pieces; i++) emit_piece(e, chunk, &e->graph->pieces[i]);
    join_tensors(e, from);
  }
}

/* Of the first graph: they are the same values in all. */
void nxc_emit_fixed_values(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->n_fixed; i++) {
    const nxc_fixed_value *fixed = &e->graph->fixed[i];
    nx_fixed_value record = {nxc_emit_value_of(e, fixed->value), e->sections[NX_SECTION_TABLE].n_records};
    int64_t n = nxc_shape_elements(&e->graph->values[fixed->value].shape);
    for (int64_t at = 0; at < n; at++) nxc_emit_record(e, NX_SECTION_TABLE, &fixed->bits[at]);
    nxc_emit_record(e, NX_SECTION_FIXED_VALUES, &record);
  }
}
