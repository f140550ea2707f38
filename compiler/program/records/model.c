/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/model.h"

#include "compiler/program/records/read.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- tables: the settings' names come first in each row ---- */

static const nxc_activation activations[] = {
    {"swiglu", true, NX_ACTIVATION_SILU},
    {"gelu", false, NX_ACTIVATION_GELU},
    {"gelu_tanh", false, NX_ACTIVATION_GELU_TANH},
    {"geglu", true, NX_ACTIVATION_GELU},
    {"geglu_tanh", true, NX_ACTIVATION_GELU_TANH},
    {"reglu", true, NX_ACTIVATION_RELU},
    {"silu", false, NX_ACTIVATION_SILU},
    {"relu", false, NX_ACTIVATION_RELU},
    {"squared_relu", false, NX_ACTIVATION_SQUARED_RELU},
    {"quick_gelu", false, NX_ACTIVATION_QUICK_GELU},
    {"quick_geglu", true, NX_ACTIVATION_QUICK_GELU},
    {"mish", false, NX_ACTIVATION_MISH},
    {"softsign", false, NX_ACTIVATION_SOFTSIGN},
    {"glu", true, NX_ACTIVATION_SIGMOID},
    {"bilinear", true, NX_ACTIVATION_IDENTITY},
    {.name = NULL},
};

static const nxc_norm_kind norms[] = {
    {.name = "rmsnorm", .op = NX_OP_rms_norm},
    {.name = "layernorm", .op = NX_OP_layer_norm, .biased = true},
    {.name = "layernorm1p", .op = NX_OP_layer_norm, .biased = true, .zero_centred = true},
    {.name = "rmsnorm1p", .op = NX_OP_rms_norm, .zero_centred = true},
    {.name = "scalenorm", .op = NX_OP_scale_norm, .scalar = true},
    {.name = NULL},
};

/* The members of a layer's spec of the same names. */
typedef struct block_row {
  const char *name;
  bool norm_before, norm_after, norm_of_sum, adds_to_norm, parallel, one_norm, norm_within;
} block_row;

static const block_row blocks[] = {
    {.name = "pre_ln", .norm_before = true},
    {.name = "post_ln", .norm_of_sum = true},
    {.name = "normformer", .norm_before = true, .norm_after = true, .norm_within = true},
    {.name = "gpt_j", .norm_before = true, .parallel = true},
    {.name = "gpt_j_tied", .norm_before = true, .parallel = true, .one_norm = true},
    {.name = "residual_post_ln", .norm_before = true, .adds_to_norm = true},
    {.name = "norm_after", .norm_after = true},
    {.name = "sandwich", .norm_before = true, .norm_after = true},
    {.name = NULL},
};

typedef struct qk_norm_row {
  const char *name;
  nxc_qk_norm kind;
} qk_norm_row;

static const qk_norm_row qk_norms[] = {{"none", NXC_QK_PLAIN},
                                       {"head", NXC_QK_NORM_OF_HEAD},
                                       {"projection", NXC_QK_NORM_OF_ALL},
                                       {.name = NULL}};

typedef struct scaling_row {
  const char *name;
  nxc_rope_scaling scaling;
} scaling_row;

static const scaling_row scalings[] = {
    {"none", NXC_ROPE_PLAIN},      {"linear", NXC_ROPE_LINEAR}, {"llama3", NXC_ROPE_LLAMA3},
    {"dynamic", NXC_ROPE_DYNAMIC}, {"yarn", NXC_ROPE_YARN},     {"longrope", NXC_ROPE_LONGROPE},
    {.name = NULL},
};

/* What a method takes its deviation from. */
typedef enum init_deviation {
  GIVEN,
  OVER_BRANCHES,
  OVER_LAYERS,
  SMALL,
  WANG,
  XAVIER,
  ORTHOGONAL,
  SCALED_ORTHOGONAL
} init_deviation;

typedef struct init_row {
  const char *name;
  init_deviation deviation;
  bool uniform;
} init_row;

static const init_row inits[] = {
    {"normal", GIVEN, false},
    {"scaled_normal", OVER_BRANCHES, false},
    {"residual_scaled_normal", OVER_LAYERS, false},
    {"small_init", SMALL, false},
    {"wang_init", WANG, false},
    {"xavier_normal", XAVIER, false},
    {"xavier_uniform", XAVIER, true},
    {"orthogonal", ORTHOGONAL, false},
    {"scaled_orthogonal", SCALED_ORTHOGONAL, false},
    {.name = NULL},
};

/* The row that an enumeration names: the catalogue's values are the tables' names (tested). */
static const void *row_of(const nxc_settings *s, nxc_setting_id id, const void *rows, size_t row_bytes) {
  const char *row = rows;
  for (; *(const char *const *)(const void *)row != NULL; row += row_bytes)
    if (nxc_is(s, id, *(const char *const *)(const void *)row)) return row;
  return NULL;
}

/* ---- the parts of a layer ---- */

static nxc_norm_spec read_norm(const nxc_settings *s) {
  const nxc_norm_kind *kind = row_of(s, NX_SETTING_MODEL_NORMALIZATION, norms, sizeof *norms);
  assert(kind != NULL);
  return (nxc_norm_spec){.kind = kind,
                         .bias = kind->biased && nxc_flag(s, NX_SETTING_MODEL_NORM_BIAS),
                         .epsilon = nxc_number(s, NX_SETTING_MODEL_NORM_EPSILON)};
}

/* The base that stretches the longest wave so that the sequence is to it what the original positions were
 * ("NTK-aware"; Hugging Face, _compute_dynamic_ntk_parameters). */
static double dynamic_theta(const nxc_rope_spec *rope, int64_t sequence) {
  double longer = (double)sequence / (double)rope->original_positions, dims = (double)rope->dims;
  if (longer <= 1 || rope->dims <= 2) return rope->theta;
  return rope->theta * pow(rope->factor * longer - (rope->factor - 1), dims / (dims - 2));
}

/* The factors that the sequence's length chooses, and how much scores grow (Hugging Face,
 * _compute_longrope_parameters). How many there must be is judged elsewhere. */
static void read_longrope(const nxc_settings *s, nxc_rope_spec *rope) {
  int64_t sequence = nxc_int(s, NX_SETTING_MODEL_SEQUENCE);
  double original = (double)rope->original_positions;
  double longer = (double)nxc_int_or(s, NX_SETTING_MODEL_MAX_POSITIONS, sequence) / original;
  double usual = longer > 1 ? sqrt(1 + log(longer) / log(original)) : 1;
  nxc_setting_id id = sequence > rope->original_positions ? NX_SETTING_MODEL_ROPE_LONG_FACTORS
                                                          : NX_SETTING_MODEL_ROPE_SHORT_FACTORS;
  rope->scaling = NXC_ROPE_PLAIN;
  rope->amplitude = nxc_number_or(s, NX_SETTING_MODEL_ROPE_ATTENTION_FACTOR, usual);
  if (!nxc_has(s, id) || rope->dims == 0) return;
  size_t n;
  const nxc_value *factors = nxc_list(s, id, &n);
  double *frequencies = nxc_arena_array(nxc_settings_arena(s), n + 1, sizeof *frequencies);
  for (size_t i = 0; i < n; i++)
    frequencies[i] = pow(rope->theta, -2 * (double)i / (double)rope->dims) /
                     (factors[i].kind == NXC_INT ? (double)factors[i].integer : factors[i].number);
  rope->frequencies = frequencies;
  rope->n_frequencies = (int64_t)n;
}

/* What only some scalings take, in the place that the operator has for it. */
static void read_scaling(const nxc_settings *s, nxc_rope_spec *rope) {
  rope->amplitude = 1;
  if (rope->scaling == NXC_ROPE_LONGROPE) read_longrope(s, rope);
  if (rope->scaling == NXC_ROPE_DYNAMIC) {
    rope->theta = dynamic_theta(rope, nxc_int(s, NX_SETTING_MODEL_SEQUENCE));
    rope->scaling = NXC_ROPE_PLAIN;
  }
  if (rope->scaling != NXC_ROPE_YARN) return;
  if (!nxc_flag(s, NX_SETTING_MODEL_ROPE_TRUNCATE)) rope->scaling = NXC_ROPE_YARN_SMOOTH;
  rope->low_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_BETA_SLOW);
  rope->high_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_BETA_FAST);
  double usual = rope->factor > 1 ? 0.1 * log(rope->factor) + 1 : 1;
  rope->amplitude = nxc_number_or(s, NX_SETTING_MODEL_ROPE_ATTENTION_FACTOR, usual);
}

static nxc_rope_spec read_rope(const nxc_settings *s, int64_t head_dim, bool always) {
  const scaling_row *scaling = row_of(s, NX_SETTING_MODEL_ROPE_SCALING, scalings, sizeof *scalings);
  assert(scaling != NULL);
  nxc_rope_spec rope = {.theta = nxc_number(s, NX_SETTING_MODEL_ROPE_THETA),
                        .scaling = scaling->scaling,
                        .factor = nxc_number(s, NX_SETTING_MODEL_ROPE_FACTOR),
                        .low_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_LOW_FREQ_FACTOR),
                        .high_freq_factor = nxc_number(s, NX_SETTING_MODEL_ROPE_HIGH_FREQ_FACTOR),
                        .original_positions = nxc_int(s, NX_SETTING_MODEL_ROPE_ORIGINAL_POSITIONS),
                        .interleaved = nxc_flag(s, NX_SETTING_MODEL_ROPE_INTERLEAVED)};
  if (always || nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "rope"))
    rope.dims = (int64_t)((double)head_dim * nxc_number(s, NX_SETTING_MODEL_ROTARY_PERCENTAGE)) / 2 * 2;
  read_scaling(s, &rope);
  return rope;
}

static void read_latent(const nxc_settings *s, nxc_attention_spec *a) {
  a->kv_heads = a->heads;
  a->shared_dim = nxc_int_or(s, NX_SETTING_MODEL_LATENT_ROPE_DIM, a->head_dim / 2);
  if (!nxc_flag(s, NX_SETTING_MODEL_LATENT_NORM)) return;
  a->latent_norm = read_norm(s);
  a->latent_norm.epsilon = nxc_number_or(s, NX_SETTING_MODEL_LATENT_NORM_EPSILON, a->latent_norm.epsilon);
}

static nxc_attention_spec read_attention(const nxc_settings *s, int64_t hidden) {
  bool all = nxc_flag(s, NX_SETTING_MODEL_BIAS);
  nxc_attention_spec a = {.heads = nxc_int(s, NX_SETTING_MODEL_HEADS),
                          .window = nxc_int_or(s, NX_SETTING_MODEL_SLIDING_WINDOW, 0),
                          .dropout = nxc_number(s, NX_SETTING_MODEL_ATTENTION_DROPOUT),
                          .output_bias = all || nxc_flag(s, NX_SETTING_MODEL_ATTENTION_OUTPUT_BIAS),
                          .fused = nxc_flag(s, NX_SETTING_MODEL_FUSED_QKV),
                          .layer_scaling = nxc_flag(s, NX_SETTING_MODEL_QUERY_KEY_LAYER_SCALING)};
  a.kv_heads = nxc_int_or(s, NX_SETTING_MODEL_KV_HEADS, a.heads);
  a.head_dim = nxc_int_or(s, NX_SETTING_MODEL_HEAD_DIM, hidden / a.heads);
  a.value_dim = nxc_int_or(s, NX_SETTING_MODEL_VALUE_DIM, a.head_dim);
  a.query_rank = nxc_int_or(s, NX_SETTING_MODEL_LATENT_QUERY_RANK, 0);
  a.kv_rank = nxc_int_or(s, NX_SETTING_MODEL_LATENT_RANK, 0);
  a.scale = nxc_number_or(s, NX_SETTING_MODEL_ATTENTION_SCALE, 1 / sqrt((double)a.head_dim));
  a.soft_cap = nxc_number_or(s, NX_SETTING_MODEL_ATTENTION_SOFT_CAP, 0);
  a.sinks = nxc_flag(s, NX_SETTING_MODEL_ATTENTION_SINKS);
  a.alibi = nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "alibi");
  if (nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "relative"))
    a.relative = (nxc_relative_spec){.buckets = nxc_int(s, NX_SETTING_MODEL_RELATIVE_BUCKETS),
                                     .max_distance = nxc_int(s, NX_SETTING_MODEL_RELATIVE_MAX_DISTANCE),
                                     .factor = nxc_number(s, NX_SETTING_MODEL_RELATIVE_SCALE)};
  const qk_norm_row *norm = row_of(s, NX_SETTING_MODEL_QK_NORM, qk_norms, sizeof *qk_norms);
  assert(norm != NULL);
  a.qk_norm = norm->kind;
  a.qkv_bias = (all && a.kv_rank == 0) || nxc_flag(s, NX_SETTING_MODEL_QKV_BIAS);
  if (a.kv_rank > 0) read_latent(s, &a);
  bool latent = a.kv_rank > 0;
  a.rope = read_rope(s, latent ? a.shared_dim : a.head_dim, latent);
  return a;
}

static nxc_feed_forward_spec read_feed_forward(const nxc_settings *s, nxc_arena *arena) {
  const nxc_activation *row = row_of(s, NX_SETTING_MODEL_ACTIVATION, activations, sizeof *activations);
  nxc_activation *activation = nxc_arena_alloc(arena, sizeof *activation);
  assert(row != NULL);
  *activation = *row;
  activation->limit = nxc_number_or(s, NX_SETTING_MODEL_GATE_LIMIT, 0);
  activation->offset = nxc_number(s, NX_SETTING_MODEL_GATE_OFFSET);
  return (nxc_feed_forward_spec){
      .activation = activation,
      .width = nxc_int(s, NX_SETTING_MODEL_FFN_HIDDEN),
      .bias = nxc_flag(s, NX_SETTING_MODEL_BIAS) || nxc_flag(s, NX_SETTING_MODEL_FFN_BIAS),
      .dropout = nxc_number(s, NX_SETTING_MODEL_FFN_DROPOUT)};
}

static nxc_layer_spec read_layer(const nxc_settings *s, int64_t hidden, nxc_arena *arena) {
  const block_row *block = row_of(s, NX_SETTING_MODEL_BLOCK, blocks, sizeof *blocks);
  assert(block != NULL);
  return (nxc_layer_spec){.norm = read_norm(s),
                          .norm_before = block->norm_before,
                          .norm_after = block->norm_after,
                          .norm_of_sum = block->norm_of_sum,
                          .adds_to_norm = block->adds_to_norm,
                          .parallel = block->parallel,
                          .one_norm = block->one_norm,
                          .norm_within = block->norm_within,
                          .attention = read_attention(s, hidden),
                          .ffn = read_feed_forward(s, arena),
                          .dropout = nxc_number(s, NX_SETTING_MODEL_HIDDEN_DROPOUT)};
}

/* ---- layers ---- */

/* Whether a layer is the last one of a period, which is null where there is none. */
static bool ends_period(const nxc_settings *s, nxc_setting_id id, int64_t layer) {
  int64_t period = nxc_int_or(s, id, 0);
  return period > 0 && (layer + 1) % period == 0;
}

static bool multiplies_in_fp8(const nxc_settings *s, int64_t n_layers, int64_t layer) {
  return nxc_is(s, NX_SETTING_PRECISION_PRODUCTS, "fp8") &&
         layer >= nxc_int(s, NX_SETTING_PRECISION_FP8_FIRST_LAYERS) &&
         layer < n_layers - nxc_int(s, NX_SETTING_PRECISION_FP8_LAST_LAYERS);
}

/* What the settings tell layers apart by: bits of the number of a kind. */
enum {
  IS_MIXTURE = 1,
  IS_WHOLE = 2,
  IS_UNROTATED = 4,
  IS_FP8 = 8,
  IS_SPARSE = 16, /* times the kind */
  LAYER_KINDS = IS_SPARSE * NXC_N_SPARSE_KINDS
};

static nxc_layer_spec layer_of_kind(const nxc_layer_spec *plain, const nxc_mixture *mixture, int kind) {
  nxc_layer_spec spec = *plain;
  if (kind & IS_MIXTURE) spec.ffn.mixture = mixture;
  if (kind & IS_WHOLE) spec.attention.window = 0;
  if (kind & IS_UNROTATED) spec.attention.rope.dims = 0;
  if (kind & IS_FP8) spec.fp8 = true;
  spec.attention.sparse = (nxc_sparse_kind)(kind / IS_SPARSE);
  return spec;
}

static const nxc_mixture *read_mixture(const nxc_settings *s, int64_t n_layers, uint8_t *is_mixture,
                                       nxc_arena *arena) {
  if (nxc_int(s, NX_SETTING_MOE_EXPERTS) <= 1) return NULL;
  nxc_mixture *mixture = nxc_arena_alloc(arena, sizeof *mixture);
  *mixture = nxc_mixture_read(s);
  nxc_mixture_layers_read(s, n_layers, is_mixture);
  return mixture;
}

/* The first spec is that of kind 0, whether there is such a layer or not. */
static void read_layers(const nxc_settings *s, nxc_model *m, nxc_arena *arena) {
  const nxc_layer_spec plain = read_layer(s, m->hidden, arena);
  uint8_t *is_mixture = nxc_arena_array(arena, (size_t)m->layers, sizeof *is_mixture);
  uint8_t *sparse = nxc_arena_array(arena, (size_t)m->layers, sizeof *sparse);
  int number_of[LAYER_KINDS] = {0};
  m->specs = nxc_arena_array(arena, LAYER_KINDS, sizeof *m->specs);
  m->spec_of = nxc_arena_array(arena, (size_t)(m->layers + m->predict_depth), sizeof *m->spec_of);
  m->mixture = read_mixture(s, m->layers, is_mixture, arena);
  m->sparsity = nxc_sparsity_read(s);
  (void)nxc_sparsity_kinds(s, m->layers, sparse); /* judged before (training.c) */
  m->specs[m->n_specs++] = plain;
  for (int64_t layer = 0; layer < m->layers; layer++) {
    int kind = (is_mixture[layer] ? IS_MIXTURE : 0) + IS_SPARSE * sparse[layer];
    if (plain.attention.window > 0 && ends_period(s, NX_SETTING_MODEL_FULL_ATTENTION_EVERY, layer))
      kind |= IS_WHOLE;
    if (plain.attention.rope.dims > 0 && ends_period(s, NX_SETTING_MODEL_NO_ROPE_EVERY, layer))
      kind |= IS_UNROTATED;
    if (multiplies_in_fp8(s, m->layers, layer)) kind |= IS_FP8;
    if (kind != 0 && number_of[kind] == 0) {
      number_of[kind] = (int)m->n_specs;
      m->specs[m->n_specs++] = layer_of_kind(&plain, m->mixture, kind);
    }
    m->spec_of[layer] = (uint8_t)number_of[kind];
  }
  for (int64_t depth = 0; depth < m->predict_depth; depth++)
    m->spec_of[m->layers + depth] = m->spec_of[m->layers - 1];
}

/* ---- the whole ---- */

/* Of the families that have names for all parts of the model, the plainest. */
static const char *usual_family(const nxc_model *m) {
  const nxc_attention_spec *a = &m->specs[0].attention;
  if (a->sinks) return "gpt_oss";
  if (m->mixture && m->mixture->corrected) return "deepseek_v3";
  if (a->kv_rank > 0) return "deepseek_v2";
  if (m->mixture && m->mixture->shared_hidden > 0) return m->mixture->shared_gate ? "qwen2_moe" : "deepseek";
  if (m->mixture) return "mixtral";
  return m->learned_positions ? "gpt2" : "llama";
}

static const nxc_family *read_family(const nxc_settings *s, const nxc_model *m) {
  const char *usual = usual_family(m);
  bool named = nxc_has(s, NX_SETTING_MODEL_CHECKPOINT_NAMES);
  const nxc_family *family = nxc_family_find(named ? nxc_text(s, NX_SETTING_MODEL_CHECKPOINT_NAMES) : usual);
  assert(family != NULL); /* the catalogue's values are the families (tested) */
  return family;
}

static double deviation(const nxc_settings *s, const nxc_model *m, init_deviation of) {
  double std = nxc_number(s, NX_SETTING_MODEL_INIT_STD), layers = (double)m->layers,
         hidden = (double)m->hidden;
  switch (of) {
    case OVER_BRANCHES: return std / sqrt(2 * layers);
    case OVER_LAYERS: return std / sqrt(layers);
    case SMALL: return sqrt(2 / (5 * hidden));
    case WANG: return 2 / layers / sqrt(hidden);
    case ORTHOGONAL: return sqrt(2);
    case SCALED_ORTHOGONAL: return sqrt(2 / layers);
    default: return std;
  }
}

static nxc_init_spec read_init(const nxc_settings *s, const nxc_model *m, const init_row *row) {
  assert(row != NULL);
  return (nxc_init_spec){.xavier = row->deviation == XAVIER,
                         .uniform = row->uniform,
                         .orthogonal = row->deviation == ORTHOGONAL || row->deviation == SCALED_ORTHOGONAL,
                         .std = deviation(s, m, row->deviation)};
}

static void read_inits(const nxc_settings *s, nxc_model *m) {
  const init_row *row = row_of(s, NX_SETTING_MODEL_INIT_METHOD, inits, sizeof *inits);
  const init_row *output = row_of(s, NX_SETTING_MODEL_OUTPUT_INIT_METHOD, inits, sizeof *inits);
  if (output == NULL) output = row;
  m->init = m->embedding_init = read_init(s, m, row);
  if (nxc_has(s, NX_SETTING_MODEL_EMBEDDING_INIT_STD))
    m->embedding_init = (nxc_init_spec){.std = nxc_number(s, NX_SETTING_MODEL_EMBEDDING_INIT_STD)};
  m->output_init = read_init(s, m, output);
  bool scaled = !nxc_has(s, NX_SETTING_MODEL_OUTPUT_INIT_METHOD) && nxc_flag(s, NX_SETTING_MODEL_SCALED_INIT);
  if (scaled && row->deviation == GIVEN) m->output_init.std = deviation(s, m, OVER_BRANCHES);
}

static int64_t padded(const nxc_settings *s, int64_t vocab, uint32_t tensor) {
  int64_t unit = nxc_int(s, NX_SETTING_MODEL_VOCAB_DIVISOR) * tensor;
  return nxc_int_or(s, NX_SETTING_MODEL_VOCAB_PADDED, (vocab + unit - 1) / unit * unit);
}

nxc_model nxc_model_read(const nxc_settings *s, const nxc_layout *layout, nxc_arena *arena) {
  nxc_model m = {.layers = nxc_int(s, NX_SETTING_MODEL_LAYERS),
                 .hidden = nxc_int(s, NX_SETTING_MODEL_HIDDEN),
                 .sequence = nxc_int(s, NX_SETTING_MODEL_SEQUENCE),
                 .vocab = nxc_int(s, NX_SETTING_MODEL_VOCAB),
                 .embedding_dropout = nxc_number(s, NX_SETTING_MODEL_HIDDEN_DROPOUT),
                 .tied = nxc_flag(s, NX_SETTING_MODEL_TIED_EMBEDDINGS),
                 .embedding_scale = nxc_number(s, NX_SETTING_MODEL_EMBEDDING_SCALE),
                 .output_soft_cap = nxc_number_or(s, NX_SETTING_MODEL_OUTPUT_SOFT_CAP, 0),
                 .sinusoidal = nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "sinusoidal"),
                 .final_norm = read_norm(s)};
  m.predict_depth = nxc_int(s, NX_SETTING_MODEL_PREDICT_DEPTH);
  m.predict_factor = nxc_number(s, NX_SETTING_MODEL_PREDICT_LOSS_FACTOR);
  m.vocab_padded = padded(s, m.vocab, layout->tensor);
  if (nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "learned"))
    m.learned_positions = nxc_int_or(s, NX_SETTING_MODEL_MAX_POSITIONS, m.sequence);
  int64_t period = nxc_int_or(s, NX_SETTING_MODEL_FULL_ATTENTION_EVERY, 0);
  m.windowed = period > 0 ? (double)(m.layers - m.layers / period) / (double)m.layers : 1;
  m.unique_layers = nxc_int_or(s, NX_SETTING_MODEL_UNIQUE_LAYERS, m.layers);
  m.spaced = nxc_is(s, NX_SETTING_MODEL_LAYER_SHARING, "spaced");
  read_inits(s, &m);
  read_layers(s, &m, arena);
  m.family = read_family(s, &m);
  return m;
}

const nxc_layer_spec *nxc_model_layer(const nxc_model *m, int64_t layer) {
  return &m->specs[m->spec_of[layer]];
}

/* Latent attention goes down to its ranks, the rotated part of keys beside them, and up to the heads. */
double nxc_attention_weights(const nxc_attention_spec *a, int64_t hidden) {
  double h = (double)hidden, heads = (double)a->heads, query = heads * (double)a->head_dim;
  double keys = (double)(a->kv_heads * (a->head_dim + a->value_dim)), out = h * heads * (double)a->value_dim;
  if (a->kv_rank == 0) return h * (query + keys) + out;
  double down = (double)(a->query_rank + a->kv_rank + a->shared_dim);
  double up = (double)a->kv_rank * heads * (double)(a->head_dim - a->shared_dim + a->value_dim);
  return h * down + (a->query_rank > 0 ? (double)a->query_rank : h) * query + up + out;
}

int64_t nxc_layer_norms(const nxc_layer_spec *layer) {
  int64_t parts = layer->one_norm ? 1 : 2;
  return parts * (layer->norm_before + layer->norm_after + layer->norm_of_sum);
}

int64_t nxc_model_mixtures(const nxc_model *m) {
  int64_t n = 0;
  for (int64_t layer = 0; layer < m->layers; layer++) n += nxc_model_layer(m, layer)->ffn.mixture != NULL;
  return n;
}

bool nxc_model_shares(const nxc_model *m) {
  return m->unique_layers != m->layers || m->specs[0].attention.relative.buckets > 0;
}

int64_t nxc_model_weights_of(const nxc_model *m, int64_t layer) {
  if (layer < 0 || m->unique_layers == m->layers) return layer;
  return m->spaced ? layer / (m->layers / m->unique_layers) : layer % m->unique_layers;
}
