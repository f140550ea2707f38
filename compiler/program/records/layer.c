/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of which nothing is said apart: its norms, its attention, its network. */
#include "compiler/program/records/model.h"

#include "compiler/program/records/read.h"

#include <assert.h>
#include <math.h>

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
    {.name = "plain_layernorm", .op = NX_OP_layer_norm, .plain = true},
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
    {"none", NXC_ROPE_PLAIN},
    {"linear", NXC_ROPE_LINEAR},
    {"llama3", NXC_ROPE_LLAMA3},
    {"dynamic", NXC_ROPE_DYNAMIC},
    {"yarn", NXC_ROPE_YARN},
    {"longrope", NXC_ROPE_LONGROPE},
    {.name = NULL},
};

/* ---- the parts of a layer ---- */

nxc_norm_spec nxc_norm_read(const nxc_settings *s) {
  const nxc_norm_kind *kind = nxc_row_named(s, NX_SETTING_MODEL_NORMALIZATION, norms, sizeof *norms);
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
  const scaling_row *scaling = nxc_row_named(s, NX_SETTING_MODEL_ROPE_SCALING, scalings, sizeof *scalings);
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
  a->latent_norm = nxc_norm_read(s);
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
  a.limit = nxc_number_or(s, NX_SETTING_MODEL_QKV_LIMIT, 0);
  a.sinks = nxc_flag(s, NX_SETTING_MODEL_ATTENTION_SINKS);
  a.alibi = nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "alibi");
  if (nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "relative"))
    a.relative = (nxc_relative_spec){.buckets = nxc_int(s, NX_SETTING_MODEL_RELATIVE_BUCKETS),
                                     .max_distance = nxc_int(s, NX_SETTING_MODEL_RELATIVE_MAX_DISTANCE),
                                     .factor = nxc_number(s, NX_SETTING_MODEL_RELATIVE_SCALE)};
  const qk_norm_row *norm = nxc_row_named(s, NX_SETTING_MODEL_QK_NORM, qk_norms, sizeof *qk_norms);
  assert(norm != NULL);
  a.qk_norm = norm->kind;
  bool of_heads = nxc_is(s, NX_SETTING_MODEL_ATTENTION_GATE, "head");
  bool gated = of_heads || nxc_is(s, NX_SETTING_MODEL_ATTENTION_GATE, "feature");
  a.gates = gated ? a.heads * (of_heads ? 1 : a.value_dim) : 0;
  a.qkv_bias = (all && a.kv_rank == 0) || nxc_flag(s, NX_SETTING_MODEL_QKV_BIAS);
  if (a.kv_rank > 0) read_latent(s, &a);
  bool latent = a.kv_rank > 0;
  a.rope = read_rope(s, latent ? a.shared_dim : a.head_dim, latent);
  return a;
}

static nxc_feed_forward_spec read_feed_forward(const nxc_settings *s, nxc_arena *arena) {
  const nxc_activation *row = nxc_row_named(s, NX_SETTING_MODEL_ACTIVATION, activations, sizeof *activations);
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

nxc_layer_spec nxc_layer_read(const nxc_settings *s, int64_t hidden, nxc_arena *arena) {
  const block_row *block = nxc_row_named(s, NX_SETTING_MODEL_BLOCK, blocks, sizeof *blocks);
  assert(block != NULL);
  return (nxc_layer_spec){.norm = nxc_norm_read(s),
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

/* Latent attention goes down to its ranks, the rotated part of keys beside them, and up to the heads. */
double nxc_attention_weights(const nxc_attention_spec *a, int64_t hidden) {
  double h = (double)hidden, heads = (double)a->heads, query = heads * (double)a->head_dim;
  double keys = (double)(a->kv_heads * (a->head_dim + a->value_dim)),
         out = h * (heads * (double)a->value_dim + (double)a->gates);
  if (a->kv_rank == 0) return h * (query + keys) + out;
  double down = (double)(a->query_rank + a->kv_rank + a->shared_dim);
  double up = (double)a->kv_rank * heads * (double)(a->head_dim - a->shared_dim + a->value_dim);
  return h * down + (a->query_rank > 0 ? (double)a->query_rank : h) * query + up + out;
}

int64_t nxc_layer_norms(const nxc_layer_spec *layer) {
  int64_t parts = layer->one_norm ? 1 : 2;
  return parts * (layer->norm_before + layer->norm_after + layer->norm_of_sum);
}
