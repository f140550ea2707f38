/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/sizes.h"

#include "compiler/program/records/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static const char *const names[] = {
#define SIZE(name, meaning) #name,
#include "compiler/estimate/sizes.def"
#undef SIZE
};

int nxc_size_find(const char *name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return (int)i;
  return -1;
}

/* ---- reading ---- */

/* What the settings say, and the first of those that must be told and are not. */
typedef struct reading {
  const nxc_settings *settings;
  nxc_setting_id lacks;
} reading;

static double needed(reading *r, nxc_setting_id id) {
  if (nxc_has(r->settings, id)) return nxc_number(r->settings, id);
  if (r->lacks == NX_N_SETTINGS) r->lacks = id;
  return 1;
}

static double number_or(const nxc_settings *s, nxc_setting_id id, double otherwise) {
  return nxc_has(s, id) ? nxc_number(s, id) : otherwise;
}

static double flag(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) && nxc_flag(s, id) ? 1 : 0;
}

static double type_bytes(const nxc_settings *s, nxc_setting_id id) {
  return nxc_is(s, id, "bf16") || nxc_is(s, id, "fp16") ? 2 : 4;
}

static bool is_gated(const nxc_settings *s) {
  static const char *const gated[] = {"swiglu", "geglu", "reglu"};
  for (size_t i = 0; i < sizeof gated / sizeof *gated; i++)
    if (nxc_is(s, NX_SETTING_MODEL_ACTIVATION, gated[i])) return true;
  return false;
}

static void read_model(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  z->layers = needed(r, NX_SETTING_MODEL_LAYERS);
  z->hidden = needed(r, NX_SETTING_MODEL_HIDDEN);
  z->heads = needed(r, NX_SETTING_MODEL_HEADS);
  z->kv_heads = number_or(s, NX_SETTING_MODEL_KV_HEADS, z->heads);
  z->head_dim = number_or(s, NX_SETTING_MODEL_HEAD_DIM, z->hidden / z->heads);
  z->value_dim = z->head_dim;
  z->ffn = needed(r, NX_SETTING_MODEL_FFN_HIDDEN);
  z->gates = is_gated(s);
  z->tied = flag(s, NX_SETTING_MODEL_TIED_EMBEDDINGS);
  z->window = number_or(s, NX_SETTING_MODEL_SLIDING_WINDOW, 0);
  z->hidden_dropout = number_or(s, NX_SETTING_MODEL_HIDDEN_DROPOUT, 0) > 0;
  z->attention_dropout = number_or(s, NX_SETTING_MODEL_ATTENTION_DROPOUT, 0) > 0;
  double unit = number_or(s, NX_SETTING_MODEL_VOCAB_DIVISOR, 1) * z->tensor;
  z->vocab = ceil(needed(r, NX_SETTING_MODEL_VOCAB) / unit) * unit;
  z->vocab = number_or(s, NX_SETTING_MODEL_VOCAB_PADDED, z->vocab);
}

static void read_experts(reading *r, nxc_sizes *z) {
  if (nxc_int(r->settings, NX_SETTING_MOE_EXPERTS) <= 1) return;
  const nxc_mixture mixture = nxc_mixture_read(r->settings);
  z->experts = (double)mixture.n_experts;
  z->mixtures = (double)nxc_mixture_count(r->settings, (int64_t)z->layers);
  z->top_k = (double)mixture.top_k;
  z->expert_ffn = (double)mixture.hidden;
  z->shared_ffn = (double)mixture.shared_hidden;
}

static void read_mesh(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  z->world = needed(r, NX_SETTING_MESH_WORLD);
  z->tensor = number_or(s, NX_SETTING_MESH_TENSOR, 1);
  z->context = number_or(s, NX_SETTING_MESH_CONTEXT, 1);
  z->pipeline = number_or(s, NX_SETTING_MESH_PIPELINE, 1);
  z->chunks = z->pipeline > 1 ? number_or(s, NX_SETTING_MESH_VIRTUAL_PIPELINE, 1) : 1;
  z->expert = number_or(s, NX_SETTING_MESH_EXPERT, 1);
  z->expert_tensor = number_or(s, NX_SETTING_MESH_EXPERT_TENSOR, z->tensor);
  z->sequence_split = flag(s, NX_SETTING_SEQUENCE_PARALLEL) ? z->tensor : 1;
  z->data = fmax(1, floor(z->world / (z->tensor * z->context * z->pipeline)));
  z->replicas = number_or(s, NX_SETTING_MESH_REPLICATE, 1);
}

static void read_batch(reading *r, nxc_sizes *z) {
  z->sequence = needed(r, NX_SETTING_MODEL_SEQUENCE);
  z->micro_batch = needed(r, NX_SETTING_BATCH_MICRO);
  z->micro_batches = fmax(1, floor(needed(r, NX_SETTING_BATCH_GLOBAL) / (z->micro_batch * z->data)));
  z->tokens = z->micro_batch * z->sequence / z->context;
}

/* Moments that an update rule keeps of each parameter. */
static const struct {
  const char *optimizer;
  double states;
} state_rows[] = {{"adamw", 2},    {"adam", 2},  {"adamax", 2},     {"onebitadam", 2}, {"adadelta", 2},
                  {"adagrad", 1},  {"sm3", 1},   {"rmsprop", 1},    {"rprop", 2},      {"novograd", 1},
                  {"lion", 1},     {"muon", 1},  {"madgrad_wd", 3}, {"adafactor", 0},  {"sgd", 0},
                  {"signsgd", 0},  {"distsignsgd", 0}};

static double states_of(const nxc_settings *s) {
  for (size_t i = 0; i < sizeof state_rows / sizeof *state_rows; i++)
    if (nxc_is(s, NX_SETTING_OPTIMIZER_NAME, state_rows[i].optimizer))
      return state_rows[i].states + (number_or(s, NX_SETTING_OPTIMIZER_MOMENTUM, 0) > 0 &&
                                     strcmp(state_rows[i].optimizer, "sgd") == 0);
  return 2;
}

static void read_precision(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  z->param_bytes = type_bytes(s, NX_SETTING_PRECISION_PARAM);
  z->compute_bytes = type_bytes(s, NX_SETTING_PRECISION_COMPUTE);
  z->grad_bytes = type_bytes(s, NX_SETTING_PRECISION_GRAD_ACCUMULATION);
  z->reduce_bytes = type_bytes(s, NX_SETTING_PRECISION_REDUCE);
  z->state_bytes = type_bytes(s, NX_SETTING_PRECISION_OPTIMIZER_STATE);
  z->master = z->param_bytes < 4 ? flag(s, NX_SETTING_PRECISION_MASTER_WEIGHTS) : 0;
  z->fp8 = nxc_is(s, NX_SETTING_PRECISION_PRODUCTS, "fp8");
  z->flash = flag(s, NX_SETTING_ATTENTION_FLASH);
}

static void read_optimizer(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  z->states = states_of(s);
  z->zero = number_or(s, NX_SETTING_OPTIMIZER_ZERO_STAGE, 0);
  z->reshards = nxc_has(s, NX_SETTING_OPTIMIZER_RESHARD_AFTER_FORWARD)
                    ? flag(s, NX_SETTING_OPTIMIZER_RESHARD_AFTER_FORWARD)
                    : 1;
  z->bucket = number_or(s, NX_SETTING_REDUCE_BUCKET_ELEMENTS, 0);
  z->overlap_reduce = flag(s, NX_SETTING_REDUCE_OVERLAP);
  z->overlap_tensor = flag(s, NX_SETTING_TENSOR_OVERLAP);
  z->overlap_gather = flag(s, NX_SETTING_GATHER_OVERLAP);
  double of_stage = z->data * z->context, experts = z->world / (z->pipeline * z->expert * z->expert_tensor);
  bool divides = z->zero >= 1;
  z->shard = divides ? fmax(1, of_stage / z->replicas) : 1;
  z->expert_shard = divides ? fmax(1, experts / z->replicas) : 1;
}

static void read_recompute(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  z->recomputes_all = nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "full");
  z->recompute_block = z->recomputes_all && nxc_is(s, NX_SETTING_RECOMPUTE_METHOD, "block");
  z->recompute_layers = number_or(s, NX_SETTING_RECOMPUTE_LAYERS, 1);
  z->recompute_divides = z->recomputes_all && flag(s, NX_SETTING_RECOMPUTE_DISTRIBUTE);
}

/* Adapters are small beside what they adapt: what is frozen has no gradient and no state. */
static void read_task(reading *r, nxc_sizes *z) {
  const nxc_settings *s = r->settings;
  bool adapts = number_or(s, NX_SETTING_LORA_RANK, 0) > 0;
  bool refers = nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, "dpo");
  z->models = refers && !adapts ? 2 : 1;
  z->frozen_bytes = z->param_bytes;
  z->trained = 1;
  if (!adapts) return;
  double rank = nxc_number(s, NX_SETTING_LORA_RANK), d = z->head_dim;
  double each[][2] = {{z->hidden, (z->heads + 2 * z->kv_heads) * d}, {z->heads * d, z->hidden}};
  double frozen = 0, added = 0;
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    frozen += each[i][0] * each[i][1];
    added += rank * (each[i][0] + each[i][1]);
  }
  frozen += (2 + z->gates) * z->hidden * z->ffn;
  z->trained = added / (frozen + added);
}

bool nxc_sizes_read(const nxc_settings *settings, nxc_sizes *out, nxc_setting_id *lacks) {
  reading r = {settings, NX_N_SETTINGS};
  *out = (nxc_sizes){.first = 1};
  read_mesh(&r, out);
  read_model(&r, out);
  read_experts(&r, out);
  read_batch(&r, out);
  read_precision(&r, out);
  read_optimizer(&r, out);
  read_recompute(&r, out);
  read_task(&r, out);
  *lacks = r.lacks;
  return r.lacks == NX_N_SETTINGS;
}

/* ---- a stage ---- */

static double attention_parameters(const nxc_sizes *z) {
  return z->hidden * (z->heads + z->kv_heads) * z->head_dim + (z->kv_heads + z->heads) * z->value_dim * z->hidden;
}

static double network_parameters(const nxc_sizes *z, double width) {
  return (2 + z->gates) * z->hidden * width;
}

/* The number behind the last dot of a layer's name, -1 where there is none. */
static double layer_of_cut(const char *name) {
  const char *dot = strrchr(name, '.');
  char *end;
  const char *digits = dot ? dot + 1 : name;
  long layer = strtol(digits, &end, 10);
  return end == digits || *end ? -1 : (double)layer;
}

/* Layers before a chunk of layers, of `n_chunks`. */
static double layers_before(const nxc_sizes *z, const nxc_settings *s, uint32_t chunk, uint32_t n_chunks) {
  size_t n_cuts = 0;
  const nxc_value *cuts = NULL;
  if (nxc_has(s, NX_SETTING_PIPELINE_CUTS)) cuts = nxc_list(s, NX_SETTING_PIPELINE_CUTS, &n_cuts);
  if (chunk == 0) return 0;
  if (n_cuts + 1 == n_chunks && chunk < n_chunks) return layer_of_cut(cuts[chunk - 1].text) + 1;
  double each = floor(z->layers / n_chunks), larger = z->layers - each * n_chunks, smaller = n_chunks - larger;
  return each * chunk + fmax(0, chunk - smaller);
}

static double stage_layers(const nxc_sizes *z, const nxc_settings *s, uint32_t stage) {
  uint32_t stages = (uint32_t)z->pipeline, n_chunks = stages * (uint32_t)z->chunks;
  double layers = 0;
  for (uint32_t chunk = stage; chunk < n_chunks; chunk += stages)
    layers += layers_before(z, s, chunk + 1, n_chunks) - layers_before(z, s, chunk, n_chunks);
  return layers;
}

/* One forward, one backward: a stage has as many micro-batches in flight as stages follow it, itself counted.
 * With several chunks on a stage its warm-up is 2 (stages after it) + (chunks - 1) stages passes of a chunk, and
 * one more is under way (arXiv:2104.04473). */
static double in_flight(const nxc_sizes *z, const nxc_settings *s, uint32_t stage) {
  double after = z->pipeline - 1 - stage;
  if (nxc_is(s, NX_SETTING_PIPELINE_SCHEDULE, "gpipe")) return z->micro_batches;
  if (z->chunks > 1) return fmin(z->micro_batches, (2 * after + (z->chunks - 1) * z->pipeline + 1) / z->chunks);
  return fmin(z->micro_batches, after + 1);
}

void nxc_sizes_of_stage(const nxc_sizes *sizes, const nxc_settings *settings, uint32_t stage, nxc_sizes *z) {
  *z = *sizes;
  z->first = stage == 0;
  z->last = stage + 1 == z->pipeline;
  z->stage_layers = stage_layers(z, settings, stage);
  z->stage_mixtures = z->mixtures * z->stage_layers / z->layers;
  z->in_flight = in_flight(z, settings, stage);
  double dense = z->stage_layers - z->stage_mixtures, embedding = z->vocab * z->hidden / z->tensor;
  double norms = 2 * z->hidden;
  double attention = attention_parameters(z) / z->tensor, network = network_parameters(z, z->ffn) / z->tensor;
  double shared = network_parameters(z, z->shared_ffn) / z->tensor + z->hidden * z->experts;
  z->parameters = z->stage_layers * (attention + norms) + dense * network + z->stage_mixtures * shared;
  if (z->first) z->parameters += embedding;
  if (z->last) z->parameters += z->hidden + (z->tied && z->first ? 0 : embedding);
  double experts = z->experts * network_parameters(z, z->expert_ffn) / (z->expert * z->expert_tensor);
  z->expert_parameters = z->stage_mixtures * experts;
  z->unit = fmax(attention + norms + (dense > 0 ? network : 0), z->stage_mixtures > 0 ? attention + shared + experts : 0);
}
