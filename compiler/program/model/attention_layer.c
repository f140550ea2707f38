/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/attention_layer.h"

#include "compiler/program/model/adapters.h"
#include "compiler/program/model/context.h"

#include <string.h>

static int64_t local_heads(const nxc_decoder *d) {
  return d->layer->attention.heads / d->t->layout.tensor;
}

static int64_t local_kv_heads(const nxc_decoder *d) {
  return d->layer->attention.kv_heads * d->t->layout.kv_replica / d->t->layout.tensor;
}

typedef struct heads {
  nxc_id q, k, v;
} heads;

/* From rotary_dims on, in the order of ops.def. */
static void rope_attributes(nx_attribute *attrs, const nxc_rope_spec *rope, int64_t dims) {
  const nx_attribute all[] = {nxc_integer(dims),
                              nxc_real(rope->theta),
                              nxc_integer(rope->scaling),
                              nxc_real(rope->factor),
                              nxc_real(rope->low_freq_factor),
                              nxc_real(rope->high_freq_factor),
                              nxc_integer(rope->original_positions),
                              nxc_real(rope->amplitude),
                              nxc_integer(rope->interleaved),
                              nxc_integer(rope->start)};
  memcpy(attrs, all, sizeof all);
}

/* Features that are rotated as heads are split: none where a norm comes between. */
static int64_t split_dims(const nxc_attention_spec *a) {
  return a->qk_norm == NXC_QK_NORM_OF_HEAD ? 0 : a->rope.dims;
}

/* Those that are given, for what is rotated. */
static nxc_id frequencies(const nxc_decoder *d, int64_t rotary_dims) {
  return rotary_dims > 0 ? d->graph->frequencies : 0;
}

/* What a product makes, bound where the model bounds it. */
static nxc_id bounded(const nxc_decoder *d, nxc_id features, const char *name) {
  double limit = d->layer->attention.limit;
  if (limit == 0) return features;
  nxc_op_request request = {.op = NX_OP_clamp,
                            .name = nxc_arena_printf(d->graph->arena, "%s_bounded", name),
                            .in = {features},
                            .attrs = {[NX_clamp_limit] = nxc_real(limit)}};
  return nxc_append(d->graph, &request);
}

/* Queries, keys and values from one product; not where key heads are copied, since then the gradients of keys
 * and values are summed over other ranks than those of queries. */
static heads fused_heads(const nxc_decoder *d, nxc_id x, const nxc_box boxes[3]) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id qkv = nxc_decoder_column_product(d, "qkv", x, boxes, 3, d->tensor, a->qkv_bias);
  nxc_op_request request = {.op = NX_OP_split_qkv,
                            .in = {bounded(d, qkv, "qkv"), graph->positions, frequencies(d, split_dims(a))},
                            .attrs = {[NX_split_qkv_heads] = nxc_integer(local_heads(d)),
                                      [NX_split_qkv_kv_heads] = nxc_integer(local_kv_heads(d))}};
  rope_attributes(request.attrs + NX_split_qkv_rotary_dims, &a->rope, split_dims(a));
  nxc_append(graph, &request);
  return (heads){nxc_last_output(graph, 0), nxc_last_output(graph, 1), nxc_last_output(graph, 2)};
}

typedef struct projection {
  const char *name;
  nxc_part norm; /* of what is made; NXC_N_PARTS: none */
  int64_t n_heads, rotary_dims;
  uint32_t atoms;
} projection;

static nxc_id split_features(const nxc_decoder *d, nxc_id features, const projection *p) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  if (a->qk_norm == NXC_QK_NORM_OF_ALL && p->norm != NXC_N_PARTS)
    features = nxc_decoder_norm_of_features(d, features, p->norm,
                                            nxc_arena_printf(graph->arena, "%s_norm", p->name), p->atoms);
  nxc_op_request request = {
      .op = NX_OP_split_heads,
      .name = nxc_arena_printf(graph->arena, "%s_heads", p->name),
      .in = {bounded(d, features, p->name), graph->positions, frequencies(d, p->rotary_dims)},
      .attrs = {[NX_split_heads_heads] = nxc_integer(p->n_heads)}};
  rope_attributes(request.attrs + NX_split_heads_rotary_dims, &a->rope, p->rotary_dims);
  return nxc_append(graph, &request);
}

/* Where key heads are copied. Weights are declared before biases, because parts of one tensor of a checkpoint
 * stand together. */
static heads copied_heads(const nxc_decoder *d, nxc_id x, const nxc_box boxes[3], const projection to[3]) {
  nxc_id weights[3], biases[3] = {0}, y[3];
  nxc_columns columns[3];
  for (int i = 0; i < 3; i++) {
    columns[i] = (nxc_columns){to[i].name, &boxes[i], 1, to[i].atoms};
    weights[i] = nxc_decoder_column_weight(d, x, &columns[i]);
  }
  for (int i = 0; i < 3 && d->layer->attention.qkv_bias; i++)
    biases[i] = nxc_decoder_column_bias(d, &columns[i]);
  for (int i = 0; i < 3; i++) {
    nxc_id weight = nxc_parameter_read(d->graph, d->t, weights[i]);
    y[i] = split_features(d, nxc_decoder_columns(d, x, &columns[i], weight, biases[i]), &to[i]);
  }
  return (heads){y[0], y[1], y[2]};
}

/* Each head by itself, before it is rotated. */
static nxc_id norm_of_heads(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id y = nxc_decoder_norm(d, x, part, &d->layer->norm, nxc_arena_printf(graph->arena, "%s_norm", name),
                              graph->types.activation);
  if (a->rope.dims == 0) return y;
  nxc_op_request request = {.op = NX_OP_rotate,
                            .name = nxc_arena_printf(graph->arena, "%s_rotated", name),
                            .in = {y, graph->positions, graph->frequencies},
                            .attrs = {[NX_rotate_backward] = nxc_integer(0)}};
  rope_attributes(request.attrs + NX_rotate_rotary_dims, &a->rope, a->rope.dims);
  return nxc_append(graph, &request);
}

static heads make_heads(const nxc_decoder *d, nxc_id x) {
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t n_heads = local_heads(d), n_kv_heads = local_kv_heads(d);
  int64_t queries = n_heads * a->head_dim, keys = n_kv_heads * a->head_dim, dims = split_dims(a);
  uint32_t key_groups = nxc_axis(&d->graph->mesh, NXC_AXIS_KV_GROUP);
  nxc_rank_number key_start = nxc_rank_number_of(0);
  nxc_rank_number_stride(&key_start, key_groups, keys);
  const nxc_box boxes[3] = {{NXC_PART_Q, queries, nxc_decoder_divided(d, queries)},
                            {NXC_PART_K, keys, key_start},
                            {NXC_PART_V, keys, key_start}};
  if (a->fused && d->t->layout.kv_replica == 1 && a->qk_norm != NXC_QK_NORM_OF_ALL)
    return fused_heads(d, x, boxes);
  const projection to[3] = {{"q", NXC_PART_Q_NORM, n_heads, dims, d->tensor},
                            {"k", NXC_PART_K_NORM, n_kv_heads, dims, key_groups},
                            {"v", NXC_N_PARTS, n_kv_heads, 0, key_groups}};
  if (d->t->layout.kv_replica > 1 && a->qkv_bias) return copied_heads(d, x, boxes, to);
  nxc_id y[3];
  for (int i = 0; i < 3; i++) {
    nxc_id features = nxc_decoder_column_product(d, to[i].name, x, &boxes[i], 1, to[i].atoms, a->qkv_bias);
    y[i] = split_features(d, features, &to[i]);
  }
  return (heads){y[0], y[1], y[2]};
}

/* ---- latent attention ---- */

typedef struct narrow {
  const char *name;
  nxc_part part;
  int64_t rows;
} narrow;

enum { MOST_NARROW = 2 };

/* Products that all tensor-parallel ranks have whole, of the stream as it lies between their regions. Weights
 * and biases are declared apart, because parts of one tensor of a checkpoint stand together. */
static void down(const nxc_decoder *d, nxc_id x, const narrow *to, uint32_t n, nxc_id *y) {
  nxc_graph *graph = d->graph;
  nxc_id weights[MOST_NARROW], biases[MOST_NARROW] = {0};
  for (uint32_t i = 0; i < n; i++) {
    const nxc_box box = {to[i].part, to[i].rows, nxc_rank_number_of(0)};
    const char *name = nxc_arena_printf(graph->arena, "%s_weight", to[i].name);
    weights[i] = nxc_parameter_rows(graph, d->t, name, &box, 1, d->t->model.hidden, 0);
  }
  for (uint32_t i = 0; i < n && d->layer->attention.qkv_bias; i++) {
    const nxc_box box = {to[i].part, to[i].rows, nxc_rank_number_of(0)};
    biases[i] =
        nxc_parameter_bias(graph, d->t, nxc_arena_printf(graph->arena, "%s_bias", to[i].name), &box, 1, 0);
  }
  for (uint32_t i = 0; i < n; i++) {
    const nxc_box box = {to[i].part, to[i].rows, nxc_rank_number_of(0)};
    y[i] = nxc_decoder_matrix_product(d, to[i].part, to[i].name, x, weights[i], biases[i]);
    y[i] = nxc_adapters_of_columns(d, x, y[i], &box, 1, 0);
  }
}

static nxc_id normed_latent(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name) {
  const nxc_norm_spec *norm = &d->layer->attention.latent_norm;
  if (norm->kind != NULL) x = nxc_decoder_norm(d, x, part, norm, name, d->graph->types.activation);
  return nxc_decoder_enter_region(d, x);
}

/* The heads of this rank, from what enters the region. */
static nxc_id up(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name, int64_t rows) {
  const nxc_box box = {part, rows, nxc_decoder_divided(d, rows)};
  return nxc_decoder_column_product(d, name, x, &box, 1, d->tensor, false);
}

static nxc_id latent_queries(const nxc_decoder *d, nxc_id x) {
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t rows = local_heads(d) * a->head_dim;
  if (a->query_rank == 0) return up(d, nxc_decoder_enter_region(d, x), NXC_PART_Q, "q", rows);
  const narrow query = {"q_down", NXC_PART_Q_DOWN, a->query_rank};
  nxc_id latent;
  down(d, x, &query, 1, &latent);
  return up(d, normed_latent(d, latent, NXC_PART_Q_LATENT_NORM, "q_latent"), NXC_PART_Q_UP, "q_up", rows);
}

/* Keys and values of a latent, beside which the stream gives all heads of keys the same rotated features. */
static heads latent_heads(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t n_heads = local_heads(d), plain = a->head_dim - a->shared_dim;
  nxc_rope_spec query_rope = a->rope;
  query_rope.start = plain;
  nxc_op_request split_q = {.op = NX_OP_split_heads,
                            .name = "q_heads",
                            .in = {latent_queries(d, x), graph->positions, graph->frequencies},
                            .attrs = {[NX_split_heads_heads] = nxc_integer(n_heads)}};
  rope_attributes(split_q.attrs + NX_split_heads_rotary_dims, &query_rope, a->rope.dims);
  const narrow keys[2] = {{"kv_down", NXC_PART_KV_DOWN, a->kv_rank},
                          {"rope_key", NXC_PART_ROPE_KEY, a->shared_dim}};
  nxc_id narrowed[2];
  down(d, x, keys, 2, narrowed);
  nxc_id latent = normed_latent(d, narrowed[0], NXC_PART_KV_LATENT_NORM, "kv_latent");
  nxc_id shared = nxc_decoder_enter_region(d, narrowed[1]);
  nxc_id kv = up(d, latent, NXC_PART_KV_UP, "kv_up", n_heads * (plain + a->value_dim));
  nxc_op_request split_kv = {.op = NX_OP_split_latent,
                             .in = {kv, shared, graph->positions, graph->frequencies},
                             .attrs = {[NX_split_latent_heads] = nxc_integer(n_heads),
                                       [NX_split_latent_values] = nxc_integer(a->value_dim),
                                       [NX_split_latent_shared] = nxc_integer(a->shared_dim)}};
  rope_attributes(split_kv.attrs + NX_split_latent_rotary_dims, &a->rope, a->rope.dims);
  nxc_id q = nxc_append(graph, &split_q), k = nxc_append(graph, &split_kv);
  return (heads){q, k, nxc_last_output(graph, 1)};
}

/* x is in the tensor-parallel region, but for latent attention, which enters it later. */
static heads normed_heads(const nxc_decoder *d, nxc_id x) {
  if (d->layer->attention.kv_rank > 0) return latent_heads(d, x);
  heads h = make_heads(d, x);
  if (d->layer->attention.qk_norm != NXC_QK_NORM_OF_HEAD) return h;
  h.q = norm_of_heads(d, h.q, NXC_PART_Q_NORM, "q");
  h.k = norm_of_heads(d, h.k, NXC_PART_K_NORM, "k");
  return h;
}

/* What is read, times the sigmoids of gates that the layer's input gives. */
static nxc_id gated(const nxc_decoder *d, nxc_id x, nxc_id o) {
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t rows = a->gates / d->t->layout.tensor;
  if (rows == 0) return o;
  const nxc_box box = {NXC_PART_ATTENTION_GATE, rows, nxc_decoder_divided(d, rows)};
  nxc_id gates = nxc_decoder_column_product(d, "attention_gate", x, &box, 1, d->tensor, a->qkv_bias);
  return nxc_append(d->graph,
                    &(nxc_op_request){.op = NX_OP_row_gate, .name = "o_gated", .in = {o, gates}});
}

/* The sinks of the tensor-parallel rank's heads; attention has some of them where others have the rest of its
 * tokens. */
static nxc_id with_sinks(const nxc_decoder *d, nxc_id o, nxc_id lse) {
  nxc_rank_number first = nxc_rank_number_of(0);
  nxc_context_first_head(d->graph, &first, local_heads(d));
  nxc_id sinks = nxc_parameter_sinks(d->graph, d->t, local_heads(d));
  return nxc_append(
      d->graph, &(nxc_op_request){.op = NX_OP_attention_sink,
                                  .name = "o_sunk",
                                  .in = {o, lse, sinks},
                                  .attrs = {[NX_attention_sink_first] = nxc_attribute(d->graph, &first)}});
}

/* One table for all layers. */
static nxc_id biases(const nxc_decoder *d) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  if (graph->relative == 0)
    graph->relative = nxc_parameter_relative(graph, d->t, a->relative.buckets, a->heads);
  return graph->relative;
}

/* Which operator it is, and what it reads and knows beside plain attention. Returns how many inputs it has.
 */
static uint32_t choose_form(const nxc_decoder *d, nxc_op_request *request) {
  const nxc_attention_spec *a = &d->layer->attention;
  request->op = NX_OP_attention;
  if (a->relative.buckets > 0) {
    request->op = NX_OP_attention_relative;
    request->in[4] = biases(d);
    request->attrs[NX_attention_relative_max_distance] = nxc_integer(a->relative.max_distance);
    request->attrs[NX_attention_relative_factor] = nxc_real(a->relative.factor);
  } else if (a->sparse != NXC_SPARSE_NONE) {
    request->op = NX_OP_attention_sparse;
    request->in[4] = d->graph->blocks[a->sparse];
    request->attrs[NX_attention_sparse_block] = nxc_integer(d->t->model.sparsity.block);
    request->attrs[NX_attention_sparse_places] = nxc_integer(d->t->model.sequence);
    request->attrs[NX_attention_dropout] = nxc_real(0);
  }
  return request->in[4] ? 5 : 4;
}

/* Sparse attention drops of what it makes, not of its weights. */
static nxc_id drop_features(const nxc_decoder *d, nxc_id o, int64_t width) {
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_rank_number first_feature = nxc_decoder_divided(d, width);
  double probability = a->sparse == NXC_SPARSE_NONE ? 0 : a->dropout;
  return nxc_decoder_dropout(d, o, probability, NXC_KEY_ATTENTION, nxc_rank_number_of(0), &first_feature);
}

nxc_id nxc_attention_layer(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  if (a->kv_rank == 0) x = nxc_decoder_enter_region(d, x);
  heads h = normed_heads(d, x);
  int64_t n_heads = local_heads(d), width = n_heads * a->value_dim;
  nxc_rank_number first_head = nxc_decoder_divided(d, n_heads);
  nxc_rank_number number = nxc_rank_number_layer(graph, 1, a->layer_scaling ? 1 : 0, graph->layer);
  if (!a->layer_scaling) number = nxc_rank_number_of(1);
  nxc_context_first_head(graph, &first_head, n_heads);
  nxc_op_request request = {
      .name = "o",
      .in = {nxc_context_gather(graph, h.q, "q_whole"), nxc_context_gather(graph, h.k, "k_whole"),
             nxc_context_gather(graph, h.v, "v_whole"), graph->samples},
      .attrs = {[NX_attention_scale] = nxc_real(a->scale),
                [NX_attention_layer_number] = nxc_attribute(graph, &number),
                [NX_attention_dropout] = nxc_real(a->dropout),
                [NX_attention_tensor_id] = nxc_decoder_dropout_key(graph, NXC_KEY_ATTENTION),
                [NX_attention_head_start] = nxc_attribute(graph, &first_head),
                [NX_attention_window] = nxc_integer(a->window),
                [NX_attention_soft_cap] = nxc_real(a->soft_cap),
                [NX_attention_alibi_heads] = nxc_integer(a->alibi ? a->heads : 0)},
      .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_RING)};
  uint32_t n_in = choose_form(d, &request);
  if (graph->starts) {
    request.in[n_in] = request.in[n_in + 1] = graph->place_rows[0];
    request.in[n_in + 2] = graph->starts;
  }
  nxc_id read = nxc_append(graph, &request);
  nxc_id o =
      nxc_context_scatter(graph, a->sinks ? with_sinks(d, read, nxc_last_output(graph, 1)) : read, "o_own");
  const nxc_box box = {NXC_PART_O, width, nxc_decoder_divided(d, width)};
  return nxc_decoder_row_product(d, gated(d, x, drop_features(d, o, width)), &box, a->output_bias);
}
