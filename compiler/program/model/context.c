/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/context.h"

#include <string.h>

int64_t nxc_context_tokens(const nxc_training *t) {
  return t->model.sequence / t->layout.context;
}

/* In the part of a ring rank. */
static int64_t tokens_of_part(const nxc_training *t) {
  return t->model.sequence / (t->layout.context / t->layout.ulysses);
}

/* Whether a layer draws numbers by the places of tokens, beside what attention drops of its weights. */
static bool draws(const nxc_layer_spec *layer) {
  const nxc_mixture *mixture = layer->ffn.mixture;
  return layer->dropout > 0 || layer->ffn.dropout > 0 ||
         (layer->attention.dropout > 0 && layer->attention.sparse != NXC_SPARSE_NONE) ||
         (mixture && (mixture->jitter > 0 || mixture->random));
}

static bool draws_by_place(const nxc_training *t) {
  bool any = t->model.embedding_dropout > 0 || t->lora.dropout > 0;
  for (uint32_t i = 0; i < t->model.n_specs; i++) any = any || draws(&t->model.specs[i]);
  return any;
}

static void make_frequencies(nxc_graph *graph, const nxc_rope_spec *rope) {
  if (rope->frequencies == NULL) return;
  const nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){rope->n_frequencies});
  int64_t *bits = nxc_arena_array(graph->arena, (size_t)rope->n_frequencies, sizeof *bits);
  memcpy(bits, rope->frequencies, (size_t)rope->n_frequencies * sizeof *bits);
  graph->frequencies = nxc_fixed_value_new(graph, "frequencies", &shape, bits);
}

/* All graphs of a plan have the same, whether their layers read them or not. */
static void make_blocks(nxc_graph *graph, const nxc_model *m) {
  for (uint32_t i = 0; i < m->n_specs; i++) {
    const nxc_attention_spec *a = &m->specs[i].attention;
    if (a->sparse == NXC_SPARSE_NONE || graph->blocks[a->sparse]) continue;
    nxc_sparse_layout layout =
        nxc_sparse_layout_make(graph->arena, &m->sparsity, a->sparse, a->heads, m->sequence);
    const nxc_shape shape =
        nxc_shape_of(NX_i64, 3, (int64_t[]){layout.n_layouts, layout.n_blocks, layout.n_words});
    const char *name = nxc_arena_printf(graph->arena, "blocks.%d", (int)a->sparse);
    graph->blocks[a->sparse] = nxc_fixed_value_new(graph, name, &shape, layout.bits);
  }
}

static void make_places(nxc_graph *graph, const nxc_training *t) {
  int64_t n_rows = t->layout.context / t->layout.ulysses, n = tokens_of_part(t);
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

static void make_later(nxc_graph *graph, int64_t depth) {
  const nxc_shape *tokens = &graph->values[graph->tokens].shape;
  nxc_shape shape = nxc_shape_of(NX_i32, 3, (int64_t[]){depth, tokens->dims[0], tokens->dims[1]});
  if (depth == 0) return;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (tokens->placement.at[atom] >= NXC_SPLIT)
      shape.placement.at[atom] = (uint8_t)(tokens->placement.at[atom] + 1);
  graph->later_labels = nxc_value_new(graph, "later_labels", NXC_ROLE_INPUT, &shape);
  shape.dtype = NX_f32;
  graph->later_weights = nxc_value_new(graph, "later_weights", NXC_ROLE_INPUT, &shape);
}

/* Of each sequence, what the host knows of it: the reference's sum, the reward. */
static void make_answers(nxc_graph *graph, const nxc_training *t) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){t->batch.micro, 2});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  if (t->objective.refers) graph->reference = nxc_value_new(graph, "reference", NXC_ROLE_INPUT, &shape);
  shape.n_dims = 2, shape.dims[1] = 2;
  if (t->objective.row->has_rewards) graph->rewards = nxc_value_new(graph, "rewards", NXC_ROLE_INPUT, &shape);
}

void nxc_context_inputs(nxc_graph *graph, const nxc_training *t) {
  const nxc_shape factor = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  if (t->types.loss_scale.used)
    graph->loss_scale = nxc_value_new(graph, "loss_scale", NXC_ROLE_INPUT, &factor);
  graph->gradient_factor = graph->loss_scale;
  graph->counts_voters = t->data.weighs_tokens && t->optimizer.update.rule->op == NX_OP_distsignsgd;
  if (t->batch.n_phases > 0) {
    const nxc_shape count = nxc_shape_of(NX_i64, 1, (int64_t[]){1});
    graph->seen = nxc_value_new(graph, "seen", NXC_ROLE_INPUT, &count);
  }
  if (t->batch.n_phases > 0 || graph->counts_voters)
    graph->gradient_factor = nxc_value_new(graph, "gradient_factor", NXC_ROLE_INPUT, &factor);
  if (t->rate.follows_loss) {
    const nxc_shape count = nxc_shape_of(NX_i64, 1, (int64_t[]){1});
    graph->reductions = nxc_value_new(graph, "reductions", NXC_ROLE_INPUT, &count);
  }
  if (t->data.weighs_tokens) make_weights(graph);
  make_later(graph, t->model.predict_depth);
  make_frequencies(graph, &t->model.specs[0].attention.rope);
  make_blocks(graph, &t->model);
  make_answers(graph, t);
  bool ring = nxc_axis(&graph->mesh, NXC_AXIS_RING) != 0, attention = ring || t->data.separate_documents;
  if (attention || (t->layout.context > 1 && draws_by_place(t))) make_places(graph, t);
  if (!attention) return;
  nxc_shape starts = nxc_shape_of(NX_i32, 2, (int64_t[]){t->batch.micro, tokens_of_part(t)});
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
