/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/training.h"

#include "compiler/program/passes/passes.h"

#include "compiler/config/refusal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool check_executable(const nxc_settings *settings, nxc_sink *sink) {
  bool good = true;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    if (!nxc_setting_is_refused(settings, id)) continue;
    nxc_report(sink, "NX3001", NXC_SEVERITY_ERROR, nxc_settings_span(settings, id), NULL,
               "nxrun cannot execute %s = %s: %s", nxc_setting_name_in_dialect(settings, id),
               nxc_settings_show(settings, id), nxc_setting_rows[id].why);
    good = false;
  }
  return good;
}

static bool check_known(const nxc_settings *settings, nxc_sink *sink) {
  nxc_setting_id ids[NX_N_SETTINGS];
  size_t n = nxc_settings_unknown_for_plan(settings, ids);
  for (size_t i = 0; i < n; i++)
    nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "%s is unknown, and a plan needs it",
               nxc_setting_name_in_dialect(settings, ids[i]));
  return n == 0;
}

static int64_t int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}

static void read_mesh(const nxc_settings *s, nxc_training *t) {
  t->world = (uint32_t)nxc_int(s, NX_SETTING_MESH_WORLD);
  t->nodes = (uint32_t)nxc_int(s, NX_SETTING_MESH_NODES);
  t->tensor = (uint32_t)nxc_int(s, NX_SETTING_MESH_TENSOR);
  t->context = (uint32_t)nxc_int(s, NX_SETTING_MESH_CONTEXT);
  bool only_ulysses = nxc_flag(s, NX_SETTING_ATTENTION_ULYSSES) && !nxc_flag(s, NX_SETTING_ATTENTION_RING);
  t->ulysses = (uint32_t)int_or(s, NX_SETTING_MESH_ULYSSES, only_ulysses ? t->context : 1);
  t->replicate = (uint32_t)nxc_int(s, NX_SETTING_MESH_REPLICATE);
  t->expert = (uint32_t)nxc_int(s, NX_SETTING_MESH_EXPERT);
  t->expert_tensor = (uint32_t)int_or(s, NX_SETTING_MESH_EXPERT_TENSOR, t->tensor);
  t->pipeline = (uint32_t)nxc_int(s, NX_SETTING_MESH_PIPELINE);
  t->n_chunks = t->pipeline;
  if (t->pipeline > 1) t->n_chunks *= (uint32_t)nxc_int(s, NX_SETTING_MESH_VIRTUAL_PIPELINE);
  t->data = t->world / t->tensor / t->context / t->pipeline;
  t->sequence_parallel = nxc_flag(s, NX_SETTING_SEQUENCE_PARALLEL) && t->tensor > 1;
  t->micro_batch = nxc_int(s, NX_SETTING_BATCH_MICRO);
  t->global_batch = nxc_int(s, NX_SETTING_BATCH_GLOBAL);
  t->n_micro_batches = t->data ? t->global_batch / (t->micro_batch * t->data) : 0;
}

static void read_pipeline(const nxc_settings *s, nxc_training *t) {
  size_t n_cuts = 0;
  t->gpipe = nxc_is(s, NX_SETTING_PIPELINE_SCHEDULE, "gpipe");
  t->receive_ahead = nxc_flag(s, NX_SETTING_PIPELINE_RECEIVE_AHEAD);
  if (nxc_has(s, NX_SETTING_PIPELINE_CUTS)) t->cuts = nxc_list(s, NX_SETTING_PIPELINE_CUTS, &n_cuts);
  if (n_cuts + 1 != t->n_chunks) t->cuts = NULL; /* check_pipeline says so */
}

static void read_sizes(const nxc_settings *s, nxc_training *t) {
  t->layers = nxc_int(s, NX_SETTING_MODEL_LAYERS);
  t->unique_layers = int_or(s, NX_SETTING_MODEL_UNIQUE_LAYERS, t->layers);
  t->spaced = nxc_is(s, NX_SETTING_MODEL_LAYER_SHARING, "spaced");
  t->hidden = nxc_int(s, NX_SETTING_MODEL_HIDDEN);
  t->ffn_hidden = nxc_int(s, NX_SETTING_MODEL_FFN_HIDDEN);
  t->heads = nxc_int(s, NX_SETTING_MODEL_HEADS);
  t->kv_heads = int_or(s, NX_SETTING_MODEL_KV_HEADS, t->heads);
  t->head_dim = int_or(s, NX_SETTING_MODEL_HEAD_DIM, t->hidden / t->heads);
  t->sequence = nxc_int(s, NX_SETTING_MODEL_SEQUENCE);
  t->max_positions = int_or(s, NX_SETTING_MODEL_MAX_POSITIONS, t->sequence);
  t->vocab = nxc_int(s, NX_SETTING_MODEL_VOCAB);
  int64_t unit = nxc_int(s, NX_SETTING_MODEL_VOCAB_DIVISOR) * t->tensor;
  t->vocab_padded = (t->vocab + unit - 1) / unit * unit;
  t->vocab_padded = int_or(s, NX_SETTING_MODEL_VOCAB_PADDED, t->vocab_padded);
}

static void read_positions(const nxc_settings *s, nxc_training *t) {
  t->learned_positions = nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "learned");
  if (nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "rope"))
    t->rotary_dims =
        (int64_t)((double)t->head_dim * nxc_number(s, NX_SETTING_MODEL_ROTARY_PERCENTAGE)) / 2 * 2;
  t->rope_theta = nxc_number(s, NX_SETTING_MODEL_ROPE_THETA);
  t->rope_scaling = nxc_is(s, NX_SETTING_MODEL_ROPE_SCALING, "linear")      ? 1
                    : nxc_is(s, NX_SETTING_MODEL_ROPE_SCALING, "llama3") ? 2
                                                                         : 0;
  t->rope_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_FACTOR);
  t->rope_low_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_LOW_FREQ_FACTOR);
  t->rope_high_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_HIGH_FREQ_FACTOR);
  t->rope_original_positions = nxc_int(s, NX_SETTING_MODEL_ROPE_ORIGINAL_POSITIONS);
}

static nx_names names_of(const nxc_settings *s, const nxc_training *t) {
  static const struct {
    const char *word;
    nx_names names;
  } rows[] = {{"llama", NX_NAMES_LLAMA}, {"gpt2", NX_NAMES_GPT2}, {"deepseek", NX_NAMES_DEEPSEEK}};
  for (size_t i = 0; nxc_has(s, NX_SETTING_MODEL_CHECKPOINT_NAMES) && i < sizeof rows / sizeof *rows; i++)
    if (nxc_is(s, NX_SETTING_MODEL_CHECKPOINT_NAMES, rows[i].word)) return rows[i].names;
  if (t->mixture.shared_hidden) return NX_NAMES_DEEPSEEK;
  return t->learned_positions && t->mixture.n_experts == 0 ? NX_NAMES_GPT2 : NX_NAMES_LLAMA;
}

static void read_form(const nxc_settings *s, nxc_training *t) {
  t->swiglu = nxc_is(s, NX_SETTING_MODEL_ACTIVATION, "swiglu");
  t->gelu_tanh = nxc_is(s, NX_SETTING_MODEL_ACTIVATION, "gelu_tanh");
  t->rms_norm = nxc_is(s, NX_SETTING_MODEL_NORMALIZATION, "rmsnorm");
  t->norm_bias = !t->rms_norm && nxc_flag(s, NX_SETTING_MODEL_NORM_BIAS);
  t->norm_epsilon = nxc_number(s, NX_SETTING_MODEL_NORM_EPSILON);
  t->bias = nxc_flag(s, NX_SETTING_MODEL_BIAS);
  t->qkv_bias = t->bias || nxc_flag(s, NX_SETTING_MODEL_QKV_BIAS);
  t->tied = nxc_flag(s, NX_SETTING_MODEL_TIED_EMBEDDINGS);
  t->fused_qkv = nxc_flag(s, NX_SETTING_MODEL_FUSED_QKV);
  t->qk_layer_scaling = nxc_flag(s, NX_SETTING_MODEL_QUERY_KEY_LAYER_SCALING);
  t->init_std = nxc_number(s, NX_SETTING_MODEL_INIT_STD);
  t->output_init_std = t->init_std;
  if (nxc_flag(s, NX_SETTING_MODEL_SCALED_INIT)) t->output_init_std /= sqrt(2.0 * (double)t->layers);
  t->hidden_dropout = nxc_number(s, NX_SETTING_MODEL_HIDDEN_DROPOUT);
  t->attention_dropout = nxc_number(s, NX_SETTING_MODEL_ATTENTION_DROPOUT);
  t->ffn_dropout = nxc_number(s, NX_SETTING_MODEL_FFN_DROPOUT);
  t->names = names_of(s, t);
}

static void read_documents(const nxc_settings *s, nxc_training *t) {
  t->separate_documents = nxc_flag(s, NX_SETTING_DATA_RESET_ATTENTION_MASK);
  t->restart_positions = nxc_flag(s, NX_SETTING_DATA_RESET_POSITION_IDS);
  t->mask_document_ends = nxc_flag(s, NX_SETTING_DATA_EOD_MASK_LOSS);
  t->end_of_document = int_or(s, NX_SETTING_DATA_END_OF_DOCUMENT, -1);
}

static void read_recompute(const nxc_settings *s, nxc_training *t) {
  t->recompute_full = nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "full");
  t->recompute_block = nxc_is(s, NX_SETTING_RECOMPUTE_METHOD, "block");
  t->recompute_layers = nxc_int(s, NX_SETTING_RECOMPUTE_LAYERS);
  t->recompute_distribute = t->recompute_full && t->tensor > 1 && !t->sequence_parallel &&
                            nxc_flag(s, NX_SETTING_RECOMPUTE_DISTRIBUTE);
  if (nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "selective"))
    t->recompute_modules = nxc_list(s, NX_SETTING_RECOMPUTE_MODULES, &t->n_recompute_modules);
}

static void read_optimizer(const nxc_settings *s, nxc_training *t) {
  size_t n_betas;
  const nxc_value *betas = nxc_list(s, NX_SETTING_OPTIMIZER_BETAS, &n_betas);
  t->adamw = nxc_is(s, NX_SETTING_OPTIMIZER_NAME, "adamw");
  t->norm_weight_decay = nxc_flag(s, NX_SETTING_OPTIMIZER_NORM_WEIGHT_DECAY);
  t->lr = nxc_number(s, NX_SETTING_OPTIMIZER_LR);
  t->beta1 = n_betas > 0 ? betas[0].number : 0;
  t->beta2 = n_betas > 1 ? betas[1].number : 0;
  t->epsilon = nxc_number(s, NX_SETTING_OPTIMIZER_EPSILON);
  t->weight_decay = nxc_number(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY);
  t->clip_norm =
      nxc_has(s, NX_SETTING_OPTIMIZER_CLIP_NORM) ? nxc_number(s, NX_SETTING_OPTIMIZER_CLIP_NORM) : 0;
  t->zero_stage = (uint32_t)nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE);
  t->reshard_after_forward = nxc_flag(s, NX_SETTING_OPTIMIZER_RESHARD_AFTER_FORWARD);
  t->overlap_reduce = nxc_flag(s, NX_SETTING_REDUCE_OVERLAP);
  t->overlap_gather = nxc_flag(s, NX_SETTING_GATHER_OVERLAP);
  t->reduce_once = nxc_flag(s, NX_SETTING_REDUCE_ONCE);
  t->bucket_elements = (uint64_t)int_or(s, NX_SETTING_REDUCE_BUCKET_ELEMENTS, 0);
  t->keep_below = t->zero_stage == 3 ? (uint64_t)nxc_int(s, NX_SETTING_GATHER_KEEP_BELOW) : 0;
  bool from_zero = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "zero");
  t->schedule_shape = nxc_is(s, NX_SETTING_SCHEDULE_NAME, "linear")   ? 1
                      : nxc_is(s, NX_SETTING_SCHEDULE_NAME, "cosine")    ? (from_zero ? 4 : 2)
                      : nxc_is(s, NX_SETTING_SCHEDULE_NAME, "annealing") ? 3
                      : from_zero                                        ? 5
                                                                         : 0;
  t->warmup_steps = nxc_int(s, NX_SETTING_SCHEDULE_WARMUP_STEPS);
  t->constant_steps = nxc_int(s, NX_SETTING_SCHEDULE_CONSTANT_STEPS);
  t->max_steps = nxc_int(s, NX_SETTING_SCHEDULE_MAX_STEPS);
  t->min_lr = nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR);
}

static nx_dtype type_of(const nxc_settings *s, nxc_setting_id id) {
  return nxc_is(s, id, "bf16") ? NX_bf16 : NX_f32;
}

static void read_types(const nxc_settings *s, nxc_training *t) {
  t->types = (nxc_types){.param = type_of(s, NX_SETTING_PRECISION_PARAM),
                         .activation = type_of(s, NX_SETTING_PRECISION_COMPUTE),
                         .partial = type_of(s, NX_SETTING_PRECISION_REDUCE),
                         .grad = type_of(s, NX_SETTING_PRECISION_GRAD_ACCUMULATION),
                         .state = type_of(s, NX_SETTING_PRECISION_OPTIMIZER_STATE)};
  t->types.master = nxc_flag(s, NX_SETTING_PRECISION_MASTER_WEIGHTS) && t->types.param != NX_f32;
  t->target = nxc_is(s, NX_SETTING_RUN_TARGET, "cpu-avx2")  ? NX_TARGET_CPU_AVX2
              : nxc_is(s, NX_SETTING_RUN_TARGET, "cpu-amx") ? NX_TARGET_CPU_AMX
                                                            : NX_TARGET_CPU_AVX512;
}

/* Key and value heads are copied just as often as whole heads per rank need. */
static uint32_t kv_copies(const nxc_training *t) {
  int64_t tensor = t->tensor, divisor = t->kv_heads;
  while (tensor != 0) {
    int64_t rest = divisor % tensor;
    divisor = tensor;
    tensor = rest;
  }
  return (uint32_t)(t->tensor / divisor);
}

/* Settings that are factors of sizes, or have 32 bits in the plan. */
static const nxc_setting_id counts[] = {
    NX_SETTING_MESH_WORLD,          NX_SETTING_MESH_TENSOR,         NX_SETTING_MESH_NODES,
    NX_SETTING_MESH_PIPELINE,       NX_SETTING_MESH_VIRTUAL_PIPELINE,
    NX_SETTING_MESH_CONTEXT,        NX_SETTING_MESH_ULYSSES,        NX_SETTING_MESH_REPLICATE,
    NX_SETTING_MESH_EXPERT,         NX_SETTING_MESH_EXPERT_TENSOR,
    NX_SETTING_BATCH_MICRO,         NX_SETTING_BATCH_GLOBAL,        NX_SETTING_MODEL_LAYERS,
    NX_SETTING_MODEL_HIDDEN,        NX_SETTING_MODEL_FFN_HIDDEN,    NX_SETTING_MODEL_HEADS,
    NX_SETTING_MODEL_KV_HEADS,      NX_SETTING_MODEL_HEAD_DIM,      NX_SETTING_MODEL_SEQUENCE,
    NX_SETTING_MODEL_VOCAB,         NX_SETTING_MODEL_VOCAB_DIVISOR, NX_SETTING_MODEL_VOCAB_PADDED,
    NX_SETTING_RUN_LOG_EVERY,       NX_SETTING_CHECKPOINT_KEEP,     NX_SETTING_CHECKPOINT_EVERY_STEPS,
    NX_SETTING_MODEL_MAX_POSITIONS,
};

static bool check_counts(const nxc_settings *settings, nxc_sink *sink) {
  bool good = true;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (!nxc_has(settings, counts[i]) || nxc_int(settings, counts[i]) <= INT32_MAX) continue;
    nxc_report(sink, "NX3007", NXC_SEVERITY_ERROR, nxc_settings_span(settings, counts[i]), NULL,
               "%s = %s is more than a plan can hold", nxc_setting_name_in_dialect(settings, counts[i]),
               nxc_settings_show(settings, counts[i]));
    good = false;
  }
  return good;
}

/* Elements of all activations and of all parameters, roughly: below it no size overflows, and no machine is
 * near. */
static bool fits(const nxc_training *t) {
  double tokens = (double)t->micro_batch * (double)t->sequence,
         heads = (double)t->heads * (double)t->head_dim;
  const nxc_mixture *m = &t->mixture;
  double width = 16 * ((double)t->hidden + (double)t->ffn_hidden + heads + (double)m->shared_hidden);
  width += 16 * (double)m->hidden * (double)(m->n_experts + 1) * (m->buffer_factor + (double)m->top_k);
  double tables = 2 * (double)t->hidden * ((double)t->vocab_padded + (double)t->max_positions);
  double parameters = (double)t->layers * (double)t->hidden * width + tables;
  return (double)t->layers * tokens * width + tokens * (double)t->vocab_padded < 1e15 && parameters < 1e15;
}

typedef struct demand {
  bool met;
  nxc_setting_id at;
  const char *id, *text;
} demand;

static bool check_demands(const nxc_settings *s, nxc_sink *sink, const demand *demands, size_t n) {
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    if (demands[i].met) continue;
    nxc_report(sink, demands[i].id, NXC_SEVERITY_ERROR, nxc_settings_span(s, demands[i].at), NULL,
               "%s (%s is %s)", demands[i].text, nxc_setting_name_in_dialect(s, demands[i].at),
               nxc_settings_show(s, demands[i].at));
    good = false;
  }
  return good;
}

static bool check_layout(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  int64_t batch = t->micro_batch * t->data;
  const demand demands[] = {
      {t->data && t->data * (uint64_t)t->tensor * t->context * t->pipeline == t->world, NX_SETTING_MESH_WORLD,
       "NX3003", "tensor-parallel x context-parallel degree x pipeline stages do not divide the ranks"},
      {t->context % t->ulysses == 0, NX_SETTING_MESH_ULYSSES, "NX3003",
       "the ranks that exchange heads for sequence do not divide the context-parallel ranks"},
      {t->data % t->replicate == 0, NX_SETTING_MESH_REPLICATE, "NX3003",
       "the copies of the divided state do not divide the data-parallel ranks"},
      {t->world % t->nodes == 0, NX_SETTING_MESH_NODES, "NX3003", "the hosts do not divide the ranks"},
      {batch && t->global_batch % batch == 0, NX_SETTING_BATCH_GLOBAL, "NX3003",
       "the global batch is not a whole number of micro-batches on every data-parallel rank"},
      {t->heads % t->tensor == 0, NX_SETTING_MODEL_HEADS, "NX3003",
       "the tensor-parallel ranks do not divide the heads"},
      {t->heads % t->kv_heads == 0, NX_SETTING_MODEL_KV_HEADS, "NX3003",
       "the key heads do not divide the query heads"},
      {t->ffn_hidden % t->tensor == 0, NX_SETTING_MODEL_FFN_HIDDEN, "NX3003",
       "the tensor-parallel ranks do not divide the feed-forward width"},
      {t->vocab_padded % t->tensor == 0 && t->vocab_padded >= t->vocab, NX_SETTING_MODEL_VOCAB, "NX3003",
       "the tensor-parallel ranks do not divide the padded vocabulary"},
      {!t->sequence_parallel || t->sequence % (t->tensor * (int64_t)t->context) == 0, NX_SETTING_MODEL_SEQUENCE,
       "NX3003", "the tensor-parallel ranks do not divide the sequence, as sequence parallelism needs"},
      {t->context == 1 || t->sequence % (2 * (int64_t)t->context) == 0, NX_SETTING_MODEL_SEQUENCE, "NX3003",
       "the sequence is not a whole number of pieces, two for each context-parallel rank"},
      {t->heads % (t->tensor * (int64_t)t->ulysses) == 0 &&
           t->kv_heads * t->kv_replica % (t->tensor * (int64_t)t->ulysses) == 0,
       NX_SETTING_MESH_ULYSSES, "NX3003",
       "the ranks that exchange heads for sequence do not divide a tensor-parallel rank's query and key heads"},
      {t->max_positions >= t->sequence, NX_SETTING_MODEL_SEQUENCE, "NX3003",
       "a sequence is longer than there are positions"},
  };
  return check_demands(s, sink, demands, sizeof demands / sizeof *demands);
}

/* The atoms that ZeRO divides over: all of a stage but copies, and those of the context that are left out. */
static uint32_t zero_axis(const nxc_settings *s, const nxc_training *t) {
  static const struct {
    const char *word;
    nxc_axis_id without;
  } rows[] = {{"ulysses", NXC_AXIS_RING}, {"ring", NXC_AXIS_ULYSSES}, {"none", NXC_AXIS_CONTEXT}};
  if (t->zero_stage == 0) return 0;
  uint32_t over = nxc_axis(&t->mesh, NXC_AXIS_STAGE) & ~nxc_axis(&t->mesh, NXC_AXIS_REPLICATE);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (nxc_is(s, NX_SETTING_OPTIMIZER_ZERO_CONTEXT, rows[i].word)) over &= ~nxc_axis(&t->mesh, rows[i].without);
  return over;
}

/* The mesh, once its degrees are known to divide one another. */
static bool make_mesh(const nxc_settings *s, nxc_sink *sink, nxc_training *t) {
  const nxc_degrees degrees = {.kv_replica = t->kv_replica,
                               .kv_group = t->tensor / t->kv_replica,
                               .ulysses = t->ulysses,
                               .ring = t->context / t->ulysses,
                               .shard = t->data / t->replicate,
                               .replicate = t->replicate,
                               .pipeline = t->pipeline,
                               .has_experts = t->mixture.n_experts > 0,
                               .expert = t->expert,
                               .expert_tensor = t->expert_tensor,
                               .order = nxc_text(s, NX_SETTING_MESH_ORDER)};
  nx_fault fault;
  if (nxc_mesh_new(&degrees, &t->mesh, &fault)) {
    t->zero_axis = zero_axis(s, t);
    return true;
  }
  bool ordered = nxc_settings_span(s, NX_SETTING_MESH_ORDER).source != NULL;
  nxc_setting_id at = degrees.has_experts && !ordered ? NX_SETTING_MESH_EXPERT : NX_SETTING_MESH_ORDER;
  nxc_report(sink, "NX3010", NXC_SEVERITY_ERROR, nxc_settings_span(s, at), NULL, "%s", fault.text);
  return false;
}

static bool check_form(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  bool gpt2 = t->names == NX_NAMES_GPT2;
  bool documents = t->separate_documents || t->restart_positions || t->mask_document_ends;
  const demand demands[] = {
      {!documents || (t->end_of_document >= 0 && t->end_of_document < t->vocab), NX_SETTING_DATA_END_OF_DOCUMENT,
       "NX3020", "documents are told apart by a token that ends each, and this is no token of the vocabulary"},
      {t->kv_replica == 1 || t->kv_heads * t->kv_replica == t->tensor, NX_SETTING_MODEL_KV_HEADS, "NX3004",
       "key heads can be copied only where each tensor-parallel rank then holds one"},
      {t->types.param == t->types.activation, NX_SETTING_PRECISION_PARAM, "NX3005",
       "parameters and activations must have one type for the products"},
      {!gpt2 || !t->swiglu, NX_SETTING_MODEL_CHECKPOINT_NAMES, "NX3006",
       "GPT-2 has no name for the gate of a swiglu"},
  };
  return check_demands(s, sink, demands, sizeof demands / sizeof *demands);
}

static bool check_mixture(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_mixture *m = &t->mixture;
  int64_t n_pattern = m->pattern ? nxc_mixture_pattern(m->pattern, &(int64_t){0}) : t->layers;
  uint32_t tokens = nxc_axis(&t->mesh, NXC_AXIS_DATA) | nxc_axis(&t->mesh, NXC_AXIS_CONTEXT);
  if (t->sequence_parallel) tokens |= nxc_axis(&t->mesh, NXC_AXIS_TENSOR);
  uint32_t expert = nxc_axis(&t->mesh, NXC_AXIS_EXPERT), width = nxc_axis(&t->mesh, NXC_AXIS_EXPERT_TENSOR);
  uint32_t whole = nxc_axis(&t->mesh, NXC_AXIS_TENSOR) & ~tokens;
  const demand demands[] = {
      {m->n_experts % t->expert == 0, NX_SETTING_MESH_EXPERT, "NX3011", "the expert-parallel ranks do not divide the experts"},
      {m->top_k <= m->n_experts, NX_SETTING_MOE_TOP_K, "NX3011", "a token goes to more experts than there are"},
      {m->hidden % t->expert_tensor == 0, NX_SETTING_MESH_EXPERT_TENSOR, "NX3011",
       "the expert-tensor-parallel ranks do not divide the width of an expert"},
      {m->shared_hidden % t->tensor == 0, NX_SETTING_MOE_SHARED_FFN_HIDDEN, "NX3011",
       "the tensor-parallel ranks do not divide the width of the shared experts"},
      {n_pattern == t->layers, NX_SETTING_MOE_PATTERN, "NX3011",
       "the pattern of layers is no number, or list of 0 and 1 that is as long as the model has layers"},
      {m->pattern || m->offset < m->frequency, NX_SETTING_MOE_OFFSET, "NX3011",
       "the first mixture is beyond the first block of layers"},
      {(whole & (m->gathers ? 0 : expert)) == 0, NX_SETTING_SEQUENCE_PARALLEL, "NX3012",
       "experts that are divided over tensor-parallel ranks are sent tokens that only sequence parallelism divides"},
      {(whole & ~width) == 0 || (whole & width) == 0, NX_SETTING_MESH_EXPERT_TENSOR, "NX3012",
       "without sequence parallelism experts are divided over all tensor-parallel ranks or none"},
      {m->aux == 0 || m->aux_scope != NXC_AUX_OF_MODEL || t->pipeline == 1, NX_SETTING_MOE_AUX_LOSS_SCOPE, "NX3012",
       "a load-balancing loss over all layers couples pipeline stages before their backward passes"},
      {!t->bias, NX_SETTING_MODEL_BIAS, "NX3012", "products of experts have no biases"},
      {t->ffn_dropout == 0, NX_SETTING_MODEL_FFN_DROPOUT, "NX3012", "there is no dropout inside experts"},
      {t->names != NX_NAMES_GPT2, NX_SETTING_MODEL_CHECKPOINT_NAMES, "NX3006", "GPT-2 has no names for experts"},
  };
  return m->n_experts == 0 || check_demands(s, sink, demands, sizeof demands / sizeof *demands);
}

/* The systems pass over names that they do not know: so does this, but not in silence. */
static void check_modules(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  for (size_t i = 0; i < t->n_recompute_modules; i++)
    if (!nxc_recompute_knows(t->recompute_modules[i].text))
      nxc_report(sink, "NX3013", NXC_SEVERITY_WARNING, nxc_settings_span(s, NX_SETTING_RECOMPUTE_MODULES), NULL,
                 "there is no module %s to compute again", t->recompute_modules[i].text);
}

/* Interleaved, chunks take turns of as many micro-batches as there are stages. A last turn of much fewer would
 * come round to a stage whose next pass waits for a stage that waits for it. */
static bool fills_last_turn(const nxc_training *t) {
  int64_t rest = t->n_micro_batches % t->pipeline;
  return t->n_micro_batches <= t->pipeline || rest == 0 || rest + 2 >= t->pipeline;
}

static bool check_pipeline(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  size_t n_cuts = t->n_chunks - 1;
  bool has_cuts = nxc_has(s, NX_SETTING_PIPELINE_CUTS), rising = true;
  bool shares = t->unique_layers != t->layers;
  if (has_cuts) (void)nxc_list(s, NX_SETTING_PIPELINE_CUTS, &n_cuts);
  for (uint32_t chunk = 0; chunk < t->n_chunks; chunk++) {
    bool end = t->cuts != NULL && (chunk == 0 || chunk + 1 == t->n_chunks);
    int64_t n = nxc_training_layers_before(t, chunk + 1) - nxc_training_layers_before(t, chunk);
    rising = rising && (end ? n >= 0 : n > 0);
  }
  const demand demands[] = {
      {n_cuts + 1 == t->n_chunks, NX_SETTING_PIPELINE_CUTS, "NX3008",
       "there must be one cut less than there are chunks of layers"},
      {!has_cuts || rising, NX_SETTING_PIPELINE_CUTS, "NX3008",
       "each cut must name a later layer of the model than the one before"},
      {has_cuts || rising, NX_SETTING_MODEL_LAYERS, "NX3008",
       "there are not as many layers as chunks of layers"},
      {t->gpipe || t->n_chunks == t->pipeline || fills_last_turn(t), NX_SETTING_BATCH_GLOBAL, "NX3015",
       "with several chunks on a stage the last turn of micro-batches is too short"},
      {t->layers % t->unique_layers == 0, NX_SETTING_MODEL_UNIQUE_LAYERS, "NX3014",
       "the layers with weights of their own do not divide the layers"},
      {!shares || t->mixture.n_experts == 0, NX_SETTING_MODEL_UNIQUE_LAYERS, "NX3014",
       "mixtures of experts share no weights between layers"},
      {!shares || t->zero_stage < 2, NX_SETTING_MODEL_UNIQUE_LAYERS, "NX3014",
       "gradients of layers that share weights cannot be divided in every pass"},
      {!shares || t->n_chunks == t->pipeline, NX_SETTING_MODEL_UNIQUE_LAYERS, "NX3014",
       "layers that share weights may not be in several chunks of one stage"},
  };
  return check_demands(s, sink, demands, sizeof demands / sizeof *demands);
}

bool nxc_training_read(const nxc_settings *settings, nxc_sink *sink, nxc_training *t) {
  *t = (nxc_training){0};
  bool known = check_known(settings, sink), executable = check_executable(settings, sink);
  if (!known || !check_counts(settings, sink)) return false;
  read_mesh(settings, t);
  read_pipeline(settings, t);
  read_sizes(settings, t);
  read_positions(settings, t);
  nxc_mixture_read(settings, &t->mixture);
  read_form(settings, t);
  read_documents(settings, t);
  read_recompute(settings, t);
  read_optimizer(settings, t);
  read_types(settings, t);
  t->kv_replica = kv_copies(t);
  if (!fits(t)) {
    nxc_report(sink, "NX3007", NXC_SEVERITY_ERROR, nxc_settings_span(settings, NX_SETTING_MODEL_HIDDEN), NULL,
               "the model or its activations have more than 1e15 elements");
    *t = (nxc_training){0};
    return false;
  }
  if (!executable) return false;
  check_modules(settings, sink, t);
  return check_layout(settings, sink, t) && make_mesh(settings, sink, t) && check_form(settings, sink, t) &&
         check_mixture(settings, sink, t) && check_pipeline(settings, sink, t);
}

/* The number at the end of a layer's name; -1 where there is none, as of the embedding. */
static int64_t layer_of_name(const char *name) {
  const char *dot = strrchr(name, '.');
  const char *digits = dot == NULL ? name : dot + 1;
  char *end;
  long layer = strtol(digits, &end, 10);
  return end == digits || *end || layer < 0 || layer >= INT32_MAX ? -1 : layer;
}

int64_t nxc_training_weights_of(const nxc_training *t, int64_t layer) {
  if (layer < 0 || t->unique_layers == t->layers) return layer;
  return t->spaced ? layer / (t->layers / t->unique_layers) : layer % t->unique_layers;
}

int64_t nxc_training_layers_before(const nxc_training *t, uint32_t chunk) {
  if (chunk == 0) return 0;
  if (t->cuts != NULL && chunk < t->n_chunks) return layer_of_name(t->cuts[chunk - 1].text) + 1;
  int64_t each = t->layers / t->n_chunks, larger = t->layers % t->n_chunks; /* the last ones have one more */
  int64_t smaller = t->n_chunks - larger;
  return each * chunk + (chunk > smaller ? chunk - smaller : 0);
}

/* Elements of all matrices of so many layers, or of those that a token meets. */
static double matrix_elements(const nxc_training *t, int64_t n_layers, bool met) {
  const nxc_mixture *m = &t->mixture;
  double hidden = (double)t->hidden, n_mixtures = (double)nxc_mixture_layers(m, t->layers);
  double attention = hidden * (double)(t->head_dim * (2 * t->heads + 2 * t->kv_heads));
  double network = (t->swiglu ? 3 : 2) * hidden; /* per feature */
  double experts = (double)(met ? m->top_k : m->n_experts) * (double)m->hidden + (double)m->shared_hidden;
  double mixture = network * experts + hidden * (double)m->n_experts;
  return (double)n_layers * attention + ((double)n_layers - n_mixtures) * network * (double)t->ffn_hidden +
         n_mixtures * mixture;
}

uint64_t nxc_training_parameters(const nxc_training *t) {
  int64_t norm = t->hidden * (t->norm_bias ? 2 : 1), biases = 0;
  if (t->qkv_bias) biases += t->head_dim * (t->heads + 2 * t->kv_heads);
  if (t->bias) biases += 2 * t->hidden + t->ffn_hidden * (t->swiglu ? 2 : 1);
  int64_t tables =
      t->vocab * t->hidden * (t->tied ? 1 : 2) + (t->learned_positions ? t->max_positions * t->hidden : 0);
  return (uint64_t)matrix_elements(t, t->unique_layers, false) +
         (uint64_t)(t->unique_layers * (2 * norm + biases) + norm + tables);
}

double nxc_training_flops(const nxc_training *t) {
  double tokens = (double)(t->global_batch * t->sequence);
  double products = 2 * (matrix_elements(t, t->layers, true) + (double)(t->vocab_padded * t->hidden));
  double attention = 4.0 * (double)(t->layers * t->heads * t->head_dim) * (double)t->sequence;
  return 3 * tokens * (products + attention);
}
