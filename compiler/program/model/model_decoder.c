/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/model_decoder.h"

#include "compiler/program/model/activation.h"
#include "compiler/program/model/context.h"
#include "compiler/program/model/moe_layer.h"
#include "compiler/program/model/parameters.h"
#include "compiler/program/pipeline/pipeline.h"

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
  const nxc_layer_spec *layer; /* that is built; NULL before and after the layers */
  int64_t vocab, sequence;     /* of one rank */
  uint32_t tensor;             /* axis */
  nxc_id table;                /* the embedding, in the first chunk */
} decoder;

static void enter(decoder *d, int32_t layer, const char *module) {
  nxc_graph *graph = d->graph;
  graph->layer = layer;
  d->layer = layer < 0 ? NULL : nxc_model_layer(&d->t->model, layer);
  graph->origin = layer < 0 ? module : nxc_arena_printf(graph->arena, "layers.%d.%s", layer, module);
  graph->weights_layer = (int32_t)nxc_model_weights_of(&d->t->model, layer);
  graph->weights_origin = graph->origin;
  if (graph->weights_layer != layer)
    graph->weights_origin = nxc_arena_printf(graph->arena, "layers.%d.%s", graph->weights_layer, module);
}

static nxc_rank_number divided(const decoder *d, int64_t unit) {
  return nxc_rank_number_tensor(d->graph, 0, unit);
}

/* First local token between tensor-parallel regions, among those of the context rank. */
static nxc_rank_number sequence_start(const decoder *d) {
  return divided(d, d->t->layout.sequence_parallel ? d->sequence : 0);
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
  nxc_id places = d->t->layout.context > 1 ? graph->place_rows[0] : 0;
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
  if (d->t->layout.sequence_parallel) {
    request.op = NX_OP_reduce_scatter;
    request.attrs[NX_reduce_scatter_axis] = nxc_integer(1);
  }
  return nxc_append(graph, &request);
}

static nxc_id enter_region(const decoder *d, nxc_id x) {
  if (!d->t->layout.sequence_parallel) return x;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                                .name = "whole",
                                                .in = {x},
                                                .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                                .group_atoms = d->tensor});
}

static nxc_id norm(const decoder *d, nxc_id x, nxc_part part, const nxc_norm_spec *spec) {
  const nxc_training *t = d->t;
  nxc_id gain = nxc_parameter_norm(d->graph, t, "weight", part, false);
  nxc_id bias = spec->bias ? nxc_parameter_norm(d->graph, t, "bias", part, true) : 0;
  return nxc_append(d->graph, &(nxc_op_request){.op = spec->kind->op,
                                                .name = "y",
                                                .in = {x, gain, bias},
                                                .attrs = {nxc_real(spec->epsilon)}});
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
                                     n_boxes, d->t->model.hidden, atoms);
  nxc_id bias = with_bias ? nxc_parameter_bias(graph, d->t, bias_name, boxes, n_boxes, atoms) : 0;
  return product(d, name, x, weight, bias);
}

/* A product whose inputs are divided over tensor. Its bias is added once, after the sum over the ranks. */
static nxc_id row_product(const decoder *d, nxc_id x, const nxc_box *box, bool with_bias) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  nxc_id weight = nxc_parameter_columns(graph, t, "out_weight", box, t->model.hidden, d->tensor);
  nxc_id bias = 0;
  if (with_bias) {
    const nxc_box whole = {box->part, t->model.hidden, nxc_rank_number_of(0)};
    bias = nxc_parameter_bias(graph, t, "out_bias", &whole, 1, 0);
  }
  bool summed = d->tensor != 0;
  nxc_id y = leave_region(d, product(d, "out", x, weight, summed ? 0 : bias));
  if (!summed || bias == 0) return y;
  return nxc_append(graph, &(nxc_op_request){.op = NX_OP_bias_add, .name = "biased", .in = {y, bias}});
}

static nxc_id residual(const decoder *d, nxc_id x, nxc_id y, int key) {
  const nxc_rank_number none = nxc_rank_number_of(0);
  y = dropout(d, y, d->layer->dropout, key, sequence_start(d), &none);
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_add, .name = "residual", .in = {x, y}});
}

static int64_t local_heads(const decoder *d) {
  return d->layer->attention.heads / d->t->layout.tensor;
}

static int64_t local_kv_heads(const decoder *d) {
  return d->layer->attention.kv_heads * d->t->layout.kv_replica / d->t->layout.tensor;
}

typedef struct heads {
  nxc_id q, k, v;
} heads;

/* Queries, keys and values from one product; not where key heads are copied, since then the gradients of keys
 * and values are summed over other ranks than those of queries. */
static heads fused_heads(const decoder *d, nxc_id x, const nxc_box boxes[3]) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id qkv = column_product(d, "qkv", x, boxes, 3, d->tensor, a->qkv_bias);
  nxc_append(graph,
             &(nxc_op_request){
                 .op = NX_OP_split_qkv,
                 .in = {qkv, graph->positions},
                 .attrs = {[NX_split_qkv_heads] = nxc_integer(local_heads(d)),
                           [NX_split_qkv_kv_heads] = nxc_integer(local_kv_heads(d)),
                           [NX_split_qkv_rotary_dims] = nxc_integer(a->rope.dims),
                           [NX_split_qkv_theta] = nxc_real(a->rope.theta),
                           [NX_split_qkv_scaling] = nxc_integer(a->rope.scaling),
                           [NX_split_qkv_factor] = nxc_real(a->rope.factor),
                           [NX_split_qkv_low_freq_factor] = nxc_real(a->rope.low_freq_factor),
                           [NX_split_qkv_high_freq_factor] = nxc_real(a->rope.high_freq_factor),
                           [NX_split_qkv_original_positions] = nxc_integer(a->rope.original_positions)}});
  return (heads){nxc_last_output(graph, 0), nxc_last_output(graph, 1), nxc_last_output(graph, 2)};
}

static nxc_id separate_heads(const decoder *d, nxc_id x, const char *name, const nxc_box *box,
                             int64_t n_heads, uint32_t atoms, int64_t rotary_dims) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id features = column_product(d, name, x, box, 1, atoms, a->qkv_bias);
  return nxc_append(
      graph, &(nxc_op_request){
                 .op = NX_OP_split_heads,
                 .name = nxc_arena_printf(graph->arena, "%s_heads", name),
                 .in = {features, graph->positions},
                 .attrs = {[NX_split_heads_heads] = nxc_integer(n_heads),
                           [NX_split_heads_rotary_dims] = nxc_integer(rotary_dims),
                           [NX_split_heads_theta] = nxc_real(a->rope.theta),
                           [NX_split_heads_scaling] = nxc_integer(a->rope.scaling),
                           [NX_split_heads_factor] = nxc_real(a->rope.factor),
                           [NX_split_heads_low_freq_factor] = nxc_real(a->rope.low_freq_factor),
                           [NX_split_heads_high_freq_factor] = nxc_real(a->rope.high_freq_factor),
                           [NX_split_heads_original_positions] = nxc_integer(a->rope.original_positions)}});
}

static heads make_heads(const decoder *d, nxc_id x) {
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t n_heads = local_heads(d), n_kv_heads = local_kv_heads(d);
  int64_t queries = n_heads * a->head_dim, keys = n_kv_heads * a->head_dim;
  uint32_t key_groups = nxc_axis(&d->graph->mesh, NXC_AXIS_KV_GROUP);
  nxc_rank_number key_start = nxc_rank_number_of(0);
  nxc_rank_number_stride(&key_start, key_groups, keys);
  const nxc_box boxes[3] = {{NXC_PART_Q, queries, divided(d, queries)},
                            {NXC_PART_K, keys, key_start},
                            {NXC_PART_V, keys, key_start}};
  if (a->fused && d->t->layout.kv_replica == 1) return fused_heads(d, x, boxes);
  return (heads){separate_heads(d, x, "q", &boxes[0], n_heads, d->tensor, a->rope.dims),
                 separate_heads(d, x, "k", &boxes[1], n_kv_heads, key_groups, a->rope.dims),
                 separate_heads(d, x, "v", &boxes[2], n_kv_heads, key_groups, 0)};
}

static nxc_id attention(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  heads h = make_heads(d, x);
  int64_t n_heads = local_heads(d), width = n_heads * a->head_dim;
  nxc_rank_number first_head = divided(d, n_heads);
  nxc_rank_number number = nxc_rank_number_layer(graph, 1, a->layer_scaling ? 1 : 0, graph->layer);
  if (!a->layer_scaling) number = nxc_rank_number_of(1);
  nxc_context_first_head(graph, &first_head, n_heads);
  nxc_op_request request = {.op = NX_OP_attention,
                            .name = "o",
                            .in = {nxc_context_gather(graph, h.q, "q_whole"),
                                   nxc_context_gather(graph, h.k, "k_whole"),
                                   nxc_context_gather(graph, h.v, "v_whole"), graph->samples},
                            .attrs = {[NX_attention_scale] = nxc_real(a->scale),
                                      [NX_attention_layer_number] = nxc_attribute(graph, &number),
                                      [NX_attention_dropout] = nxc_real(a->dropout),
                                      [NX_attention_tensor_id] = dropout_key(graph, KEY_ATTENTION),
                                      [NX_attention_head_start] = nxc_attribute(graph, &first_head)},
                            .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_RING)};
  if (graph->starts) {
    request.in[4] = request.in[5] = graph->place_rows[0];
    request.in[6] = graph->starts;
  }
  nxc_id o = nxc_context_scatter(graph, nxc_append(graph, &request), "o_own");
  const nxc_box box = {NXC_PART_O, width, divided(d, width)};
  return row_product(d, o, &box, a->output_bias);
}

/* A dense network of this width, of three parts: gate, up and down. */
static nxc_id dense(const decoder *d, nxc_id x, nxc_part first, int64_t width, const char *name) {
  nxc_graph *graph = d->graph;
  const nxc_feed_forward_spec *ffn = &d->layer->ffn;
  bool gated = ffn->activation->gated;
  const nxc_box boxes[2] = {{first, width, divided(d, width)}, {first + 1, width, divided(d, width)}};
  nxc_id up = column_product(d, name, x, gated ? boxes : boxes + 1, gated ? 2 : 1, d->tensor, ffn->bias);
  nxc_id y = nxc_activation_append(graph, ffn->activation, "activation", up);
  nxc_rank_number first_feature = divided(d, width);
  y = dropout(d, y, ffn->dropout, KEY_FFN, nxc_rank_number_of(0), &first_feature);
  const nxc_box box = {first + 2, width, first_feature};
  return row_product(d, y, &box, ffn->bias);
}

/* x is between tensor-parallel regions. */
static nxc_id feed_forward(const decoder *d, nxc_id x) {
  const nxc_feed_forward_spec *ffn = &d->layer->ffn;
  const nxc_mixture *mixture = ffn->mixture;
  int64_t tensor = d->t->layout.tensor;
  if (mixture == NULL) return dense(d, enter_region(d, x), NXC_PART_GATE, ffn->width / tensor, "up");
  nxc_id y = nxc_moe_layer(d->graph, d->t, ffn, x);
  if (mixture->shared_hidden == 0) return y;
  int64_t width = mixture->shared_hidden / tensor;
  nxc_id shared = dense(d, enter_region(d, x), NXC_PART_SHARED_GATE, width, "shared_up");
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_add, .name = "with_shared", .in = {y, shared}});
}

static nxc_id embed(decoder *d) {
  nxc_graph *graph = d->graph;
  const nxc_training *t = d->t;
  const nxc_rank_number none = nxc_rank_number_of(0);
  const nxc_box rows = {NXC_PART_EMBEDDING, d->vocab, divided(d, d->vocab)};
  enter(d, -1, "embedding");
  d->table = nxc_parameter_rows(graph, t, "weight", &rows, 1, t->model.hidden, d->tensor);
  if (t->model.tied && !graph->is_last) nxc_parameter_share(graph, d->table, graph->pipeline->ends);
  nxc_id x = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_embedding,
                               .name = "x",
                               .in = {graph->tokens, d->table},
                               .attrs = {[NX_embedding_row_start] = nxc_attribute(graph, &rows.start)}});
  x = leave_region(d, x);
  if (t->model.learned_positions) {
    const nxc_box positions = {NXC_PART_POSITIONS, t->model.learned_positions, none};
    const nxc_rank_number start = sequence_start(d);
    nxc_id table = nxc_parameter_rows(graph, t, "positions", &positions, 1, t->model.hidden, 0);
    x = nxc_append(graph,
                   &(nxc_op_request){.op = NX_OP_position_add,
                                     .name = "placed",
                                     .in = {x, table, graph->positions},
                                     .attrs = {[NX_position_add_seq_start] = nxc_attribute(graph, &start)}});
  }
  return dropout(d, x, t->model.embedding_dropout, KEY_ATTENTION_OUTPUT, sequence_start(d), &none);
}

/* How many of a rank's columns are words: all, none, or some on one rank. */
static nxc_rank_number valid_columns(const decoder *d) {
  if (d->t->model.vocab == d->t->model.vocab_padded) return nxc_rank_number_of(d->vocab);
  int64_t *words = nxc_arena_array(d->graph->arena, d->t->layout.tensor, sizeof *words);
  for (uint32_t rank = 0; rank < d->t->layout.tensor; rank++) {
    int64_t rest = d->t->model.vocab - rank * d->vocab;
    words[rank] = rest < 0 ? 0 : rest > d->vocab ? d->vocab : rest;
  }
  nxc_rank_number number = nxc_rank_number_of(0);
  nxc_rank_number_table(d->graph, &number, d->tensor, words, false);
  return number;
}

static nxc_id logits(const decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  nxc_id table = d->table;
  bool tied = d->t->model.tied;
  if (tied && graph->is_first) graph->tied = table;
  if (!tied || !graph->is_first) {
    const nxc_box rows = {tied ? NXC_PART_EMBEDDING : NXC_PART_OUTPUT, d->vocab, divided(d, d->vocab)};
    table = nxc_parameter_rows(graph, d->t, "weight", &rows, 1, d->t->model.hidden, d->tensor);
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
  nxc_shape tokens = nxc_shape_of(NX_i32, 2, (int64_t[]){t->batch.micro, nxc_context_tokens(t)});
  nxc_shape samples = nxc_shape_of(NX_i64, 1, (int64_t[]){t->batch.micro});
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
                                 (int64_t[]){d->t->batch.micro, d->sequence, d->t->model.hidden});
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  nxc_place(&shape.place, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_SPLIT + 1);
  if (d->t->layout.sequence_parallel) nxc_place(&shape.place, d->tensor, NXC_SPLIT + 1);
  const char *name = port == NX_PORT_INPUT ? "chunk.input" : "chunk.output.grad";
  graph->ports[port] = nxc_value_new(graph, name, NXC_ROLE_ACTIVATION, &shape);
  return graph->ports[port];
}

void nxc_model_decoder(nxc_graph *graph, const nxc_training *t) {
  decoder d = {.graph = graph,
               .t = t,
               .tensor = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR),
               .vocab = t->model.vocab_padded / t->layout.tensor,
               .sequence = nxc_context_tokens(t) / (t->layout.sequence_parallel ? t->layout.tensor : 1)};
  inputs(graph, t);
  nxc_id x = graph->is_first ? embed(&d) : receive(&d, NX_PORT_INPUT);
  for (int32_t layer = graph->first_layer; layer < graph->first_layer + graph->n_layers; layer++) {
    enter(&d, layer, "attention_norm");
    nxc_id y = norm(&d, x, NXC_PART_ATTENTION_NORM, &d.layer->norm);
    enter(&d, layer, "attention");
    x = residual(&d, x, attention(&d, enter_region(&d, y)), KEY_ATTENTION_OUTPUT);
    enter(&d, layer, "ffn_norm");
    y = norm(&d, x, NXC_PART_FFN_NORM, &d.layer->norm);
    enter(&d, layer, "ffn");
    x = residual(&d, x, feed_forward(&d, y), KEY_FFN_OUTPUT);
  }
  if (!graph->is_last) {
    graph->ports[NX_PORT_OUTPUT] = x;
    receive(&d, NX_PORT_OUTPUT_GRADIENT);
    return;
  }
  enter(&d, -1, "final_norm");
  x = norm(&d, x, NXC_PART_FINAL_NORM, &t->model.final_norm);
  enter(&d, -1, "output");
  loss(&d, logits(&d, x));
}
