/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/tensors.h"

#include "schema/safetensors.h"

#include <assert.h>
#include <string.h>

static const nxc_tensor_row *tensor_of(const nxc_training *t, nxc_part part) {
  const nxc_tensor_row *row = t->model.family->tensors[part];
  assert(row != NULL); /* judged before (judge.c) */
  return row;
}

/* ---- names and keys ---- */

/* The stem with a number, or what stands for all, in place of its first %d. */
static const char *numbered(nxc_arena *arena, const char *stem, int32_t number) {
  const char *hole = strstr(stem, "%d"), *text = nx_all_experts;
  if (hole == NULL) return stem;
  if (number != NXC_ALL_EXPERTS) text = nxc_arena_printf(arena, "%d", number);
  return nxc_arena_printf(arena, "%.*s%s%s", (int)(hole - stem), stem, text, hole + 2);
}

/* As PEFT calls it: where a module has an adapter its own bias is that of its base layer. */
static const char *adapter_name(nxc_arena *arena, const nxc_training *t, const nxc_piece_node *piece,
                                const char *module) {
  bool adapted = t->lora.of[piece->part] != NULL;
  const char *const ends[] = {[NXC_ADAPTER_A] = "lora_A.weight",
                              [NXC_ADAPTER_B] = "lora_B.weight",
                              [NXC_ADAPTED_BIAS] = adapted ? "base_layer.bias" : "bias"};
  return nxc_arena_printf(arena, "base_model.model.%s.%s", module, ends[piece->adapter]);
}

const char *nxc_piece_name(nxc_arena *arena, const nxc_training *t, const nxc_piece_node *piece,
                           int32_t layer) {
  const nxc_tensor_row *tensor = tensor_of(t, piece->part);
  if (piece->of_range) return nxc_arena_printf(arena, "optimizer.%d.%s", layer, piece->memory);
  const char *name = numbered(arena, numbered(arena, tensor->stem, layer), piece->expert);
  if (piece->memory) return nxc_arena_printf(arena, "%s.%s", name, piece->memory);
  if (piece->adapter) return adapter_name(arena, t, piece, name);
  const char *const ends[] = {[NX_FORM_PLAIN] = "weight",
                              [NX_FORM_NF4] = "weight",
                              [NX_FORM_NF4_ABSMAX] = "weight.absmax",
                              [NX_FORM_NVFP4] = "weight",
                              [NX_FORM_NVFP4_SCALE] = "weight_scale",
                              [NX_FORM_MXFP4] = "weight",
                              [NX_FORM_MXFP4_SCALE] = "weight_scale",
                              [NX_FORM_FP8] = "weight",
                              [NX_FORM_FP8_SCALE] = "weight_scale_inv"};
  if (tensor->bare) return piece->bias ? nxc_arena_printf(arena, "%s_bias", name) : name;
  return nxc_arena_printf(arena, "%s.%s", name, piece->bias ? "bias" : ends[piece->form]);
}

/* Keys of experts begin above those of all other tensors. */
enum {
  KEY_EXPERTS = 1 << 28,
  KEYS_OF_LAYER = 64,
  KEYS_OF_EXPERT = 4,
  KEY_ADAPTERS = 1 << 29,
  KEY_SECOND = 1 << 27
};

/* A tensor of several parts has the key of its first. */
static uint32_t key_of_part(const nxc_training *t, const nxc_piece_node *piece, nxc_part part,
                            int32_t layer) {
  if (layer < 0) return 1 + part;
  if (part < NXC_PART_EXPERT_GATE) return KEYS_OF_LAYER + KEYS_OF_LAYER * (uint32_t)layer + part;
  int32_t number = piece->expert == NXC_ALL_EXPERTS ? 0 : piece->expert;
  uint32_t expert = (uint32_t)(layer * t->model.mixture->n_experts + number);
  return KEY_EXPERTS + KEYS_OF_EXPERT * expert + (part - NXC_PART_EXPERT_GATE);
}

/* Tensors that have one first matrix of an adapter draw it alike. */
uint32_t nxc_piece_key(const nxc_training *t, const nxc_piece_node *piece, int32_t layer) {
  nxc_part part = tensor_of(t, piece->part)->parts[0];
  if (piece->adapter == NXC_ADAPTER_A)
    return KEY_ADAPTERS + key_of_part(t, piece, t->lora.of[piece->part]->parts[0], layer);
  uint32_t key = key_of_part(t, piece, part, layer);
  return piece->adapter == NXC_ADAPTER_B ? KEY_ADAPTERS + KEY_SECOND + key : key;
}

/* ---- rows ---- */

/* Rows of the part itself, in a layer. */
static int64_t layer_rows(const nxc_model *m, const nxc_layer_spec *spec, nxc_part part) {
  const nxc_attention_spec *a = &spec->attention;
  switch (part) {
    case NXC_PART_Q:
    case NXC_PART_Q_UP: return a->heads * a->head_dim;
    case NXC_PART_SHARED_MIX: return spec->ffn.mixture->shared_softmax ? 2 : 1;
    case NXC_PART_SINKS: return a->heads;
    case NXC_PART_ATTENTION_GATE: return a->gates;
    case NXC_PART_FFN_INNER_NORM: return spec->ffn.width;
    case NXC_PART_Q_DOWN: return a->query_rank;
    case NXC_PART_KV_DOWN: return a->kv_rank;
    case NXC_PART_ROPE_KEY: return a->shared_dim;
    case NXC_PART_KV_UP: return a->heads * (a->head_dim - a->shared_dim + a->value_dim);
    case NXC_PART_K:
    case NXC_PART_V: return a->kv_heads * a->head_dim;
    case NXC_PART_GATE:
    case NXC_PART_UP: return spec->ffn.width;
    case NXC_PART_SHARED_GATE:
    case NXC_PART_SHARED_UP: return spec->ffn.mixture->shared_hidden;
    case NXC_PART_EXPERT_GATE:
    case NXC_PART_EXPERT_UP: return spec->ffn.mixture->hidden;
    case NXC_PART_ROUTER: return spec->ffn.mixture->n_experts;
    default: return m->hidden;
  }
}

static int64_t part_rows(const nxc_graph *graph, const nxc_model *m, nxc_part part) {
  if (part == NXC_PART_EMBEDDING || part == NXC_PART_OUTPUT) return m->vocab;
  if (part == NXC_PART_SCORE) return 1;
  if (part == NXC_PART_POSITIONS) return m->learned_positions;
  if (part == NXC_PART_RELATIVE) return m->specs[0].attention.relative.buckets;
  return graph->layer < 0 ? m->hidden : layer_rows(m, nxc_model_layer(m, graph->layer), part);
}

/* Rows of the tensor up to the part; of all of it where the part is not in it. */
static int64_t rows_before(const nxc_graph *graph, const nxc_model *m, const nxc_tensor_row *tensor,
                           nxc_part part) {
  int64_t rows = 0;
  for (size_t i = 0; i < tensor->n_parts && tensor->parts[i] != part; i++)
    rows += part_rows(graph, m, tensor->parts[i]);
  return rows;
}

int64_t nxc_tensor_rows(const nxc_graph *graph, const nxc_training *t, nxc_part part) {
  return rows_before(graph, &t->model, tensor_of(t, part), NXC_N_PARTS);
}

bool nxc_tensor_takes_turns(const nxc_training *t, nxc_part part) {
  return tensor_of(t, part)->layout == NXC_LAYOUT_TURNS;
}

/* The number times to / from, which divides it on every rank. */
static nxc_rank_number scaled(const nxc_rank_number *number, int64_t to, int64_t from) {
  nxc_rank_number result = *number;
  assert(number->base % from == 0);
  result.base = number->base / from * to;
  for (uint32_t i = 0; i < result.n_terms; i++) {
    assert(result.terms[i].table == NULL && result.terms[i].stride % from == 0);
    result.terms[i].stride = result.terms[i].stride / from * to;
  }
  return result;
}

size_t nxc_tensor_cuts(nxc_graph *graph, const nxc_training *t, nxc_part part, int64_t n_local,
                       const nxc_rank_number *start, nxc_tensor_cut **cuts) {
  const nxc_model *m = &t->model;
  const nxc_tensor_row *tensor = tensor_of(t, part);
  bool grouped = tensor->layout == NXC_LAYOUT_GROUPS;
  int64_t n_groups = grouped ? nxc_model_layer(m, graph->layer)->attention.kv_heads : 1;
  int64_t whole = nxc_tensor_rows(graph, t, part) / n_groups, own = part_rows(graph, m, part) / n_groups;
  size_t n_cuts = grouped ? (size_t)(n_local / own) : 1;
  nxc_tensor_cut *made = nxc_arena_array(graph->arena, n_cuts, sizeof *made);
  for (size_t i = 0; i < n_cuts; i++) {
    made[i] = (nxc_tensor_cut){.rows = n_local / (int64_t)n_cuts, .start = *start};
    if (grouped) made[i].start = scaled(start, whole, own);
    made[i].start.base += (int64_t)i * whole + rows_before(graph, m, tensor, part) / n_groups;
  }
  *cuts = made;
  return n_cuts;
}
