/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/model_decoder.h"
#include "compiler/program/model/losses.h"

#include "compiler/program/model/activation.h"
#include "compiler/program/model/adapters.h"
#include "compiler/program/model/attention_layer.h"
#include "compiler/program/model/context.h"
#include "compiler/program/model/moe_layer.h"
#include "compiler/program/model/moe_route.h"
#include "compiler/program/pipeline/pipeline.h"
#include "compiler/program/pipeline/ports.h"

static nxc_id residual(const nxc_decoder *d, nxc_id x, nxc_id y, int key) {
  const nxc_rank_number none = nxc_rank_number_of(0);
  y = nxc_decoder_dropout(d, y, d->layer->dropout, key, nxc_decoder_first_token(d), &none);
  return nxc_append(
      d->graph, &(nxc_op_request){
                    .op = NX_OP_add, .name = "residual", .in = {x, y}, .dtype = d->graph->types.residual});
}

/* A dense network of this width, of three parts: gate, up and down. */
static nxc_id dense(const nxc_decoder *d, nxc_id x, nxc_part first, int64_t width, const char *name) {
  nxc_graph *graph = d->graph;
  const nxc_feed_forward_spec *ffn = &d->layer->ffn;
  bool gated = ffn->activation->gated;
  const nxc_box boxes[2] = {{first, width, nxc_decoder_divided(d, width)},
                            {first + 1, width, nxc_decoder_divided(d, width)}};
  nxc_id up =
      nxc_decoder_column_product(d, name, x, gated ? boxes : boxes + 1, gated ? 2 : 1, d->tensor, ffn->bias);
  nxc_id y = nxc_activation_append(graph, ffn->activation, false, "activation", up);
  nxc_rank_number first_feature = nxc_decoder_divided(d, width);
  y = nxc_decoder_dropout(d, y, ffn->dropout, NXC_KEY_FFN, nxc_rank_number_of(0), &first_feature);
  if (d->layer->norm_within)
    y = nxc_decoder_norm_of_features(d, y, NXC_PART_FFN_INNER_NORM, "inner_norm", d->tensor);
  const nxc_box box = {first + 2, width, first_feature};
  bool experts_first = ffn->mixture && ffn->mixture->biases == NXC_BIASES_OF_FIRST;
  return nxc_decoder_row_product(d, y, &box, ffn->bias && !experts_first);
}

/* A number for each token, by a weight of one row. */
static nxc_id one_row(const nxc_decoder *d, nxc_part part, const char *weight, const char *name, nxc_id x,
                      nx_dtype type) {
  const nxc_box box = {part, 1, nxc_rank_number_of(0)};
  nxc_id row = nxc_parameter_rows(d->graph, d->t, weight, &box, 1, d->t->model.hidden, 0);
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                .name = name,
                                                .in = {x, row},
                                                .attrs = {[NX_matmul_trans_b] = nxc_integer(1)},
                                                .dtype = type});
}

/* What shared experts make of tokens, each with a weight of its own. */
static nxc_id shared_gate(const nxc_decoder *d, nxc_id x, nxc_id shared) {
  nxc_id gate = one_row(d, NXC_PART_SHARED_MIX, "shared_weight", "shared_gate", x, 0);
  return nxc_append(d->graph,
                    &(nxc_op_request){.op = NX_OP_row_gate, .name = "shared_share", .in = {shared, gate}});
}

/* A token's logit of one of the two. */
static nxc_id logit_of(const nxc_decoder *d, int64_t row, const char *weight, const char *bias,
                       const char *name, nxc_id x) {
  const nxc_box box = {NXC_PART_SHARED_MIX, 1, nxc_rank_number_of(row)};
  nxc_id rows = nxc_parameter_rows(d->graph, d->t, weight, &box, 1, d->t->model.hidden, 0);
  nxc_id number = nxc_parameter_bias(d->graph, d->t, bias, &box, 1, 0);
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                .name = name,
                                                .in = {x, rows, number},
                                                .attrs = {[NX_matmul_trans_b] = nxc_integer(1)}});
}

/* y by its share of a softmax of two. */
static nxc_id shared_out(const nxc_decoder *d, const char *name, nxc_id y, nxc_id own, nxc_id other) {
  nxc_id more =
      nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_columns_add,
                                             .name = nxc_arena_printf(d->graph->arena, "%s_logit", name),
                                             .in = {own, other},
                                             .attrs = {[NX_columns_add_scale] = nxc_real(-1)}});
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_row_gate, .name = name, .in = {y, more}});
}

/* x is between tensor-parallel regions. */
static nxc_id feed_forward(const nxc_decoder *d, nxc_id x) {
  const nxc_feed_forward_spec *ffn = &d->layer->ffn;
  const nxc_mixture *mixture = ffn->mixture;
  int64_t tensor = d->t->layout.tensor;
  if (mixture == NULL)
    return dense(d, nxc_decoder_enter_region(d, x), NXC_PART_GATE, ffn->width / tensor, "up");
  nxc_id y = nxc_moe_layer(d, x, nxc_decoder_jitter(d, x, mixture->jitter));
  if (mixture->shared_hidden == 0) return y;
  int64_t width = mixture->shared_hidden / tensor;
  nxc_id shared = dense(d, nxc_decoder_enter_region(d, x), NXC_PART_SHARED_GATE, width, "shared_up");
  if (mixture->shared_softmax) {
    nxc_id first = logit_of(d, 0, "routed_mix_weight", "routed_mix_bias", "routed_logit", x),
           second = logit_of(d, 1, "shared_mix_weight", "shared_mix_bias", "shared_logit", x);
    y = shared_out(d, "routed_part", y, first, second);
    shared = shared_out(d, "shared_part", shared, second, first);
  } else if (mixture->shared_gate) {
    shared = shared_gate(d, x, shared);
  }
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_add, .name = "with_shared", .in = {y, shared}});
}

/* What a position adds to the embedding. */
static nxc_id add_positions(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_model *m = &d->t->model;
  const nxc_rank_number start = nxc_decoder_first_token(d);
  nxc_op_request request = {.name = "placed",
                            .in = {x, graph->positions},
                            .attrs = {[NX_position_add_seq_start] = nxc_attribute(graph, &start)}};
  if (m->sinusoidal) request.op = NX_OP_sinusoid_add;
  if (m->learned_positions) {
    const nxc_box positions = {NXC_PART_POSITIONS, m->learned_positions, nxc_rank_number_of(0)};
    request.op = NX_OP_position_add;
    request.in[1] = nxc_parameter_rows(graph, d->t, "positions", &positions, 1, m->hidden, 0);
    request.in[2] = graph->positions;
  }
  return request.op ? nxc_append(graph, &request) : x;
}

/* The embedding matrix; where only the last chunk predicts further tokens it has a copy. */
static nxc_id embedding_table(nxc_decoder *d) {
  nxc_graph *graph = d->graph;
  const nxc_model *m = &d->t->model;
  if (d->table) return d->table;
  if (m->tied && d->output) return d->table = d->output;
  const nxc_box rows = {NXC_PART_EMBEDDING, d->vocab, nxc_decoder_divided(d, d->vocab)};
  d->table = nxc_parameter_rows(graph, d->t, "weight", &rows, 1, m->hidden, d->tensor);
  bool copied = (m->tied || m->predict_depth > 0) && !(graph->is_first && graph->is_last);
  if (copied) nxc_parameter_share(graph, d->table, graph->pipeline->ends);
  return d->table;
}

/* The rows of tokens, summed over the ranks that each have some. */
static nxc_id embed_tokens(const nxc_decoder *d, nxc_id tokens, nxc_id table) {
  nxc_graph *graph = d->graph;
  const nxc_rank_number start = nxc_decoder_divided(d, d->vocab);
  nxc_id x = nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_embedding,
                               .name = "x",
                               .in = {tokens, table},
                               .attrs = {[NX_embedding_row_start] = nxc_attribute(graph, &start),
                                         [NX_embedding_scale] = nxc_real(d->t->model.embedding_scale)},
                               .dtype = d->tensor ? 0 : graph->types.residual});
  return nxc_decoder_leave_region(d, x, graph->types.residual);
}

static nxc_id embed(nxc_decoder *d) {
  const nxc_rank_number none = nxc_rank_number_of(0);
  const nxc_model *m = &d->t->model;
  nxc_decoder_enter(d, -1, "embedding");
  nxc_id x = embed_tokens(d, d->graph->tokens, embedding_table(d));
  if (m->embedding_norm)
    x = nxc_decoder_norm(d, x, NXC_PART_EMBEDDING_NORM, &m->final_norm, "norm", d->graph->types.residual);
  x = add_positions(d, x);
  return nxc_decoder_dropout(d, x, m->embedding_dropout, NXC_KEY_ATTENTION_OUTPUT, nxc_decoder_first_token(d),
                             &none);
}

/* The output matrix: of the last chunk, once it is asked for. */
static nxc_id output_table(nxc_decoder *d) {
  nxc_graph *graph = d->graph;
  bool tied = d->t->model.tied;
  if (d->output) return d->output;
  if (tied && d->table) return graph->tied = d->output = d->table;
  const nxc_box rows = {tied ? NXC_PART_EMBEDDING : NXC_PART_OUTPUT, d->vocab,
                        nxc_decoder_divided(d, d->vocab)};
  d->output = nxc_parameter_rows(graph, d->t, "weight", &rows, 1, d->t->model.hidden, d->tensor);
  if (tied) nxc_parameter_share(graph, d->output, graph->pipeline->ends);
  return d->output;
}

static nxc_id logits(nxc_decoder *d, nxc_id x) {
  nxc_id table = output_table(d);
  const nxc_box words = {NXC_PART_OUTPUT, d->vocab, nxc_decoder_divided(d, d->vocab)};
  x = nxc_decoder_enter_region(d, x);
  bool tied = d->t->model.tied;
  nxc_id y =
      nxc_decoder_matrix_product(d, tied ? NXC_PART_EMBEDDING : NXC_PART_OUTPUT, "logits", x, table, 0);
  return tied ? y : nxc_adapters_of_columns(d, x, y, &words, 1, d->tensor);
}

/* What a head of one row makes of each token, in fp32: of all tokens of the context rank, on each of its
 * tensor-parallel ranks. */
static nxc_id values(const nxc_decoder *d, nxc_id x) {
  nxc_id own = one_row(d, NXC_PART_SCORE, "score", "values", x, NX_f32);
  if (!d->t->layout.sequence_parallel) return own;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                             .name = "all_values",
                                             .in = {own},
                                             .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                             .group_atoms = d->tensor});
}

static nxc_id loss_of(nxc_decoder *d, nxc_id x) {
  const nxc_objective *objective = &d->t->objective;
  if (objective->row->has_values) return nxc_value_loss(d, values(d, x));
  nxc_id y = logits(d, x);
  return nxc_objective_compares(objective)
             ? nxc_answer_loss(d, y)
             : nxc_token_loss(d, "loss", y, d->graph->labels, d->graph->weights);
}

/* Of all mixtures: the sum of what they add to the loss. Every chunk has it, with mixtures or without. */
static void make_router_losses(nxc_graph *graph, const nxc_training *t) {
  nxc_shape shape = nxc_shape_of(NX_f64, 1, (int64_t[]){2});
  const nxc_axis_id axes[] = {NXC_AXIS_DATA, NXC_AXIS_CONTEXT, NXC_AXIS_PIPELINE, NXC_AXIS_TENSOR};
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    if (axes[i] != NXC_AXIS_TENSOR || t->layout.sequence_parallel)
      nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, axes[i]), NXC_PARTIAL);
  graph->router_losses = nxc_value_new(graph, "router_losses", NXC_ROLE_SCALAR, &shape);
  shape.dims[0] = 2 * (t->model.layers + t->model.predict_depth);
  if (t->measures.router_layers)
    graph->router_layers = nxc_value_new(graph, "router_layers", NXC_ROLE_SCALAR, &shape);
}

static void inputs(nxc_graph *graph, const nxc_training *t) {
  nxc_shape tokens = nxc_shape_of(NX_i32, 2, (int64_t[]){t->batch.micro, nxc_context_tokens(t)});
  nxc_shape samples = nxc_shape_of(NX_i64, 1, (int64_t[]){t->batch.micro});
  const nxc_shape step = nxc_shape_of(NX_i64, 1, (int64_t[]){1});
  nxc_place_atoms(&tokens.placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  samples.placement = tokens.placement;
  nxc_place_atoms(&tokens.placement, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_SPLIT + 1);
  graph->tokens = nxc_value_new(graph, "tokens", NXC_ROLE_INPUT, &tokens);
  graph->labels = nxc_value_new(graph, "labels", NXC_ROLE_INPUT, &tokens);
  graph->positions = nxc_value_new(graph, "positions", NXC_ROLE_INPUT, &tokens);
  graph->samples = nxc_value_new(graph, "samples", NXC_ROLE_INPUT, &samples);
  graph->step = nxc_value_new(graph, "step", NXC_ROLE_INPUT, &step);
  if ((t->lora.merge_every > 0 && t->lora.merge_resets) || t->optimizer.begins_anew)
    graph->updates = nxc_value_new(graph, "updates", NXC_ROLE_INPUT, &step);
  nxc_context_inputs(graph, t);
  if (t->measures.router_losses) make_router_losses(graph, t);
}

/* What a neighbouring chunk sends, of every token that is here. */
static nxc_shape residual_shape(const nxc_decoder *d) {
  nxc_graph *graph = d->graph;
  nxc_shape shape =
      nxc_shape_of(graph->types.residual, 3, (int64_t[]){d->t->batch.micro, d->sequence, d->t->model.hidden});
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_DATA), NXC_SPLIT);
  nxc_place_atoms(&shape.placement, nxc_axis(&graph->mesh, NXC_AXIS_CONTEXT), NXC_SPLIT + 1);
  if (d->t->layout.sequence_parallel) nxc_place_atoms(&shape.placement, d->tensor, NXC_SPLIT + 1);
  return shape;
}

/* Attention, or the feed-forward part, with the norms around it. */
typedef struct branch {
  const char *module, *norm, *after;
  nxc_part norm_part, after_part;
  nxc_id (*part)(const nxc_decoder *d, nxc_id x);
  int key; /* of its dropout */
} branch;

static const branch branches[2] = {
    {"attention", "attention_norm", "attention_after_norm", NXC_PART_ATTENTION_NORM,
     NXC_PART_ATTENTION_AFTER_NORM, nxc_attention_layer, NXC_KEY_ATTENTION_OUTPUT},
    {"ffn", "ffn_norm", "ffn_after_norm", NXC_PART_FFN_NORM, NXC_PART_FFN_AFTER_NORM, feed_forward,
     NXC_KEY_FFN_OUTPUT}};

static nxc_id branch_norm(nxc_decoder *d, int32_t layer, const char *module, nxc_part part, nxc_id x,
                          nx_dtype type) {
  nxc_decoder_enter(d, layer, module);
  return nxc_decoder_norm(d, x, part, &d->layer->norm, NULL, type);
}

/* What a branch makes of the stream's norm. */
static nxc_id branch_output(nxc_decoder *d, int32_t layer, const branch *b, nxc_id x) {
  nx_dtype type = d->graph->types.activation;
  nxc_decoder_enter(d, layer, b->module);
  nxc_id y = b->part(d, x);
  bool within = d->layer->norm_within && b->part == feed_forward;
  return d->layer->norm_after && !within ? branch_norm(d, layer, b->after, b->after_part, y, type) : y;
}

static nxc_id plain_layer(nxc_decoder *d, int32_t layer, nxc_id x) {
  const nxc_precision *types = &d->graph->types;
  for (const branch *b = branches; b < branches + 2; b++) {
    const nxc_layer_spec *spec = nxc_model_layer(&d->t->model, layer);
    nxc_id input = spec->norm_before ? branch_norm(d, layer, b->norm, b->norm_part, x, types->activation) : x;
    x = residual(d, spec->adds_to_norm ? input : x, branch_output(d, layer, b, input), b->key);
    if (spec->norm_of_sum) x = branch_norm(d, layer, b->norm, b->norm_part, x, types->residual);
  }
  return x;
}

/* Both branches read x, and are added to it together. */
static nxc_id parallel_layer(nxc_decoder *d, int32_t layer, nxc_id x) {
  nx_dtype type = d->graph->types.activation;
  nxc_id first = branch_norm(d, layer, branches[0].norm, branches[0].norm_part, x, type), second = first;
  if (!d->layer->one_norm) second = branch_norm(d, layer, branches[1].norm, branches[1].norm_part, x, type);
  x = residual(d, x, branch_output(d, layer, &branches[0], first), branches[0].key);
  return residual(d, x, branch_output(d, layer, &branches[1], second), branches[1].key);
}

static nxc_id one_layer(nxc_decoder *d, int32_t layer, nxc_id x) {
  return nxc_model_layer(&d->t->model, layer)->parallel ? parallel_layer(d, layer, x)
                                                        : plain_layer(d, layer, x);
}

/* ---- further tokens ---- */

/* Of [K,B,s], what is of one depth. */
static nxc_id of_depth(nxc_graph *graph, nxc_id all, int64_t depth, const char *name) {
  nxc_shape shape = graph->values[graph->labels].shape;
  shape.dtype = graph->values[all].shape.dtype;
  uint64_t offset = (uint64_t)depth * nxc_shape_bytes(&shape);
  return nxc_view_new(graph, nxc_arena_printf(graph->arena, "%s.%d", name, (int)depth), all, offset, &shape);
}

/* What a layer of the prediction reads: the stream so far, and the embedding of the token behind its own. */
static nxc_id join(nxc_decoder *d, int32_t layer, nxc_id x, nxc_id tokens) {
  nxc_graph *graph = d->graph;
  const nxc_model *m = &d->t->model;
  const nxc_rank_number none = nxc_rank_number_of(0);
  nx_dtype type = graph->types.activation;
  nxc_decoder_enter(d, -1, "embedding");
  nxc_id table = embedding_table(d);
  nxc_decoder_enter(d, layer, "predict");
  nxc_id e = nxc_decoder_dropout(d, embed_tokens(d, tokens, table), m->embedding_dropout,
                                 NXC_KEY_ADAPTERS + NXC_PART_PREDICT_JOIN, nxc_decoder_first_token(d), &none);
  e = nxc_decoder_norm(d, e, NXC_PART_PREDICT_EMBEDDING_NORM, &m->final_norm, "embedding_norm", type);
  x = nxc_decoder_norm(d, x, NXC_PART_PREDICT_HIDDEN_NORM, &m->final_norm, "hidden_norm", type);
  nxc_id both = nxc_append(graph, &(nxc_op_request){.op = NX_OP_join, .name = "both", .in = {e, x}});
  const nxc_box box = {NXC_PART_PREDICT_JOIN, m->hidden, none};
  nxc_id weight = nxc_parameter_rows(graph, d->t, "join_weight", &box, 1, 2 * m->hidden, 0);
  nxc_id y = nxc_append(graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                 .name = "joined",
                                                 .in = {both, weight},
                                                 .attrs = {[NX_matmul_trans_b] = nxc_integer(1)},
                                                 .dtype = graph->types.residual});
  return y;
}

/* x: what the logits are made of. */
static void predict_further(nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_model *m = &d->t->model;
  nxc_id tokens = graph->labels;
  for (int64_t depth = 0; depth < m->predict_depth; depth++) {
    int32_t layer = (int32_t)(m->layers + depth);
    nxc_id labels = of_depth(graph, graph->later_labels, depth, "later_labels");
    nxc_id weights = of_depth(graph, graph->later_weights, depth, "later_weights");
    x = one_layer(d, layer, join(d, layer, x, tokens));
    nxc_decoder_enter(d, layer, "predict_norm");
    x = nxc_decoder_norm(d, x, NXC_PART_PREDICT_NORM, &m->final_norm, NULL, graph->types.activation);
    nxc_decoder_enter(d, -1, "output");
    graph->layer = layer;
    (void)nxc_token_loss(d, nxc_arena_printf(graph->arena, "later_loss.%d", (int)depth), logits(d, x), labels,
                     weights);
    tokens = labels;
  }
}

void nxc_model_decoder(nxc_graph *graph, const nxc_training *t) {
  nxc_decoder d = {.graph = graph,
                   .t = t,
                   .tensor = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR),
                   .vocab = t->model.vocab_padded / t->layout.tensor,
                   .sequence = nxc_context_tokens(t) / (t->layout.sequence_parallel ? t->layout.tensor : 1)};
  inputs(graph, t);
  const nxc_shape residuals = residual_shape(&d);
  graph->port_counts = nxc_moe_port_counts(graph, t);
  nxc_id x =
      graph->is_first ? embed(&d) : (graph->input = nxc_port_receive(graph, NX_PORT_INPUT, &residuals));
  for (int32_t layer = graph->first_layer; layer < graph->first_layer + graph->n_layers; layer++)
    x = one_layer(&d, layer, x);
  nxc_moe_load_of_model(graph, t);
  if (!graph->is_last) {
    nxc_port_send(graph, NX_PORT_OUTPUT, graph->output = x);
    graph->output_gradient = nxc_port_receive(graph, NX_PORT_OUTPUT_GRADIENT, &residuals);
    return;
  }
  nxc_decoder_enter(&d, -1, "final_norm");
  x = nxc_decoder_norm(&d, x, NXC_PART_FINAL_NORM, &t->model.final_norm, NULL, graph->types.activation);
  nxc_decoder_enter(&d, -1, "output");
  graph->loss = loss_of(&d, x);
  predict_further(&d, x);
}
