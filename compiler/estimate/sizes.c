/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/sizes.h"

#include "compiler/estimate/overload.h"
#include "compiler/estimate/scores.h"
#include "compiler/estimate/trained.h"
#include "compiler/program/pipeline/play.h"
#include "compiler/program/records/mixture.h"
#include "compiler/program/records/read.h"

#include "schema/ops.h"

#include <math.h>
#include <string.h>

/* ---- names ---- */

static const char *const size_names[] = {
#define SIZE(name, meaning) #name,
#include "compiler/estimate/sizes.def"
#undef SIZE
};

int nxc_size_find(const char *name) {
  for (size_t i = 0; i < sizeof size_names / sizeof *size_names; i++)
    if (strcmp(size_names[i], name) == 0) return (int)i;
  return -1;
}

/* ---- reading ---- */

static double flag(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) && nxc_flag(s, id) ? 1 : 0;
}

static double bytes_of(nx_dtype type) {
  return nx_dtype_bits(type) / 8.0;
}

static void read_model(const nxc_model *m, nxc_sizes *z) {
  const nxc_layer_spec *layer = &m->specs[0];
  z->layers = (double)m->layers;
  z->predicts = (double)m->predict_depth;
  z->hidden = (double)m->hidden;
  z->heads = (double)layer->attention.heads;
  z->kv_heads = (double)layer->attention.kv_heads;
  z->head_dim = (double)layer->attention.head_dim;
  z->value_dim = (double)layer->attention.value_dim;
  z->query_rank = (double)layer->attention.query_rank;
  z->kv_rank = (double)layer->attention.kv_rank;
  z->rope_dim = layer->attention.kv_rank > 0 ? (double)layer->attention.rope.dims : 0;
  z->qk_norms = layer->attention.qk_norm != NXC_QK_PLAIN;
  z->window = (double)layer->attention.window;
  z->attention = nxc_attention_weights(&layer->attention, m->hidden);
  z->windowed = layer->attention.window > 0 ? m->windowed : 0;
  z->ffn = (double)layer->ffn.width;
  z->gates = layer->ffn.activation->gated;
  z->vocab = (double)m->vocab_padded;
  z->outputs = (double)m->outputs;
  z->tied = m->tied;
  z->hidden_dropout = layer->dropout > 0;
  z->attention_dropout = layer->attention.dropout > 0;
  if (m->mixture == NULL) return;
  z->mixtures = (double)nxc_model_mixtures(m);
  z->experts = (double)m->mixture->n_experts;
  z->top_k = (double)m->mixture->top_k;
  z->expert_ffn = (double)m->mixture->hidden;
  z->shared_ffn = (double)m->mixture->shared_hidden;
  z->capacity = m->mixture->capacity_factor;
}

/* Where tensor-parallel ranks are more than key and value heads, several of them hold and compute each. */
static void read_copies(const nxc_layout *l, nxc_sizes *z) {
  if (z->kv_rank > 0) return;
  double held = z->kv_heads * nxc_layout_kv_copies(l, (int64_t)z->kv_heads);
  z->copied = (held - z->kv_heads) * (z->head_dim + z->value_dim) * z->hidden;
  z->kv_heads = held;
}

static void read_layout(const nxc_layout *l, nxc_sizes *z) {
  z->world = l->world;
  z->hosts = l->nodes;
  z->tensor = l->tensor;
  z->sequence_split = l->sequence_parallel ? l->tensor : 1;
  z->context = l->context;
  z->ulysses = l->ulysses;
  z->pipeline = l->pipeline;
  z->chunks = (double)l->n_chunks / l->pipeline;
  z->expert = l->expert;
  z->expert_tensor = l->expert_tensor;
  z->data = l->data;
  z->replicas = l->replicate;
}

static void read_batch(const nxc_training *t, nxc_sizes *z) {
  z->whole_logits = t->objective.kind == NX_OBJECTIVE_KTO;
  z->sequence = (double)t->model.sequence;
  z->micro_batch = (double)t->batch.micro;
  z->micro_batches = (double)t->batch.n_micro;
  z->tokens = z->micro_batch * z->sequence / z->context;
}

/* Of a parameter's copy and of each moment, where the system has types of its own for them. */
static void read_kept_bits(const nxc_settings *s, nxc_sizes *z) {
  size_t n = 0;
  const nxc_value *bits =
      nxc_has(s, NX_SETTING_PRECISION_KEPT_BITS) ? nxc_list(s, NX_SETTING_PRECISION_KEPT_BITS, &n) : NULL;
  if (n == 0) return;
  z->master_bytes = fmax(0, (double)bits[0].integer / 8);
  double all = 0;
  for (size_t i = 1; i < n; i++) all += fmax(0, (double)bits[i].integer / 8);
  if (n > 1) z->state_bytes = all / (double)(n - 1);
}

static void read_precision(const nxc_precision *types, const nxc_settings *s, nxc_sizes *z) {
  z->param_bytes = bytes_of(types->param);
  z->compute_bytes = bytes_of(types->activation);
  z->grad_bytes = bytes_of(types->grad);
  z->reduce_bytes = bytes_of(types->partial);
  z->state_bytes = bytes_of(types->state);
  z->master = types->master;
  z->master_bytes = 4;
  read_kept_bits(s, z);
  z->fp4 = nxc_is(s, NX_SETTING_PRECISION_PRODUCTS, "fp4");
  z->fp8 = z->fp4 > 0 || nxc_is(s, NX_SETTING_PRECISION_PRODUCTS, "fp8");
  z->fp8_backward = nxc_is(s, NX_SETTING_PRECISION_FP8_BACKWARD, "none")     ? 0
                    : nxc_is(s, NX_SETTING_PRECISION_FP8_BACKWARD, "inputs") ? 1
                                                                             : 2;
  z->read_bytes = z->fp8 == 0 || z->fp8_backward < 2 ? z->compute_bytes : z->fp4 > 0 ? 0.5 + 1.0 / 16 : 1;
  z->fp8_rows = z->fp8 > 0 && nxc_is(s, NX_SETTING_PRECISION_FP8_RECIPE, "rowwise");
  z->fp8_parameters = z->fp8 > 0 ? flag(s, NX_SETTING_PRECISION_FP8_PARAMETERS) : 0;
  z->loss_chunks = (double)nxc_int_or(s, NX_SETTING_LOSS_CHUNKS, 1);
  z->loss_bytes = nxc_is(s, NX_SETTING_PRECISION_LOSS, "compute") ? z->compute_bytes : 4;
}

static bool lists(const nxc_settings *s, nxc_setting_id id, const char *word) {
  size_t n = 0;
  const nxc_value *words = nxc_has(s, id) ? nxc_list(s, id, &n) : NULL;
  for (size_t i = 0; i < n; i++)
    if (strcmp(words[i].text, word) == 0) return true;
  return false;
}

static void read_kernels(const nxc_settings *s, nxc_sizes *z) {
  z->biased = flag(s, NX_SETTING_MODEL_BIAS);
  z->clamped = nxc_has(s, NX_SETTING_MODEL_GATE_LIMIT);
  z->separate_norm = lists(s, NX_SETTING_KERNELS_SEPARATE, "norm");
  z->separate_rope = lists(s, NX_SETTING_KERNELS_SEPARATE, "rope");
  z->separate_softmax = lists(s, NX_SETTING_KERNELS_SEPARATE, "softmax");
  z->separate_activation = lists(s, NX_SETTING_KERNELS_SEPARATE, "activation");
  z->separate_residual = lists(s, NX_SETTING_KERNELS_SEPARATE, "residual");
  z->joins_copies = lists(s, NX_SETTING_KERNELS_JOINED, "copies");
  z->joins_sorting = lists(s, NX_SETTING_KERNELS_JOINED, "sorting");
  z->joins_experts = lists(s, NX_SETTING_KERNELS_JOINED, "experts");
  z->separate_loss = lists(s, NX_SETTING_KERNELS_SEPARATE, "loss");
  z->separate_sums = lists(s, NX_SETTING_KERNELS_SEPARATE, "sums");
  z->separate_sorting = lists(s, NX_SETTING_KERNELS_SEPARATE, "sorting");
}

static bool in_graph(const nxc_settings *s, const char *part) {
  return lists(s, NX_SETTING_KERNELS_GRAPHS, "layer") || lists(s, NX_SETTING_KERNELS_GRAPHS, part);
}

static void read_graphs(const nxc_settings *s, nxc_sizes *z) {
  z->graph_attention = in_graph(s, "attention");
  z->graph_network = in_graph(s, "network");
  z->graph_experts = in_graph(s, "experts");
  z->graph_router = z->graph_experts > 0 || in_graph(s, "router");
}

/* Products in fp8 sum 16 elements at a time, and over rows too, for the gradients of weights; of those with a
 * scale for every 32, whole ones. */
static void read_padding(const nxc_settings *s, nxc_sizes *z) {
  bool pads = z->fp8 > 0 && z->experts > 0;
  z->row_multiple = !pads ? 1 : z->fp4 > 0 || nxc_is(s, NX_SETTING_PRECISION_FP8_RECIPE, "mxfp8") ? 32 : 16;
  z->router_pads = pads && nxc_is(s, NX_SETTING_MOE_PADDING, "router");
  z->operator_pads = pads && nxc_is(s, NX_SETTING_MOE_PADDING, "operator");
}

static void read_undivided(const nxc_settings *s, nxc_sizes *z) {
  z->loss_whole = lists(s, NX_SETTING_TENSOR_UNDIVIDED, "logits");
  z->embedding_whole = lists(s, NX_SETTING_TENSOR_UNDIVIDED, "embedding");
  z->output_whole = lists(s, NX_SETTING_TENSOR_UNDIVIDED, "output");
  z->gathers_each = lists(s, NX_SETTING_TENSOR_UNDIVIDED, "inputs");
}

/* Where a system's own are not known they are of DeepSpeed's size. */
static void read_buffers(const nxc_settings *s, nxc_sizes *z) {
  size_t n = 0;
  const nxc_value *given =
      nxc_has(s, NX_SETTING_REDUCE_BUFFERS) ? nxc_list(s, NX_SETTING_REDUCE_BUFFERS, &n) : NULL;
  double usual = z->bucket > 0 ? z->bucket : 5e8;
  z->buffered = n > 0 ? (double)given[0].integer : usual;
  z->copied_to_sum = n > 1 ? (double)given[1].integer : usual;
  z->sums_whole = flag(s, NX_SETTING_REDUCE_WHOLE);
  z->live = nxc_number(s, NX_SETTING_GATHER_LIVE_ELEMENTS);
  z->updated = (double)nxc_int_or(s, NX_SETTING_OPTIMIZER_GROUP_ELEMENTS, INT64_MAX);
}

static void read_sharding(const nxc_training *t, const nxc_settings *s, nxc_sizes *z) {
  const nxc_sharding *sharding = &t->sharding;
  double of_stage = z->data * z->context, experts = z->world / (z->pipeline * z->expert * z->expert_tensor);
  z->zero = sharding->stage;
  z->reshards = sharding->reshard_after_forward;
  z->bucket = (double)sharding->bucket_elements;
  read_buffers(s, z);
  z->reduce_once = flag(s, NX_SETTING_REDUCE_ONCE);
  z->overlap_reduce = sharding->overlap_reduce;
  z->overlap_gather = sharding->overlap_gather;
  z->overlap_experts = flag(s, NX_SETTING_MOE_OVERLAP);
  z->overlap_tensor = flag(s, NX_SETTING_TENSOR_OVERLAP);
  bool divides = sharding->stage >= 1 || flag(s, NX_SETTING_OPTIMIZER_DIVIDES_ALONE);
  z->shard = divides ? fmax(1, of_stage / z->replicas) : 1;
  z->expert_shard = divides ? fmax(1, experts / z->replicas) : 1;
}

static bool names(const nxc_recomputation *r, const char *module) {
  for (size_t i = 0; i < r->n_modules; i++)
    if (strcmp(r->modules[i].text, module) == 0) return true;
  return false;
}

static void read_recompute(const nxc_recomputation *r, nxc_sizes *z) {
  z->recomputes_all = r->full || names(r, "layer"); /* of which NxDT may name the class */
  z->second_products = !z->recomputes_all && names(r, "second_products");
  z->recompute_block = r->full && r->block;
  z->recompute_layers = r->full ? (double)r->layers : 1;
  z->recompute_divides = r->distribute;
}

static void read_offload(const nxc_settings *s, nxc_sizes *z) {
  z->offload_optimizer = nxc_number(s, NX_SETTING_OFFLOAD_OPTIMIZER);
  z->kept_bytes = nxc_number(s, NX_SETTING_OFFLOAD_KEPT) * 1024 * 1024 * 1024;
  z->waits = flag(s, NX_SETTING_OFFLOAD_WAITS);
  z->in_turns = flag(s, NX_SETTING_OFFLOAD_IN_TURNS);
  z->offload_parameters = z->zero >= 3 ? flag(s, NX_SETTING_OFFLOAD_PARAMETERS) : 0;
  z->offload_activations = nxc_number(s, NX_SETTING_OFFLOAD_ACTIVATIONS);
  if (nxc_has(s, NX_SETTING_OFFLOAD_MODULES))
    z->offload_modules = nxc_list(s, NX_SETTING_OFFLOAD_MODULES, &z->n_offload_modules);
}

nxc_sizes nxc_sizes_read(const nxc_training *t, const nxc_settings *settings) {
  nxc_sizes z = {.first = 1};
  read_layout(&t->layout, &z);
  read_model(&t->model, &z);
  read_copies(&t->layout, &z);
  read_batch(t, &z);
  nxc_overload_read(settings, &z);
  read_precision(&t->types, settings, &z);
  read_kernels(settings, &z);
  read_graphs(settings, &z);
  read_padding(settings, &z);
  read_undivided(settings, &z);
  read_sharding(t, settings, &z);
  read_recompute(&t->recomputation, &z);
  read_offload(settings, &z);
  nxc_scores_read(t, settings, &z);
  nxc_trained_read(settings, &z);
  return z;
}

/* ---- a stage ---- */

/* Of the attention's weights the products to a latent's ranks are whole on each tensor-parallel rank. */
double nxc_attention_on_rank(const nxc_sizes *z) {
  double whole = z->kv_rank > 0 ? z->hidden * (z->query_rank + z->kv_rank + z->rope_dim) : 0;
  return whole + (z->attention + z->copied - whole) / z->tensor;
}

static double network_parameters(const nxc_sizes *z, double width) {
  return (2 + z->gates) * z->hidden * width;
}

double nxc_sizes_chunk_layers(const nxc_sizes *z) {
  return z->stage_layers / fmax(1, z->chunks);
}

static double stage_layers(const nxc_training *t, uint32_t stage, nxc_sizes *z) {
  nxc_scores scores = {0};
  double layers = 0;
  z->stage_mixtures = 0;
  for (uint32_t chunk = 0; chunk < t->layout.n_chunks; chunk++) {
    if (nxc_layout_stage_of(&t->layout, chunk) != stage) continue;
    int64_t first = nxc_training_layers_before(t, chunk), after = nxc_training_layers_before(t, chunk + 1);
    layers += (double)(after - first);
    for (int64_t layer = first; layer < after; layer++) {
      z->stage_mixtures += nxc_model_layer(&t->model, layer)->ffn.mixture != NULL;
      nxc_scores_see(&t->model, z, layer, &scores);
    }
  }
  nxc_scores_sum_up(&scores, z);
  return layers;
}

/* Behind the last layer stand those that predict further tokens: each joins the stream and the token's
 * embedding, of which a last stage has a copy. */
static void add_predictions(const nxc_training *t, nxc_sizes *z) {
  const nxc_model *m = &t->model;
  double joins = z->predicts * (2 * z->hidden * z->hidden / z->tensor + 3 * z->hidden);
  z->stage_layers += z->predicts;
  if (nxc_model_layer(m, m->layers - 1)->ffn.mixture != NULL) z->stage_mixtures += z->predicts;
  z->parameters += joins;
  if (!z->first && z->tied == 0) z->parameters += z->outputs * z->hidden / z->tensor;
}

static double tables_on_rank(const nxc_sizes *z) {
  bool output = z->last && !(z->tied && z->pipeline == 1);
  double embedding = z->vocab * z->hidden / (z->embedding_whole > 0 ? 1 : z->tensor);
  double outputs = z->outputs * z->hidden / (z->output_whole > 0 ? 1 : z->tensor);
  return (z->first ? embedding : 0) + (output ? outputs : 0);
}

void nxc_sizes_of_stage(const nxc_sizes *sizes, const nxc_training *t, uint32_t stage, nxc_sizes *z) {
  *z = *sizes;
  z->first = stage == 0;
  z->last = stage == nxc_layout_stage_of(&t->layout, t->layout.n_chunks - 1);
  z->stage_layers = stage_layers(t, stage, z);
  z->in_flight = nxc_play_in_flight(&t->layout, (uint64_t)t->batch.n_micro, stage);
  z->parameters = 0;
  if (z->last && z->predicts > 0) add_predictions(t, z);
  double dense = z->stage_layers - z->stage_mixtures;
  double norms = 2 * z->hidden;
  double attention = nxc_attention_on_rank(z), network = network_parameters(z, z->ffn) / z->tensor;
  double shared = network_parameters(z, z->shared_ffn) / z->tensor + z->hidden * z->experts;
  z->parameters += z->stage_layers * (attention + norms) + dense * network + z->stage_mixtures * shared;
  z->tables = tables_on_rank(z);
  z->parameters += z->tables + (z->last ? z->hidden : 0);
  double experts = z->experts * network_parameters(z, z->expert_ffn) / (z->expert * z->expert_tensor);
  z->expert_parameters = z->stage_mixtures * experts;
  z->unit = fmax(attention + norms + (dense > 0 ? network : 0),
                 z->stage_mixtures > 0 ? attention + shared + experts : 0);
  nxc_trained_of_stage(z);
}

static bool is_alike(const nxc_sizes *a, const nxc_sizes *b) {
  return a->stage_layers == b->stage_layers && a->stage_mixtures == b->stage_mixtures &&
         a->first == b->first && a->last == b->last && a->in_flight >= b->in_flight &&
         a->sparse == b->sparse && a->flash == b->flash && a->scores == b->scores;
}

size_t nxc_sizes_of_stages(const nxc_sizes *sizes, const nxc_training *training, nxc_arena *arena,
                           nxc_stage_kind **kinds) {
  uint32_t n_stages = (uint32_t)sizes->pipeline;
  size_t n = 0;
  *kinds = nxc_arena_array(arena, n_stages, sizeof **kinds);
  for (uint32_t stage = 0; stage < n_stages; stage++) {
    nxc_stage_kind *next = &(*kinds)[n], *like = *kinds;
    nxc_sizes_of_stage(sizes, training, stage, &next->sizes);
    while (like < next && !is_alike(&like->sizes, &next->sizes)) like++;
    if (like == next) {
      next->stage = stage;
      n++;
    }
    like->n_stages++;
  }
  return n;
}
