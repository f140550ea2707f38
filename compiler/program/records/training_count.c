/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and operations, counted from the specs. */
#include "compiler/program/records/training.h"

static int64_t shared_rows(const nxc_mixture *mixture) {
  if (mixture->shared_hidden == 0 || !mixture->shared_gate) return 0;
  return mixture->shared_softmax ? 2 : 1;
}

/* Elements of a layer's matrices, or of those that a token meets. */
static double layer_matrices(const nxc_model *m, const nxc_layer_spec *spec, bool met) {
  const nxc_attention_spec *a = &spec->attention;
  const nxc_mixture *mixture = spec->ffn.mixture;
  double hidden = (double)m->hidden, feature = (spec->ffn.activation->gated ? 3 : 2) * hidden;
  double attention = nxc_attention_weights(a, m->hidden);
  if (mixture == NULL) return attention + feature * (double)spec->ffn.width;
  double n_networks = (double)(met ? mixture->top_k : mixture->n_experts);
  double width = n_networks * (double)mixture->hidden + (double)mixture->shared_hidden;
  double routers = (double)(mixture->n_experts + shared_rows(mixture));
  return attention + feature * width + hidden * routers;
}

static int64_t norm_vectors(const nxc_norm_spec *norm, int64_t hidden) {
  if (norm->kind->plain) return 0;
  return norm->kind->scalar ? 1 : hidden * (norm->bias ? 2 : 1);
}

static int64_t ffn_biases(const nxc_model *m, const nxc_feed_forward_spec *ffn) {
  const nxc_mixture *mixture = ffn->mixture;
  int64_t ways = ffn->activation->gated ? 2 : 1;
  if (mixture == NULL) return m->hidden + ffn->width * ways;
  int64_t shared = mixture->shared_hidden * ways;
  if (mixture->shared_hidden > 0 && mixture->biases != NXC_BIASES_OF_FIRST) shared += m->hidden;
  const int64_t first = mixture->n_experts * mixture->hidden * ways, last = mixture->n_experts * m->hidden;
  const int64_t own[] = {[NXC_BIASES_OF_EXPERTS] = first + last,
                         [NXC_BIASES_OF_FIRST] = first,
                         [NXC_BIASES_OF_LAYER] = m->hidden,
                         [NXC_NO_BIASES] = 0};
  return shared + own[mixture->biases];
}

/* Norms and biases. */
static int64_t layer_vectors(const nxc_model *m, const nxc_layer_spec *spec) {
  const nxc_attention_spec *a = &spec->attention;
  int64_t n = nxc_layer_norms(spec) * norm_vectors(&spec->norm, m->hidden);
  if (spec->norm_within)
    n += norm_vectors(&spec->norm, spec->ffn.width) - norm_vectors(&spec->norm, m->hidden);
  if (a->qk_norm == NXC_QK_NORM_OF_HEAD) n += 2 * norm_vectors(&spec->norm, a->head_dim);
  if (a->qk_norm == NXC_QK_NORM_OF_ALL)
    n += norm_vectors(&spec->norm, a->head_dim * (a->heads + a->kv_heads));
  if (a->qkv_bias && a->kv_rank == 0) n += a->head_dim * (a->heads + 2 * a->kv_heads) + a->gates;
  if (a->qkv_bias && a->kv_rank > 0) n += a->query_rank + a->kv_rank + a->shared_dim;
  bool normed = a->latent_norm.kind != NULL;
  if (normed) n += norm_vectors(&a->latent_norm, a->kv_rank);
  if (normed && a->query_rank > 0) n += norm_vectors(&a->latent_norm, a->query_rank);
  if (a->output_bias) n += m->hidden;
  if (a->sinks) n += a->heads;
  if (spec->ffn.mixture && spec->ffn.mixture->biased) n += spec->ffn.mixture->n_experts;
  if (spec->ffn.mixture && spec->ffn.mixture->shared_softmax) n += shared_rows(spec->ffn.mixture);
  if (spec->ffn.mixture && spec->ffn.mixture->corrected) n += spec->ffn.mixture->n_experts;
  return spec->ffn.bias ? n + ffn_biases(m, &spec->ffn) : n;
}

uint64_t nxc_training_parameters(const nxc_training *t) {
  const nxc_model *m = &t->model;
  double matrices = 0;
  int64_t rest = norm_vectors(&m->final_norm, m->hidden) * (1 + m->embedding_norm);
  for (int64_t layer = 0; layer < m->unique_layers; layer++) {
    matrices += layer_matrices(m, nxc_model_layer(m, layer), false);
    rest += layer_vectors(m, nxc_model_layer(m, layer));
  }
  for (int64_t layer = m->layers; layer < m->layers + m->predict_depth; layer++) {
    matrices +=
        layer_matrices(m, nxc_model_layer(m, layer), false) + 2 * (double)m->hidden * (double)m->hidden;
    rest += layer_vectors(m, nxc_model_layer(m, layer)) + 3 * norm_vectors(&m->final_norm, m->hidden);
  }
  rest += m->specs[0].attention.relative.buckets * m->specs[0].attention.heads;
  int64_t outputs = m->outputs < m->vocab ? m->outputs : m->vocab;
  rest += m->hidden * (m->vocab + (m->tied ? 0 : outputs) + m->learned_positions);
  return (uint64_t)matrices + (uint64_t)rest;
}

/* Features that a part of a layer reads and makes. */
static double features(const nxc_model *m, const nxc_layer_spec *spec, nxc_part part, double *makes) {
  const nxc_attention_spec *a = &spec->attention;
  const nxc_mixture *e = spec->ffn.mixture;
  double hidden = (double)m->hidden, queries = (double)(a->heads * a->head_dim),
         keys = (double)(a->kv_heads * a->head_dim);
  double width = e ? 0 : (double)spec->ffn.width, shared = e ? (double)e->shared_hidden : 0;
  double experts = e ? (double)e->hidden : 0;
  const double sizes[NXC_N_PARTS][2] = {[NXC_PART_Q] = {hidden, queries},
                                        [NXC_PART_K] = {hidden, keys},
                                        [NXC_PART_V] = {hidden, keys},
                                        [NXC_PART_O] = {queries, hidden},
                                        [NXC_PART_GATE] = {hidden, width},
                                        [NXC_PART_UP] = {hidden, width},
                                        [NXC_PART_DOWN] = {width, hidden},
                                        [NXC_PART_SHARED_GATE] = {hidden, shared},
                                        [NXC_PART_SHARED_UP] = {hidden, shared},
                                        [NXC_PART_SHARED_DOWN] = {shared, hidden},
                                        [NXC_PART_EXPERT_GATE] = {hidden, experts},
                                        [NXC_PART_EXPERT_UP] = {hidden, experts},
                                        [NXC_PART_EXPERT_DOWN] = {experts, hidden}};
  *makes = sizes[part][1];
  return sizes[part][0];
}

/* Elements of a layer's adapters that a token meets. */
static double adapter_elements(const nxc_training *t, const nxc_layer_spec *spec) {
  double sum = 0, makes;
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    if (t->lora.of[part] == NULL) continue;
    bool gate = part == NXC_PART_GATE || part == NXC_PART_SHARED_GATE || part == NXC_PART_EXPERT_GATE;
    double reads = features(&t->model, spec, part, &makes);
    if (reads == 0 || makes == 0 || (gate && !spec->ffn.activation->gated)) continue;
    double times = part >= NXC_PART_EXPERT_GATE ? (double)spec->ffn.mixture->top_k : 1;
    sum += times * ((t->lora.of[part]->parts[0] == part ? reads : 0) + makes) * (double)t->lora.rank;
  }
  return sum;
}

/* Of frozen matrices there is no gradient: what is left of the backward pass is as much as the forward one.
 */
double nxc_training_flops(const nxc_training *t) {
  const nxc_model *m = &t->model;
  double tokens = (double)(t->batch.global * m->sequence);
  double output = 2 * (double)(m->outputs * m->hidden), join = 4 * (double)(m->hidden * m->hidden);
  double products = output + (double)m->predict_depth * (output + join), attention = 0, adapters = 0;
  for (int64_t layer = 0; layer < m->layers + m->predict_depth; layer++) {
    const nxc_layer_spec *spec = nxc_model_layer(m, layer);
    products += 2 * layer_matrices(m, spec, true);
    adapters += 2 * adapter_elements(t, spec);
    const nxc_attention_spec *a = &spec->attention;
    double sequence = (double)m->sequence, window = (double)a->window, keys = sequence / 2;
    if (window > 0 && window < sequence) keys = window * (1 - window / (2 * sequence));
    attention += 4.0 * (double)(a->heads * (a->head_dim + a->value_dim)) * keys;
  }
  return tokens * ((t->lora.rank > 0 ? 2 : 3) * products + 3 * (attention + adapters));
}
