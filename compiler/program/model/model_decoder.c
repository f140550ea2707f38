/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/model_decoder.h"

#include "compiler/program/model/context.h"
#include "compiler/program/model/moe_layer.h"
#include "compiler/program/model/parameters.h"
#include "compiler/program/pipeline.h"

#include <math.h>

/* Keys of dropout masks: a block of the layer's, then which of its masks. Above every tensor's key. */
enum {
  KEY_DROPOUT = 1 << 30,
  KEY_ATTENTION = 0,
  KEY_ATTENTION_OUTPUT,
  KEY_FFN,
  KEY_FFN_OUTPUT,
  KEYS_PER_LAYER
};

typedef struct decoder {
  nxc_graph *graph;
  const nxc_training *t;
  int64_t heads, kv_heads, ffn, vocab, sequence; /* of one rank */
  uint32_t tensor;                               /* axis */
  nxc_id table;                                  /* the embedding, in the first chunk */
} decoder;

static void enter(decoder *d, int32_t layer, const char *module) {
  nxc_graph *graph = d->graph;
  graph->layer = layer;
  graph->origin = layer < 0 ? module : nxc_arena_printf(graph->arena, "layers.%d.%s", layer, module);
  graph->weights_layer = (int32_t)nxc_training_weights_of(d->t, layer);
  graph->weights_origin = graph->origin;
  if (graph->weights_layer != layer)
    graph->weights_origin = nxc_arena_printf(graph->arena, "layers.%d.%s", graph->weights_layer, module);
}

static nxc_rank_number divided(const decoder *d, int64_t unit) {
  return nxc_rank_number_tensor(d->graph, 0, unit);
}

/* First local token between tensor-parallel regions, among those of the context rank. */
static nxc_rank_number sequence_start(const decoder *d) {
  return divided(d, d->t->sequence_parallel ? d->sequence : 0);
}

/* The key of a mask of this layer, or of the embedding. */
static nx_attribute dropout_key(nxc_graph *graph, int key) {
  if (graph->layer < 0) return nxc_integer(KEY_DROPOUT + key);
  const nxc_rank_number number =
      nxc_rank_number_layer(graph, KEY_DROPOUT + KEYS_PER_LAYER + key, KEYS_PER_LAYER, graph->layer);
  return nxc_attribute(graph, &number);
}

static nxc_id dropout(const decoder *d, nxc_id x, double probability, int key, nxc_rank_number first_token,
                      const nxc_rank_number *first_feature) {
  if (probability <= 0) return x;
  nxc_graph *graph = d->graph;
  nx_attribute id = dropout_key(graph, key);
  nxc_id places = d->t->context > 1 ? graph->place_rows[0] : 0;
  nxc_context_first_token(graph, d->t, &first_token);
  return nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_dropout,
                               .name = "dropout",
                               .in = {x, graph->samples, places},
                               .attrs = {[NX_dropout_probability] = nxc_real(probability),
                                         [NX_dropout_tensor_id] = id,
                                         [NX_dropout_seq_start] = nxc_attribute(graph, &first_token),
                                         [NX_dropout_feature_start] = nxc_attribute(graph, first_feature)}});
}

/* Sums what is partial over tensor; between tensor-parallel regions the sequence may be divided. */
static nxc_id leave_region(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  uint32_t partial = nxc_placed(&graph->values[x].shape.place, NXC_PARTIAL);
  if (partial == 0) return x;
  nxc_op_request request = {.op = NX_OP_all_reduce,
                            .name = "sum",
                            .in = {x},
                            .dtype = graph->types.activation,
                            .group_atoms = partial};
  if (d->t->sequence_parallel) {
    request.op = NX_OP_reduce_scatter;
    request.attrs[NX_reduce_scatter_axis] = nxc_integer(1);
  }
  return nxc_append(graph, &request);
}

static nxc_id enter_region(const decoder *d, nxc_id x) {
  if (!d->t->sequence_parallel) return x;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                                .name = "whole",
                                                .in = {x},
                                                .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                                .group_atoms = d->tensor});
}

static nxc_id norm(const decoder *d, nxc_id x, nxc_part part) {
  const nxc_training *t = d->t;
  nxc_id gain = nxc_parameter_norm(d->graph, t, "weight", part, false);
  nxc_id bias = t->norm_bias ? nxc_parameter_norm(d->graph, t, "bias", part, true) : 0;
  return nxc_append(d->graph, &(nxc_op_request){.op = t->rms_norm ? NX_OP_rms_norm : NX_OP_layer_norm,
                                                .name = "y",
                                                .in = {x, gain, bias},
                                                .attrs = {nxc_real(t->norm_epsilon)}});
}

static nxc_id product(const decoder *d, const char *name, nxc_id x, nxc_id weight, nxc_id bias) {
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                .name = name,
                                                .in = {x, weight, bias},
                                                .attrs = {[NX_matmul_trans_b] = nxc_integer(1)}});
}

/* A product whose outputs are divided over `atoms`. */
static nxc_id column_product(const decoder *d, const char *name, nxc_id x, const nxc_box *boxes,
                             uint32_t n_boxes, uint32_t atoms, bool with_bias) {
  nxc_graph *graph = d->graph;
  const char *bias_name = nxc_arena_printf(graph->arena, "%s_bias", name);
  nxc_id weight = nxc_parameter_rows(graph, d->t, nxc_arena_printf(graph->arena, "%s_weight", name), boxes,
                                     n_boxes, d->t->hidden, atoms);
  nxc_id bias = with_bias ? nxc_parameter_bias(graph, d->t, bias_name, boxes, n_boxes, atoms) : 0;
  return product(d, name, x, weight, bias);
}

/* A product whose inputs are divided over tensor. Its bias is added once, after the sum over the ranks. */
static nxc_id row_product(const decoder *d, nxc_id x, const nxc_box *box) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  nxc_id weight = nxc_parameter_columns(graph, t, "out_weight", box, t->hidden, d->tensor);
  nxc_id bias = 0;
  if (t->bias) {
    const nxc_box whole = {box->part, t->hidden, nxc_rank_number_of(0)};
    bias = nxc_parameter_bias(graph, t, "out_bias", &whole, 1, 0);
  }
  bool summed = d->tensor != 0;
  nxc_id y = leave_region(d, product(d, "out", x, weight, summed ? 0 : bias));
  if (!summed || bias == 0) return y;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_bias_add, .name = "biased", .in = {y, bias}});
}

static nxc_id residual(const decoder *d, nxc_id x, nxc_id y, int key) {
  const nxc_rank_number none = nxc_rank_number_of(0);
  y = dropout(d, y, d->t->hidden_dropout, key, sequence_start(d), &none);
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_add, .name = "residual", .in = {x, y}});
}

typedef struct heads {
  nxc_id q, k, v;
} heads;

/* Queries, keys and values from one product; not where key heads are copied, since then the gradients of keys
 * and values are summed over other ranks than those of queries. */
static heads fused_heads(const decoder *d, nxc_id x, const nxc_box boxes[3]) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  nxc_id qkv = column_product(d, "qkv", x, boxes, 3, d->tensor, t->qkv_bias);
  nxc_append(graph,
             &(nxc_op_request){
                 .op = NX_OP_split_qkv,
                 .in = {qkv, graph->positions},
                 .attrs = {[NX_split_qkv_heads] = nxc_integer(d->heads),
                           [NX_split_qkv_kv_heads] = nxc_integer(d->kv_heads),
                           [NX_split_qkv_rotary_dims] = nxc_integer(t->rotary_dims),
                           [NX_split_qkv_theta] = nxc_real(t->rope_theta),
                           [NX_split_qkv_scaling] = nxc_integer(t->rope_scaling),
                           [NX_split_qkv_factor] = nxc_real(t->rope_factor),
                           [NX_split_qkv_low_freq_factor] = nxc_real(t->rope_low_freq_factor),
                           [NX_split_qkv_high_freq_factor] = nxc_real(t->rope_high_freq_factor),
                           [NX_split_qkv_original_positions] = nxc_integer(t->rope_original_positions)}});
  return (heads){nxc_last_output(graph, 0), nxc_last_output(graph, 1), nxc_last_output(graph, 2)};
}

static nxc_id separate_heads(const decoder *d, nxc_id x, const char *name, const nxc_box *box,
                             int64_t n_heads, uint32_t atoms, int64_t rotary_dims) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  nxc_id features = column_product(d, name, x, box, 1, atoms, t->qkv_bias);
  return nxc_append(
      graph, &(nxc_op_request){
                 .op = NX_OP_split_heads,
                 .name = nxc_arena_printf(graph->arena, "%s_heads", name),
                 .in = {features, graph->positions},
                 .attrs = {[NX_split_heads_heads] = nxc_integer(n_heads),
                           [NX_split_heads_rotary_dims] = nxc_integer(rotary_dims),
                           [NX_split_heads_theta] = nxc_real(t->rope_theta),
                           [NX_split_heads_scaling] = nxc_integer(t->rope_scaling),
                           [NX_split_heads_factor] = nxc_real(t->rope_factor),
                           [NX_split_heads_low_freq_factor] = nxc_real(t->rope_low_freq_factor),
                           [NX_split_heads_high_freq_factor] = nxc_real(t->rope_high_freq_factor),
                           [NX_split_heads_original_positions] = nxc_integer(t->rope_original_positions)}});
}

static heads make_heads(const decoder *d, nxc_id x) {
  const nxc_training *t = d->t;
  int64_t queries = d->heads * t->head_dim, keys = d->kv_heads * t->head_dim;
  uint32_t key_groups = nxc_axis(&d->graph->mesh, NXC_AXIS_KV_GROUP);
  nxc_rank_number key_start = nxc_rank_number_of(0);
  nxc_rank_number_stride(&key_start, key_groups, keys);
  const nxc_box boxes[3] = {{NXC_PART_Q, queries, divided(d, queries)},
                            {NXC_PART_K, keys, key_start},
                            {NXC_PART_V, keys, key_start}};
  if (t->fused_qkv && t->kv_replica == 1) return fused_heads(d, x, boxes);
  return (heads){separate_heads(d, x, "q", &boxes[0], d->heads, d->tensor, t->rotary_dims),
                 separate_heads(d, x, "k", &boxes[1], d->kv_heads, key_groups, t->rotary_dims),
                 separate_heads(d, x, "v", &boxes[2], d->kv_heads, key_groups, 0)};
}

static nxc_id attention(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  heads h = make_heads(d, x);
  nxc_rank_number first_head = divided(d, d->heads);
  nxc_rank_number number = nxc_rank_number_layer(graph, 1, t->qk_layer_scaling ? 1 : 0, graph->layer);
  if (!t->qk_layer_scaling) number = nxc_rank_number_of(1);
  nxc_context_first_head(graph, &first_head, d->heads);
  nxc_op_request request = {.op = NX_OP_attention,
                            .name = "o",
                            .in = {nxc_context_gather(graph, h.q, "q_whole"),
                                   nxc_context_gather(graph, h.k, "k_whole"),
                                   nxc_context_gather(graph, h.v, "v_whole"), graph->samples},
                            .attrs = {[NX_attention_scale] = nxc_real(1 / sqrt((double)t->head_dim)),
                                      [NX_attention_layer_number] = nxc_attribute(graph, &number),
                                      [NX_attention_dropout] = nxc_real(t->attention_dropout),
                                      [NX_attention_tensor_id] = dropout_key(graph, KEY_ATTENTION),
                                      [NX_attention_head_start] = nxc_attribute(graph, &first_head)},
                            .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_RING)};
  if (graph->starts) {
    request.in[4] = request.in[5] = graph->place_rows[0];
    request.in[6] = graph->starts;
  }
  nxc_id o = nxc_context_scatter(graph, nxc_append(graph, &request), "o_own");
  const nxc_box box = {NXC_PART_O, d->heads * t->head_dim, divided(d, d->heads * t->head_dim)};
  return row_product(d, o, &box);
}

/* A dense network of this width, of three parts: gate, up and down. */
static nxc_id dense(const decoder *d, nxc_id x, nxc_part first, int64_t width, const char *name) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  const nxc_box boxes[2] = {{first, width, divided(d, width)}, {first + 1, width, divided(d, width)}};
  nxc_id up =
      column_product(d, name, x, t->swiglu ? boxes : boxes + 1, t->swiglu ? 2 : 1, d->tensor, t->bias);
  nxc_op_request activation = {.op = t->swiglu ? NX_OP_swiglu : NX_OP_gelu, .name = "activation", .in = {up}};
  if (!t->swiglu) activation.attrs[NX_gelu_tanh] = nxc_integer(t->gelu_tanh);
  nxc_id y = nxc_append(graph, &activation);
  nxc_rank_number first_feature = divided(d, width);
  y = dropout(d, y, t->ffn_dropout, KEY_FFN, nxc_rank_number_of(0), &first_feature);
  const nxc_box box = {first + 2, width, first_feature};
  return row_product(d, y, &box);
}

/* x is between tensor-parallel regions. */
static nxc_id feed_forward(const decoder *d, nxc_id x) {
  const nxc_mixture *mixture = &d->t->mixture;
  if (!nxc_mixture_has(mixture, d->graph->layer)) return dense(d, enter_region(d, x), NXC_PART_GATE, d->ffn, "up");
  nxc_id y = nxc_moe_layer(d->graph, d->t, x);
  if (mixture->shared_hidden == 0) return y;
  int64_t width = mixture->shared_hidden / d->t->tensor;
  nxc_id shared = dense(d, enter_region(d, x), NXC_PART_SHARED_GATE, width, "shared_up");
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_add, .name = "with_shared", .in = {y, shared}});
}

static nxc_id embed(decoder *d) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  const nxc_rank_number none = nxc_rank_number_of(0);
  const nxc_box rows = {NXC_PART_EMBEDDING, d->vocab, divided(d, d->vocab)};
  enter(d, -1, "embedding");
  d->table = nxc_parameter_rows(graph, t, "weight", &rows, 1, t->hidden, d->tensor);
  if (t->tied && !graph->is_last) nxc_parameter_share(graph, d->table, graph->pipeline->ends);
  nxc_id x = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_embedding,
                               .name = "x",
                               .in = {graph->tokens, d->table},
                               .attrs = {[NX_embedding_row_start] = nxc_attribute(graph, &rows.start)}});
  x = leave_region(d, x);
  if (t->learned_positions) {
    const nxc_box positions = {NXC_PART_POSITIONS, t->max_positions, none};
    const nxc_rank_number start = sequence_start(d);
    nxc_id table = nxc_parameter_rows(graph, t, "positions", &positions, 1, t->hidden, 0);
    x = nxc_append(graph, &(nxc_op_request){.op = NX_OP_position_add,
                                            .name = "placed",
                                            .in = {x, table, graph->positions},
                                            .attrs = {[NX_position_add_seq_start] = nxc_attribute(graph, &start)}});
  }
  return dropout(d, x, t->hidden_dropout, KEY_ATTENTION_OUTPUT, sequence_start(d), &none);
}

/* How many of a rank's columns are words: all, none, or some on one rank. */
static nxc_rank_number valid_columns(const decoder *d) {
  if (d->t->vocab == d->t->vocab_padded) return nxc_rank_number_of(d->vocab);
  int64_t *words = nxc_arena_array(d->graph->arena, d->t->tensor, sizeof *words);
  for (uint32_t rank = 0; rank < d->t->tensor; rank++) {
    int64_t rest = d->t->vocab - rank * d->vocab;
    words[rank] = rest < 0 ? 0 : rest > d->vocab ? d->vocab : rest;
  }
  nxc_rank_number number = nxc_rank_number_of(0);
  nxc_rank_number_table(d->graph, &number, d->tensor, words, false);
  return number;
}

static nxc_id logits(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  nxc_id table = d->table;
  bool tied = d->t->tied;
  if (tied && graph->is_first) graph->tied = table;
  if (!tied || !graph->is_first) {
    const nxc_box rows = {tied ? NXC_PART_EMBEDDING : NXC_PART_OUTPUT, d->vocab, divided(d, d->vocab)};
    table = nxc_parameter_rows(graph, d->t, "weight", &rows, 1, d->t->hidden, d->tensor);
    if (tied) nxc_parameter_share(graph, table, graph->pipeline->ends);
  }
  return product(d, "logits", enter_region(d, x), table, 0);
}

static nxc_id scalar(nxc_graph *graph, const char *name) {
  const nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){1});
  nxc_id value = nxc_value_new(graph, name, NXC_ROLE_SCALAR, &shape);
  graph->values[value].unplaced = true;
  return value;
}

/* The loss of a step is a sum over its micro-batches. */
static void loss(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  nxc_rank_number row_start = divided(d, d->vocab), n_valid = valid_columns(d);
  nxc_id stats = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_ce_stats,
                               .name = "stats",
                               .in = {x, graph->labels},
                               .attrs = {[NX_ce_stats_row_start] = nxc_attribute(graph, &row_start),
                                         [NX_ce_stats_n_valid] = nxc_attribute(graph, &n_valid)}});
  if (d->tensor)
    stats = nxc_append(graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                                .name = "all_stats",
                                                .in = {stats},
                                                .attrs = {[NX_all_gather_axis] = nxc_integer(0)},
                                                .group_atoms = d->tensor});
  graph->loss = scalar(graph, "loss");
  bool several = graph->n_micro_batches > 1;
  nxc_op_request request = {.op = NX_OP_ce_loss,
                            .in = {stats, graph->weights},
                            .out = {0, graph->loss},
                            .attrs = {[NX_ce_loss_accumulate] = nxc_integer(0)},
                            .when = several ? NX_WHEN_FIRST : NX_WHEN_ALWAYS};
  request.out[0] = nxc_append(graph, &request);
  request.attrs[NX_ce_loss_accumulate] = nxc_integer(1);
  request.when = NX_WHEN_MIDDLE | NX_WHEN_LAST;
  if (several) nxc_append(graph, &request);
}

static void inputs(nxc_graph *graph, const nxc_training *t) {
  nxc_shape tokens = nxc_shape_of(NX_i32, 2, (int64_t[]){t->micro_batch, nxc_context_tokens(t)});
  nxc_shape samples = nxc_shape_of(NX_i64, 1, (int64_t[]){t->micro_batch});
  const nxc_shape step = nxc_shape_of(NX_i64, 1, (int64_t[]){1});
  nxc_place(&tokens.place, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  samples.place = tokens.place;
  nxc_place(&tokens.place, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_SPLIT + 1);
  graph->tokens = nxc_value_new(graph, "tokens", NXC_ROLE_INPUT, &tokens);
  graph->labels = nxc_value_new(graph, "labels", NXC_ROLE_INPUT, &tokens);
  graph->positions = nxc_value_new(graph, "positions", NXC_ROLE_INPUT, &tokens);
  graph->samples = nxc_value_new(graph, "samples", NXC_ROLE_INPUT, &samples);
  graph->step = nxc_value_new(graph, "step", NXC_ROLE_INPUT, &step);
  nxc_context_inputs(graph, t);
}

/* What comes from a neighbouring chunk: residuals, or their gradients. */
static nxc_id receive(const decoder *d, nx_port port) {
  nxc_graph *graph = d->graph;
  nxc_shape shape = nxc_shape_of(graph->types.activation, 3,
                                 (int64_t[]){d->t->micro_batch, d->sequence, d->t->hidden});
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_SPLIT + 1);
  if (d->t->sequence_parallel) nxc_place(&shape.place, d->tensor, NXC_SPLIT + 1);
  const char *name = port == NX_PORT_INPUT ? "chunk.input" : "chunk.output.grad";
  graph->ports[port] = nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
  return graph->ports[port];
}

void nxc_model_decoder(nxc_graph *graph, const nxc_training *t) {
  decoder d = {.graph = graph,
               .t = t,
               .tensor = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR),
               .heads = t->heads / t->tensor,
               .kv_heads = t->kv_heads * t->kv_replica / t->tensor,
               .ffn = t->ffn_hidden / t->tensor,
               .vocab = t->vocab_padded / t->tensor,
               .sequence = nxc_context_tokens(t) / (t->sequence_parallel ? t->tensor : 1)};
  inputs(graph, t);
  nxc_id x = graph->is_first ? embed(&d) : receive(&d, NX_PORT_INPUT);
  for (int32_t layer = graph->first_layer; layer < graph->first_layer + graph->n_layers; layer++) {
    enter(&d, layer, "attention_norm");
    nxc_id y = norm(&d, x, NXC_PART_ATTENTION_NORM);
    enter(&d, layer, "attention");
    x = residual(&d, x, attention(&d, enter_region(&d, y)), KEY_ATTENTION_OUTPUT);
    enter(&d, layer, "ffn_norm");
    y = norm(&d, x, NXC_PART_FFN_NORM);
    enter(&d, layer, "ffn");
    x = residual(&d, x, feed_forward(&d, y), KEY_FFN_OUTPUT);
  }
  if (!graph->is_last) {
    graph->ports[NX_PORT_OUTPUT] = x;
    receive(&d, NX_PORT_OUTPUT_GRADIENT);
    return;
  }
  enter(&d, -1, "final_norm");
  x = norm(&d, x, NXC_PART_FINAL_NORM);
  enter(&d, -1, "output");
  loss(&d, logits(&d, x));
}
