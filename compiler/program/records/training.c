/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/training.h"

#include "compiler/config/rules/rules.h"
#include "compiler/program/records/demands.h"
#include "compiler/program/records/plateau.h"
#include "compiler/program/records/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes that are known and can be counted ---- */

/* No size depends on the learning rate of a step. */
static bool is_size(nxc_setting_id id) {
  static const nxc_setting_id rates[] = {NX_SETTING_OPTIMIZER_LR,          NX_SETTING_SCHEDULE_MAX_STEPS,
                                         NX_SETTING_SCHEDULE_WARMUP_STEPS, NX_SETTING_SCHEDULE_HOLD_STEPS,
                                         NX_SETTING_SCHEDULE_CONSTANT_STEPS};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    if (rates[i] == id) return false;
  return true;
}

static bool check_known(const nxc_settings *settings, nxc_sink *sink) {
  nxc_setting_id ids[NX_N_SETTINGS];
  size_t n = nxc_settings_unknown_for_plan(settings, ids), n_sizes = 0;
  for (size_t i = 0; i < n; i++)
    if (is_size(ids[i])) ids[n_sizes++] = ids[i];
  nxc_report_unknown(settings, sink, ids, n_sizes);
  return n_sizes == 0;
}

/* What a model of another kind is made of, whose sizes follow from more than there are settings for. */
static const struct {
  const char *kind, *words;
} other_kinds[] = {{"encoder", "an encoder"},
                   {"encoder-decoder", "an encoder and a decoder"},
                   {"state-space", "layers of state spaces"},
                   {"hybrid", "state spaces or linear attention beside attention"},
                   {"recurrent", "recurrent layers"},
                   {"gated-mlp", "gated feed-forward layers in place of attention"},
                   {"retrieval", "a decoder that retrieves its neighbours"},
                   {"multimodal", "a decoder and encoders of other things than text"},
                   {"other", "layers of a code that is not known here"}};

static bool check_kind(const nxc_settings *settings, nxc_sink *sink) {
  for (size_t i = 0; i < sizeof other_kinds / sizeof *other_kinds; i++) {
    if (!nxc_is(settings, NX_SETTING_MODEL_KIND, other_kinds[i].kind)) continue;
    nxc_report(sink, "NX3021", NXC_SEVERITY_ERROR, nxc_settings_span(settings, NX_SETTING_MODEL_KIND),
               "nothing mends it: decoders alone are estimated and trained",
               "the model is made of %s (%s), and its sizes are not known", other_kinds[i].words,
               nxc_setting_name_in_dialect(settings, NX_SETTING_MODEL_KIND));
    return false;
  }
  return true;
}

/* Settings that are factors of sizes. */
static const nxc_setting_id counts[] = {
    NX_SETTING_MESH_WORLD,          NX_SETTING_MESH_TENSOR,         NX_SETTING_MESH_NODES,
    NX_SETTING_MESH_PIPELINE,       NX_SETTING_MESH_VIRTUAL_PIPELINE,
    NX_SETTING_MESH_CONTEXT,        NX_SETTING_MESH_ULYSSES,        NX_SETTING_MESH_REPLICATE,
    NX_SETTING_MESH_EXPERT,         NX_SETTING_MESH_EXPERT_TENSOR,
    NX_SETTING_BATCH_MICRO,         NX_SETTING_BATCH_GLOBAL,        NX_SETTING_MODEL_HIDDEN,
    NX_SETTING_MODEL_FFN_HIDDEN,    NX_SETTING_MODEL_HEADS,         NX_SETTING_MODEL_KV_HEADS,
    NX_SETTING_MODEL_HEAD_DIM,      NX_SETTING_MODEL_SEQUENCE,      NX_SETTING_MODEL_VOCAB,
    NX_SETTING_MODEL_VOCAB_DIVISOR, NX_SETTING_MODEL_VOCAB_PADDED,  NX_SETTING_RUN_LOG_EVERY,
    NX_SETTING_CHECKPOINT_KEEP,     NX_SETTING_CHECKPOINT_EVERY_STEPS,
    NX_SETTING_MODEL_MAX_POSITIONS, NX_SETTING_EVALUATE_BATCH,
};

static bool is_countable(const nxc_settings *settings, nxc_sink *sink, nxc_setting_id id, int64_t most) {
  if (!nxc_has(settings, id) || nxc_int(settings, id) <= most) return true;
  nxc_report(sink, "NX3007", NXC_SEVERITY_ERROR, nxc_settings_span(settings, id), "make it smaller",
             "%s = %s is more than a plan can hold", nxc_setting_name_in_dialect(settings, id),
             nxc_settings_show(settings, id));
  return false;
}

static bool check_counts(const nxc_settings *settings, nxc_sink *sink) {
  bool good = is_countable(settings, sink, NX_SETTING_MODEL_LAYERS, NXC_MOST_LAYERS);
  good = is_countable(settings, sink, NX_SETTING_MODEL_PREDICT_DEPTH, NXC_MOST_LAYERS) && good;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    good = is_countable(settings, sink, counts[i], INT32_MAX) && good;
  return good;
}

/* Numbers have 32 bits in the plan, unless their own bounds or this say otherwise. */
bool nxc_training_has_room(const nxc_settings *settings, nxc_sink *sink) {
  static const struct {
    nxc_setting_id id;
    int64_t most;
  } further[] = {
      {NX_SETTING_SCHEDULE_MAX_STEPS, INT64_C(1) << 48},       {NX_SETTING_REDUCE_BUCKET_ELEMENTS, INT64_MAX},
      {NX_SETTING_CHECKPOINT_EVERY_SAMPLES, INT64_C(1) << 48}, {NX_SETTING_GATHER_KEEP_BELOW, INT64_MAX},
      {NX_SETTING_CHECKPOINT_FILE_BYTES, INT64_MAX},           {NX_SETTING_RUN_WORKSPACE_BYTES, INT64_MAX},
      {NX_SETTING_RUN_SEED, INT64_MAX},
  };
  bool good = true;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_domain *domain = &nxc_setting_rows[id].domain;
    int64_t most = INT32_MAX;
    for (size_t i = 0; i < sizeof further / sizeof *further; i++)
      if (further[i].id == id) most = further[i].most;
    if (domain->type == NXC_TYPE_INT && domain->max == NULL)
      good = is_countable(settings, sink, id, most) && good;
  }
  return good;
}

/* Elements of all activations, of all parameters and of a token in a layer, roughly: below it no size
 * overflows, and no machine is near. */
static bool fits(const nxc_training *t) {
  const nxc_model *m = &t->model;
  const nxc_layer_spec *layer = &m->specs[0];
  double tokens = (double)t->batch.micro * (double)m->sequence, hidden = (double)m->hidden;
  double heads = (double)layer->attention.heads * (double)layer->attention.head_dim;
  double width = 16 * (hidden + (double)layer->ffn.width + heads), features = width;
  const nxc_mixture *e = m->mixture;
  if (e != NULL) {
    width += 16 * (double)e->shared_hidden;
    width += 16 * (double)e->hidden * (double)(e->n_experts + 1) * (e->buffer_factor + (double)e->top_k);
  }
  double tables = 2 * hidden * ((double)m->vocab_padded + (double)m->learned_positions);
  double parameters = (double)m->layers * hidden * width + tables;
  double activations = (double)m->layers * tokens * width + tokens * (double)m->vocab_padded;
  return activations < 1e15 && parameters < 1e15 && features < INT32_MAX;
}

/* ---- what no rule can say ---- */

static bool check_sparsity(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_model *m = &t->model;
  uint8_t *kinds = nxc_arena_array(nxc_settings_arena(s), (size_t)m->layers, sizeof *kinds);
  const char *fault = nxc_sparsity_kinds(s, m->layers, kinds);
  for (uint32_t i = 0; fault == NULL && i < m->n_specs; i++)
    fault = nxc_sparsity_fault(&m->sparsity, m->specs[i].attention.sparse, m->sequence);
  const nxc_demand demand = {
      fault == NULL, NX_SETTING_MODEL_ATTENTION_PATTERN, "NX3016",
      fault ? nxc_arena_printf(nxc_settings_arena(s), "sparse attention: %s", fault) : ""};
  return nxc_demands_check(s, sink, &demand, 1);
}

static bool check_patterns(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const char *windows =
      nxc_has(s, NX_SETTING_MODEL_WINDOW_PATTERN) ? nxc_text(s, NX_SETTING_MODEL_WINDOW_PATTERN) : NULL;
  const nxc_demand demands[] = {
      {t->model.mixture == NULL || nxc_mixture_layers_read(s, t->model.layers, NULL), NX_SETTING_MOE_PATTERN,
       "NX3011",
       "the pattern of layers is no number, or list of 0 and 1 that is as long as the model has layers"},
      {windows == NULL || nxc_pattern_marks(windows, t->model.layers, NULL), NX_SETTING_MODEL_WINDOW_PATTERN,
       "NX3011", "the pattern of windows is no list of 0 and 1 that is as long as the model has layers"}};
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}

/* ---- the mesh ---- */

/* The atoms that ZeRO divides over: all of a stage but copies, and those of the context that are left out. */
static uint32_t zero_axis(const nxc_settings *s, const nxc_training *t) {
  static const struct {
    const char *word;
    nxc_axis_id without;
  } rows[] = {{"ulysses", NXC_AXIS_RING}, {"ring", NXC_AXIS_ULYSSES}, {"none", NXC_AXIS_CONTEXT}};
  if (t->sharding.stage == 0) return 0;
  uint32_t over = nxc_axis(&t->mesh, NXC_AXIS_STAGE) & ~nxc_axis(&t->mesh, NXC_AXIS_REPLICATE);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (nxc_is(s, NX_SETTING_OPTIMIZER_ZERO_CONTEXT, rows[i].word))
      over &= ~nxc_axis(&t->mesh, rows[i].without);
  return over;
}

/* The mesh, once its degrees are known to divide one another. */
static bool make_mesh(const nxc_settings *s, nxc_sink *sink, nxc_training *t) {
  const nxc_layout *l = &t->layout;
  const nxc_degrees degrees = {.kv_replica = l->kv_replica,
                               .kv_group = l->tensor / l->kv_replica,
                               .ulysses = l->ulysses,
                               .ring = l->context / l->ulysses,
                               .shard = l->data / l->replicate,
                               .replicate = l->replicate,
                               .pipeline = l->pipeline,
                               .has_experts = t->model.mixture != NULL,
                               .expert = l->expert,
                               .expert_tensor = l->expert_tensor,
                               .order = l->order};
  nx_fault fault;
  if (nxc_mesh_new(&degrees, &t->mesh, &fault)) {
    t->sharding.axis = zero_axis(s, t);
    return true;
  }
  bool ordered = nxc_settings_span(s, NX_SETTING_MESH_ORDER).source != NULL;
  nxc_setting_id at = degrees.has_experts && !ordered ? NX_SETTING_MESH_EXPERT : NX_SETTING_MESH_ORDER;
  nxc_report(sink, "NX3010", NXC_SEVERITY_ERROR, nxc_settings_span(s, at),
             "write an order of its kind, such as tp-cp-ep-dp-pp, or another degree", "%s", fault.text);
  return false;
}

/* ---- all ---- */

/* Sizes are read where a rule is broken, too; but of heads without features nothing can be told. */
static bool check_heads(const nxc_settings *s, nxc_sink *sink) {
  int64_t heads = nxc_int(s, NX_SETTING_MODEL_HEADS), width = nxc_int(s, NX_SETTING_MODEL_HIDDEN);
  if (nxc_int_or(s, NX_SETTING_MODEL_HEAD_DIM, width / heads) > 0) return true;
  nxc_report(sink, "NX3003", NXC_SEVERITY_ERROR, nxc_settings_span(s, NX_SETTING_MODEL_HEADS),
             "make them fewer",
             "%" PRId64 " heads are more than the %" PRId64 " features of the model's width", heads, width);
  return false;
}

static bool check_sizes(const nxc_settings *settings, nxc_sink *sink) {
  return check_kind(settings, sink) && check_known(settings, sink) && check_counts(settings, sink) &&
         check_heads(settings, sink);
}

static int compare_steps(const void *left, const void *right) {
  const uint64_t *a = left, *b = right;
  return *a < *b ? -1 : *a > *b;
}

static void read_skipped(const nxc_settings *s, nxc_training *t) {
  size_t n;
  const nxc_value *given = nxc_list(s, NX_SETTING_SCHEDULE_SKIP_STEPS, &n);
  uint64_t *steps = nxc_arena_array(nxc_settings_arena(s), n + 1, sizeof *steps);
  for (size_t i = 0; i < n; i++) steps[i] = (uint64_t)given[i].integer;
  if (n > 0) qsort(steps, n, sizeof *steps, compare_steps);
  for (size_t i = 0; i < n; i++)
    if (t->n_skipped == 0 || steps[t->n_skipped - 1] != steps[i]) steps[t->n_skipped++] = steps[i];
  t->skipped = steps;
}

bool nxc_training_read_sizes(const nxc_settings *settings, nxc_sink *sink, nxc_training *t) {
  *t = (nxc_training){0};
  if (!check_sizes(settings, sink)) return false;
  t->layout = nxc_layout_read(settings);
  t->objective = nxc_objective_read(settings);
  t->batch = nxc_batch_read(settings, &t->layout, t->objective.row->rows);
  t->model = nxc_model_read(settings, &t->layout, nxc_settings_arena(settings));
  if (t->objective.row->has_values) t->model.tied = false, t->model.outputs = 1;
  t->data = nxc_data_read(settings, &t->objective);
  t->datasets = nxc_datasets_read(settings);
  t->evaluations = nxc_evaluations_read(settings, &t->datasets, (uint64_t)t->batch.times_evaluated);
  t->evaluates = t->evaluations.n > 0 || t->objective.refers || t->layout.pipeline == 1;
  t->measures = nxc_measures_read(settings);
  t->measures.router_losses &= t->layout.n_chunks == t->layout.pipeline; /* one chunk clears them, and adds */
  t->types = nxc_precision_read(settings);
  t->optimizer = nxc_optimizer_read(settings);
  t->sharding = nxc_sharding_read(settings);
  if (t->layout.data < 2) t->optimizer.compresses_from = 0;
  if (t->optimizer.compresses_from) t->sharding.overlap_reduce = false; /* workers keep their own gradients */
  t->rate = nxc_learning_rate_read(settings);
  t->plateau = nxc_plateau_read(settings, &t->evaluations);
  read_skipped(settings, t);
  t->recomputation = nxc_recomputation_read(settings, &t->layout);
  t->lora = nxc_lora_read(settings, t->model.family, nxc_settings_arena(settings));
  t->layout.kv_replica = nxc_layout_kv_copies(&t->layout, t->model.specs[0].attention.kv_heads);
  if (!fits(t)) {
    nxc_report(
        sink, "NX3007", NXC_SEVERITY_ERROR, nxc_settings_span(settings, NX_SETTING_MODEL_HIDDEN),
        "make the model or its batches smaller",
        "the model or its activations have more than 1e15 elements, or a layer more than 1e8 features");
    return false;
  }
  return check_patterns(settings, sink, t) && check_sparsity(settings, sink, t);
}

bool nxc_training_read(const nxc_settings *settings, nxc_sink *sink, nxc_training *t) {
  *t = (nxc_training){0};
  if (!check_sizes(settings, sink) || !nxc_rules_check_structure(settings, sink)) return false;
  return nxc_training_read_sizes(settings, sink, t) && make_mesh(settings, sink, t);
}

static bool grows(const nxc_settings *s) {
  size_t n = 0;
  if (nxc_has(s, NX_SETTING_BATCH_GROWTH)) nxc_list(s, NX_SETTING_BATCH_GROWTH, &n);
  return n > 0;
}

static bool begins(const char *path, const char *with) {
  return strncmp(path, with, strlen(with)) == 0;
}

/* Steps differ in their sequences only where the batch grows. */
static bool is_of_rate(const nxc_settings *s, nxc_setting_id id) {
  const char *path = nxc_setting_rows[id].path;
  bool by_samples = nxc_is(s, NX_SETTING_SCHEDULE_NAME, "inverse_sqrt_of_samples");
  if (id == NX_SETTING_BATCH_GLOBAL) return by_samples || grows(s);
  if (id == NX_SETTING_BATCH_MICRO || begins(path, "mesh.")) return grows(s);
  return id == NX_SETTING_OPTIMIZER_LR || id == NX_SETTING_BATCH_GROWTH || begins(path, "schedule.");
}

size_t nxc_training_read_rate(const nxc_settings *s, nxc_training *t, nxc_setting_id ids[NX_N_SETTINGS]) {
  size_t n = nxc_settings_unknown_for_plan(s, ids), n_missing = 0;
  *t = (nxc_training){0};
  for (size_t i = 0; i < n; i++)
    if (is_of_rate(s, ids[i])) ids[n_missing++] = ids[i];
  if (n_missing > 0) return n_missing;
  if (grows(s)) {
    t->layout = nxc_layout_read(s);
    t->objective = nxc_objective_read(s);
    t->batch = nxc_batch_read(s, &t->layout, t->objective.row->rows);
  }
  t->rate = nxc_learning_rate_read(s);
  read_skipped(s, t);
  return 0;
}

double nxc_training_rate_at(const nxc_training *t, int64_t step) {
  if (t->rate.by_samples) step = step > t->rate.samples_late ? step - t->rate.samples_late : 0;
  int64_t n_skipped = 0, samples = nxc_batch_samples_before(&t->batch, step);
  for (; n_skipped < (int64_t)t->n_skipped && (int64_t)t->skipped[n_skipped] <= step; n_skipped++) {
    int64_t behind = (int64_t)t->skipped[n_skipped];
    samples += nxc_batch_samples_before(&t->batch, behind - 1) - nxc_batch_samples_before(&t->batch, behind);
  }
  if (t->rate.follows_loss) return nxc_learning_rate_at(&t->rate, 0);
  return nxc_learning_rate_at(&t->rate, t->rate.by_samples ? samples : step - n_skipped);
}

int64_t nxc_training_layers_before(const nxc_training *t, uint32_t chunk) {
  return nxc_layout_layers_before(&t->layout, t->model.layers, chunk);
}
