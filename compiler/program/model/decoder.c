/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/decoder.h"

#include "compiler/program/model/context.h"

void nxc_decoder_enter(nxc_decoder *d, int32_t layer, const char *module) {
  nxc_graph *graph = d->graph;
  graph->layer = layer;
  d->layer = layer < 0 ? NULL : nxc_model_layer(&d->t->model, layer);
  graph->origin = layer < 0 ? module : nxc_arena_printf(graph->arena, "layers.%d.%s", layer, module);
  graph->weights_layer = (int32_t)nxc_model_weights_of(&d->t->model, layer);
  graph->weights_origin = graph->origin;
  if (graph->weights_layer != layer)
    graph->weights_origin = nxc_arena_printf(graph->arena, "layers.%d.%s", graph->weights_layer, module);
}

nxc_rank_number nxc_decoder_divided(const nxc_decoder *d, int64_t unit) {
  return nxc_rank_number_tensor(d->graph, 0, unit);
}

nxc_rank_number nxc_decoder_first_token(const nxc_decoder *d) {
  return nxc_decoder_divided(d, d->t->layout.sequence_parallel ? d->sequence : 0);
}

/* Keys of adapters' masks are in a space of their own, above the others. */
static nx_attribute adapter_key(nxc_graph *graph, int part) {
  enum { SPACE = 3 << 29, PER_LAYER = 64 };
  int32_t layer = graph->layer < 0 ? -1 : graph->layer;
  const nxc_rank_number number =
      nxc_rank_number_layer(graph, SPACE + PER_LAYER + part, layer < 0 ? 0 : PER_LAYER, layer);
  return nxc_attribute(graph, &number);
}

nx_attribute nxc_decoder_dropout_key(nxc_graph *graph, int key) {
  if (key >= NXC_KEY_ADAPTERS) return adapter_key(graph, key - NXC_KEY_ADAPTERS);
  if (graph->layer < 0) return nxc_integer(NXC_KEY_DROPOUT + key);
  const nxc_rank_number number = nxc_rank_number_layer(graph, NXC_KEY_DROPOUT + NXC_KEYS_PER_LAYER + key,
                                                       NXC_KEYS_PER_LAYER, graph->layer);
  return nxc_attribute(graph, &number);
}

/* Elements of x changed by random numbers, which all such operators draw with the same attributes. */
static nxc_id change_randomly(const nxc_decoder *d, nx_op op, nxc_id x, double attribute, int key,
                              nxc_rank_number first_token, const nxc_rank_number *first_feature) {
  if (attribute <= 0) return x;
  nxc_graph *graph = d->graph;
  nx_attribute id = nxc_decoder_dropout_key(graph, key);
  nxc_id places = d->t->layout.context > 1 ? graph->place_rows[0] : 0;
  nxc_context_first_token(graph, d->t, &first_token);
  return nxc_append(
      graph, &(nxc_op_request){.op = op,
                               .name = nx_op_find(op)->name,
                               .in = {x, graph->samples, places},
                               .attrs = {[NX_dropout_probability] = nxc_real(attribute),
                                         [NX_dropout_tensor_id] = id,
                                         [NX_dropout_seq_start] = nxc_attribute(graph, &first_token),
                                         [NX_dropout_feature_start] = nxc_attribute(graph, first_feature)}});
}

nxc_id nxc_decoder_dropout(const nxc_decoder *d, nxc_id x, double probability, int key,
                           nxc_rank_number first_token, const nxc_rank_number *first_feature) {
  return change_randomly(d, NX_OP_dropout, x, probability, key, first_token, first_feature);
}

nxc_id nxc_decoder_jitter(const nxc_decoder *d, nxc_id x, double width) {
  const nxc_rank_number first = nxc_rank_number_of(0);
  return change_randomly(d, NX_OP_jitter, x, width, NXC_KEY_ROUTER, nxc_decoder_first_token(d), &first);
}

nxc_id nxc_decoder_random_logits(const nxc_decoder *d, nxc_id logits) {
  const nxc_rank_number first = nxc_rank_number_of(0);
  return change_randomly(d, NX_OP_random_logits, logits, 1, NXC_KEY_LOGITS, nxc_decoder_first_token(d),
                         &first);
}

nxc_id nxc_decoder_priorities(const nxc_decoder *d, nxc_id logits) {
  const nxc_rank_number first = nxc_rank_number_of(0);
  return change_randomly(d, NX_OP_random_logits, logits, 1, NXC_KEY_PRIORITIES, nxc_decoder_first_token(d),
                         &first);
}

nxc_id nxc_decoder_leave_region(const nxc_decoder *d, nxc_id x, nx_dtype type) {
  nxc_graph *graph = d->graph;
  uint32_t partial = nxc_atoms_placed(&graph->values[x].shape.placement, NXC_PARTIAL);
  if (partial == 0) return x;
  nxc_op_request request = {
      .op = NX_OP_all_reduce, .name = "sum", .in = {x}, .dtype = type, .group_atoms = partial};
  if (d->t->layout.sequence_parallel) {
    request.op = NX_OP_reduce_scatter;
    request.attrs[NX_reduce_scatter_axis] = nxc_integer(1);
  }
  return nxc_append(graph, &request);
}

nxc_id nxc_decoder_enter_region(const nxc_decoder *d, nxc_id x) {
  if (!d->t->layout.sequence_parallel) return x;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_gather,
                                                .name = "whole",
                                                .in = {x},
                                                .attrs = {[NX_all_gather_axis] = nxc_integer(1)},
                                                .group_atoms = d->tensor});
}

/* The weight of a norm that has none. */
static nxc_id ones(nxc_graph *graph, int64_t width) {
  const nxc_shape shape = nxc_shape_of(graph->types.param, 1, &width);
  nxc_id value = nxc_value_new(graph, "ones", NXC_ROLE_ACTIVATION, &shape);
  return nxc_append(
      graph, &(nxc_op_request){.op = NX_OP_fill, .out = {value}, .attrs = {[NX_fill_value] = nxc_real(1)}});
}

nxc_id nxc_decoder_norm(const nxc_decoder *d, nxc_id x, nxc_part part, const nxc_norm_spec *spec,
                        const char *name, nx_dtype type) {
  nxc_graph *graph = d->graph;
  int64_t width = nxc_shape_last(&graph->values[x].shape);
  const char *gain_name = name ? nxc_arena_printf(graph->arena, "%s_weight", name) : "weight";
  const char *bias_name = name ? nxc_arena_printf(graph->arena, "%s_bias", name) : "bias";
  nxc_norm_vector first = spec->kind->zero_centred ? NXC_NORM_ZEROS : NXC_NORM_ONES;
  nxc_id gain = spec->kind->plain
                    ? ones(graph, width)
                    : nxc_parameter_norm(graph, d->t, gain_name, part, first, spec->kind->scalar ? 1 : width);
  nxc_id bias = spec->bias ? nxc_parameter_norm(graph, d->t, bias_name, part, NXC_NORM_BIAS, width) : 0;
  return nxc_append(
      graph, &(nxc_op_request){.op = spec->kind->op,
                               .name = name ? name : "y",
                               .in = {x, gain, bias},
                               .attrs = {[NX_rms_norm_epsilon] = nxc_real(spec->epsilon),
                                         [NX_rms_norm_zero_centred] = nxc_integer(spec->kind->zero_centred)},
                               .dtype = type});
}

/* The ranks over which features are divided exchange them for tokens, and back. */
static nxc_id exchange(const nxc_decoder *d, nxc_id x, uint32_t atoms, const char *name, int64_t split,
                       int64_t concat) {
  if (atoms == 0) return x;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_to_all,
                                                .name = name,
                                                .in = {x},
                                                .attrs = {[NX_all_to_all_split_axis] = nxc_integer(split),
                                                          [NX_all_to_all_concat_axis] = nxc_integer(concat)},
                                                .group_atoms = atoms});
}

nxc_id nxc_decoder_norm_of_features(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name,
                                    uint32_t atoms) {
  nxc_id whole = exchange(d, x, atoms, nxc_arena_printf(d->graph->arena, "%s_whole", name), 1, 2);
  nxc_id y = nxc_decoder_norm(d, whole, part, &d->layer->norm, name, d->graph->types.activation);
  return exchange(d, y, atoms, nxc_arena_printf(d->graph->arena, "%s_own", name), 2, 1);
}

nxc_id nxc_decoder_product(const nxc_decoder *d, const char *name, nxc_id x, nxc_id weight, nxc_id bias) {
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_matmul,
                                                .name = name,
                                                .in = {x, weight, bias},
                                                .attrs = {[NX_matmul_trans_b] = nxc_integer(1)}});
}
