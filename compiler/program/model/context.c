/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/context.h"

int64_t nxc_context_tokens(const nxc_training *t) {
  return t->model.sequence / t->layout.context;
}

int64_t nxc_context_part(const nxc_training *t) {
  return t->model.sequence / (t->layout.context / t->layout.ulysses);
}

static bool has_dropout(const nxc_training *t) {
  return t->model.embedding_dropout > 0 || t->model.specs[0].ffn.dropout > 0;
}

static void make_places(nxc_graph *graph, const nxc_training *t) {
  int64_t n_rows = t->layout.context / t->layout.ulysses, n = nxc_context_part(t);
  const nxc_shape shape = nxc_shape_of(NX_i32, 2, (int64_t[]){n_rows, n});
  const nxc_shape row = nxc_shape_of(NX_i32, 1, (int64_t[]){n});
  graph->places = nxc_value_new(graph, "places", NXC_ROLE_INPUT, &shape);
  graph->place_rows = nxc_arena_array(graph->arena, (size_t)n_rows, sizeof *graph->place_rows);
  for (int64_t i = 0; i < n_rows; i++) {
    const char *name = nxc_arena_printf(graph->arena, "places.%d", (int)i);
    uint64_t offset = (uint64_t)i * nxc_shape_bytes(&row);
    graph->place_rows[i] = nxc_view_new(graph, name, graph->places, offset, &row);
  }
}

static void make_weights(nxc_graph *graph) {
  nxc_shape shape = graph->values[graph->tokens].shape;
  shape.dtype = NX_f32;
  graph->weights = nxc_value_new(graph, "weights", NXC_ROLE_INPUT, &shape);
}

void nxc_context_inputs(nxc_graph *graph, const nxc_training *t) {
  const nxc_shape factor = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  if (t->types.loss_scale.used)
    graph->loss_scale = nxc_value_new(graph, "loss_scale", NXC_ROLE_INPUT, &factor);
  graph->gradient_factor = graph->loss_scale;
  if (t->batch.n_phases > 0) {
    const nxc_shape count = nxc_shape_of(NX_i64, 1, (int64_t[]){1});
    graph->seen = nxc_value_new(graph, "seen", NXC_ROLE_INPUT, &count);
    graph->gradient_factor = nxc_value_new(graph, "gradient_factor", NXC_ROLE_INPUT, &factor);
  }
  if (t->data.weighs_tokens) make_weights(graph);
  bool ring = nxc_axis(&graph->mesh, NXC_AXIS_RING) != 0, attention = ring || t->data.separate_documents;
  if (attention || (t->layout.context > 1 && has_dropout(t))) make_places(graph, t);
  if (!attention) return;
  nxc_shape starts = nxc_shape_of(NX_i32, 2, (int64_t[]){t->batch.micro, nxc_context_part(t)});
  nxc_place_atoms(&starts.placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  graph->starts = nxc_value_new(graph, "starts", NXC_ROLE_INPUT, &starts);
}

static nxc_id exchange(nxc_graph *graph, nxc_id x, const char *name, int64_t split, int64_t concat) {
  uint32_t ulysses = nxc_axis(&graph->mesh, NXC_AXIS_ULYSSES);
  if (ulysses == 0) return x;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_to_all,
                                             .name = name,
                                             .in = {x},
                                             .attrs = {[NX_all_to_all_split_axis] = nxc_integer(split),
                                                       [NX_all_to_all_concat_axis] = nxc_integer(concat)},
                                             .group_atoms = ulysses});
}

nxc_id nxc_context_gather(nxc_graph *graph, nxc_id heads, const char *name) {
  return exchange(graph, heads, name, 1, 2);
}

nxc_id nxc_context_scatter(nxc_graph *graph, nxc_id features, const char *name) {
  return exchange(graph, features, name, 1, 2);
}

void nxc_context_first_head(const nxc_graph *graph, nxc_rank_number *number, int64_t heads) {
  uint32_t ulysses = nxc_axis(&graph->mesh, NXC_AXIS_ULYSSES);
  nxc_rank_number_stride(number, ulysses, heads / nxc_mesh_size(&graph->mesh, ulysses));
}

void nxc_context_first_token(const nxc_graph *graph, const nxc_training *t, nxc_rank_number *number) {
  nxc_rank_number_stride(number, nxc_axis(&graph->mesh, NXC_AXIS_ULYSSES), nxc_context_tokens(t));
}
