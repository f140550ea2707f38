/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/model.h"

#include "compiler/program/records/read.h"

#include <assert.h>
#include <math.h>

/* ---- initial weights ---- */

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

/* Drawn with a deviation of its own, or as others. */
static nxc_init_spec own_init(const nxc_settings *s, const nxc_init_spec *others, nxc_setting_id of) {
  return nxc_has(s, of) ? (nxc_init_spec){.std = nxc_number(s, of)} : *others;
}

static nxc_init_spec router_init(const nxc_settings *s, const nxc_model *m) {
  if (!nxc_has(s, NX_SETTING_MOE_ROUTER_INIT_GAIN)) return m->init;
  return (nxc_init_spec){.uniform = true,
                         .std = nxc_number(s, NX_SETTING_MOE_ROUTER_INIT_GAIN) / sqrt((double)m->hidden)};
}

static void read_inits(const nxc_settings *s, nxc_model *m) {
  const init_row *row = nxc_row_named(s, NX_SETTING_MODEL_INIT_METHOD, inits, sizeof *inits);
  const init_row *output = nxc_row_named(s, NX_SETTING_MODEL_OUTPUT_INIT_METHOD, inits, sizeof *inits);
  if (output == NULL) output = row;
  m->init = read_init(s, m, row);
  m->embedding_init = own_init(s, &m->init, NX_SETTING_MODEL_EMBEDDING_INIT_STD);
  m->position_init = own_init(s, &m->embedding_init, NX_SETTING_MODEL_POSITION_INIT_STD);
  m->relative_init = own_init(s, &m->init, NX_SETTING_MODEL_RELATIVE_INIT_STD);
  m->router_init = router_init(s, m);
  m->output_init = read_init(s, m, output);
  m->init_by_part = nxc_flag(s, NX_SETTING_MODEL_INIT_BY_PART);
  bool scaled = !nxc_has(s, NX_SETTING_MODEL_OUTPUT_INIT_METHOD) && nxc_flag(s, NX_SETTING_MODEL_SCALED_INIT);
  if (scaled && row->deviation == GIVEN) m->output_init.std = deviation(s, m, OVER_BRANCHES);
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

/* Which layers keep to the window. */
static const uint8_t *read_windows(const nxc_settings *s, int64_t n_layers, nxc_arena *arena) {
  uint8_t *windowed = nxc_arena_array(arena, (size_t)n_layers, sizeof *windowed);
  for (int64_t layer = 0; layer < n_layers; layer++)
    windowed[layer] = !ends_period(s, NX_SETTING_MODEL_FULL_ATTENTION_EVERY, layer);
  if (nxc_has(s, NX_SETTING_MODEL_WINDOW_PATTERN)) /* judged before (training.c) */
    (void)nxc_pattern_marks(nxc_text(s, NX_SETTING_MODEL_WINDOW_PATTERN), n_layers, windowed);
  return windowed;
}

/* The first spec is that of kind 0, whether there is such a layer or not. */
static void read_layers(const nxc_settings *s, nxc_model *m, nxc_arena *arena) {
  const nxc_layer_spec plain = nxc_layer_read(s, m->hidden, arena);
  uint8_t *is_mixture = nxc_arena_array(arena, (size_t)m->layers, sizeof *is_mixture);
  uint8_t *sparse = nxc_arena_array(arena, (size_t)m->layers, sizeof *sparse);
  const uint8_t *windowed = plain.attention.window > 0 ? read_windows(s, m->layers, arena) : NULL;
  int number_of[LAYER_KINDS] = {0};
  int64_t n_windowed = 0;
  m->specs = nxc_arena_array(arena, LAYER_KINDS, sizeof *m->specs);
  m->spec_of = nxc_arena_array(arena, (size_t)(m->layers + m->predict_depth), sizeof *m->spec_of);
  m->mixture = read_mixture(s, m->layers, is_mixture, arena);
  m->sparsity = nxc_sparsity_read(s);
  (void)nxc_sparsity_kinds(s, m->layers, sparse); /* judged before (training.c) */
  m->specs[m->n_specs++] = plain;
  for (int64_t layer = 0; layer < m->layers; layer++) {
    int kind = (is_mixture[layer] ? IS_MIXTURE : 0) + IS_SPARSE * sparse[layer];
    if (windowed && !windowed[layer]) kind |= IS_WHOLE;
    if (plain.attention.rope.dims > 0 && ends_period(s, NX_SETTING_MODEL_NO_ROPE_EVERY, layer))
      kind |= IS_UNROTATED;
    if (multiplies_in_fp8(s, m->layers, layer)) kind |= IS_FP8;
    if (kind != 0 && number_of[kind] == 0) {
      number_of[kind] = (int)m->n_specs;
      m->specs[m->n_specs++] = layer_of_kind(&plain, m->mixture, kind);
    }
    m->spec_of[layer] = (uint8_t)number_of[kind];
    n_windowed += !(kind & IS_WHOLE);
  }
  m->windowed = (double)n_windowed / (double)m->layers;
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
                 .embedding_norm = nxc_flag(s, NX_SETTING_MODEL_EMBEDDING_NORM),
                 .output_soft_cap = nxc_number_or(s, NX_SETTING_MODEL_OUTPUT_SOFT_CAP, 0),
                 .sinusoidal = nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "sinusoidal"),
                 .final_norm = nxc_norm_read(s)};
  m.predict_depth = nxc_int(s, NX_SETTING_MODEL_PREDICT_DEPTH);
  m.predict_factor = nxc_number(s, NX_SETTING_MODEL_PREDICT_LOSS_FACTOR);
  m.vocab_padded = m.outputs = padded(s, m.vocab, layout->tensor);
  if (nxc_is(s, NX_SETTING_MODEL_POSITION_EMBEDDING, "learned"))
    m.learned_positions = nxc_int_or(s, NX_SETTING_MODEL_MAX_POSITIONS, m.sequence);
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
