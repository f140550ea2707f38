/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/pipeline/pipeline.h"

#include <string.h>

static nxc_stages *list_stages(nxc_pipeline *p, const uint32_t *at, uint32_t n) {
  for (size_t i = 0; i < p->n_stage_lists; i++)
    if (p->stages[i]->n == n && memcmp(p->stages[i]->at, at, n * sizeof *at) == 0) return p->stages[i];
  nxc_stages *list = nxc_arena_alloc(p->arena, sizeof *list);
  *list = (nxc_stages){.n = n, .at = nxc_arena_array(p->arena, n, sizeof *list->at)};
  memcpy(list->at, at, n * sizeof *at);
  p->stages = nxc_arena_grow(p->arena, p->stages, p->n_stage_lists, sizeof *p->stages);
  return p->stages[p->n_stage_lists++] = list;
}

/* Where stages are mirrored the first and the last chunk may be on one. */
static const nxc_stages *list_ends(nxc_pipeline *p, const nxc_layout *layout) {
  const uint32_t ends[] = {0, nxc_layout_stage_of(layout, p->n_chunks - 1)};
  bool in_chunks = ends[1] == ends[0];
  nxc_stages *list = list_stages(p, ends, in_chunks ? 1 : 2);
  list->in_chunks = in_chunks;
  return list;
}

const nxc_stages *nxc_pipeline_holders(nxc_pipeline *p, const nxc_training *t, int64_t weights) {
  uint32_t *at = nxc_arena_array(p->arena, p->n_stages, sizeof *at), n = 0;
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    const nxc_chunk_node *chunk = &p->chunks[c];
    int32_t layer = chunk->first_layer, end = layer + chunk->n_layers;
    while (layer < end && nxc_model_weights_of(&t->model, layer) != weights) layer++;
    if (layer < end) at[n++] = chunk->stage;
  }
  return n > 1 ? list_stages(p, at, n) : NULL;
}

/* Of chunks that share weights with others each is a shape of its own. */
static bool is_same_shape(const nxc_pipeline *p, const nxc_training *t, uint32_t a, uint32_t b) {
  const nxc_chunk_node *one = &p->chunks[a], *other = &p->chunks[b];
  bool ends = a == 0 || b == 0 || a + 1 == p->n_chunks || b + 1 == p->n_chunks;
  bool shares = nxc_model_shares(&t->model);
  bool same = a == b || (!ends && !shares && one->n_layers == other->n_layers);
  for (int32_t i = 0; same && i < one->n_layers; i++)
    same = t->model.spec_of[one->first_layer + i] == t->model.spec_of[other->first_layer + i];
  return same;
}

static nxc_graph *new_graph(nxc_pipeline *p, const nxc_training *t, uint32_t chunk) {
  nxc_graph *graph = nxc_graph_new(p->arena, &t->mesh, &t->types);
  graph->n_micro_batches = (uint32_t)t->batch.n_micro;
  graph->pipeline = p;
  graph->chunk = chunk;
  graph->is_first = chunk == 0;
  graph->is_last = chunk + 1 == p->n_chunks;
  graph->first_layer = p->chunks[chunk].first_layer;
  graph->n_layers = p->chunks[chunk].n_layers;
  graph->shard_axis = t->sharding.axis;
  graph->divides_gradients = t->sharding.stage > 1 && !t->sharding.reduce_once;
  graph->in_pairs = t->sharding.in_pairs && graph->n_micro_batches > 1;
  graph->votes = t->optimizer.update.rule->op == NX_OP_distsignsgd;
  if (p->n_graphs) graph->tables = p->graphs[0]->tables;
  p->graphs[p->n_graphs++] = graph;
  return graph;
}

/* Gradients that every pass reduces, or keeps in pairs or votes, would wait whole in the slots: there
 * backward passes are not cut, and run where their inputs' part would. */
static bool cuts_backward(const nxc_training *t) {
  bool once =
      t->sharding.stage < 2 && !t->sharding.in_pairs && t->optimizer.update.rule->op != NX_OP_distsignsgd;
  return nxc_layout_cuts_backward(&t->layout) && once;
}

nxc_pipeline *nxc_pipeline_new(nxc_arena *arena, const nxc_training *t) {
  nxc_pipeline *p = nxc_arena_alloc(arena, sizeof *p);
  *p = (nxc_pipeline){.arena = arena, .n_stages = t->layout.pipeline, .n_chunks = t->layout.n_chunks};
  p->cuts = cuts_backward(t);
  p->chunks = nxc_arena_array(arena, p->n_chunks, sizeof *p->chunks);
  if (p->n_stages > 1) p->ends = list_ends(p, &t->layout);
  uint32_t *every = nxc_arena_array(arena, p->n_stages, sizeof *every);
  for (uint32_t stage = 0; stage < p->n_stages; stage++) every[stage] = stage;
  if (p->n_stages > 1) p->all = list_stages(p, every, p->n_stages);
  p->graphs = nxc_arena_array(arena, p->n_chunks, sizeof *p->graphs);
  p->first_layers = nxc_arena_array(arena, p->n_chunks, sizeof *p->first_layers);
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    int64_t first = nxc_training_layers_before(t, c), end = nxc_training_layers_before(t, c + 1);
    p->first_layers[c] = first;
    p->chunks[c] = (nxc_chunk_node){.stage = nxc_layout_stage_of(&t->layout, c),
                                    .first_layer = (int32_t)first,
                                    .n_layers = (int32_t)(end - first),
                                    .n_slots = 1};
  }
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    uint32_t like = 0;
    while (!is_same_shape(p, t, c, like)) like++;
    p->chunks[c].graph = like == c ? p->n_graphs : p->chunks[like].graph;
    if (like == c) new_graph(p, t, c);
  }
  return p;
}

static bool is_stacked(nx_arena_kind kind) {
  return kind == NX_ARENA_param || kind == NX_ARENA_master || kind == NX_ARENA_grad ||
         kind == NX_ARENA_state || kind == NX_ARENA_slot;
}

/* What outlives a program is each chunk's own; the rest is shared by the chunks of a stage. */
void nxc_pipeline_lay_out(nxc_pipeline *p) {
  for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++) {
    uint64_t *ends = nxc_arena_array(p->arena, p->n_stages, sizeof *ends);
    for (uint32_t c = 0; c < p->n_chunks; c++) {
      nxc_chunk_node *chunk = &p->chunks[c];
      uint64_t bytes = p->graphs[chunk->graph]->arena_bytes[kind];
      if (kind == NX_ARENA_slot && bytes > p->slot_bytes) p->slot_bytes = bytes;
      if (kind == NX_ARENA_slot) bytes *= chunk->n_slots;
      chunk->arena_base[kind] = is_stacked(kind) ? ends[chunk->stage] : 0;
      uint64_t end = chunk->arena_base[kind] + bytes;
      if (end > ends[chunk->stage]) ends[chunk->stage] = end;
      if (ends[chunk->stage] > p->arena_bytes[kind]) p->arena_bytes[kind] = ends[chunk->stage];
    }
  }
}
