/* SPDX-License-Identifier: Apache-2.0 */
/* What is chosen, as records and as settings. */
#include "compiler/tune/space.h"

#include <math.h>
#include <string.h>

/* What selective recomputation without further names is of: the scores. */
static const nxc_value core = {.kind = NXC_STRING, .text = "core_attn", .n_bytes = 9};

int64_t nxc_recompute_kind(const nxc_recomputation *r) {
  return r->full ? NXC_RECOMPUTE_FULL : r->modules != NULL ? NXC_RECOMPUTE_SELECTIVE : NXC_RECOMPUTE_NONE;
}

int64_t nxc_thousandths(const nxc_settings *settings, nxc_setting_id id) {
  return lround(1000 * nxc_number(settings, id));
}

static bool has_same_modules(const nxc_recomputation *a, const nxc_recomputation *b) {
  bool same = a->n_modules == b->n_modules;
  for (size_t i = 0; same && i < a->n_modules; i++) same = nxc_value_equal(&a->modules[i], &b->modules[i]);
  return same;
}

/* ---- records ---- */

static bool is_on(const nxc_settings *settings, nxc_setting_id id) {
  return nxc_has(settings, id) && nxc_flag(settings, id);
}

/* Whether all context-parallel ranks exchange heads, and still do so when there are others; else keys and
 * values go round. */
static bool exchanges_heads(const nxc_space *space) {
  const nxc_layout *l = &space->training->layout;
  bool told = nxc_has(space->settings, NX_SETTING_MESH_ULYSSES);
  return l->ulysses == l->context && (told || is_on(space->settings, NX_SETTING_ATTENTION_ULYSSES));
}

/* Of a degree of context, where not all of it exchanges heads as many ranks as in the file, or fewer. */
static uint32_t ulysses_of(const nxc_space *space, uint32_t context) {
  uint32_t most = space->training->layout.ulysses;
  if (exchanges_heads(space)) return context;
  while (context % most != 0) most--;
  return most;
}

/* An order that is mirrored gives each stage two chunks. */
static bool orders_well(const nxc_layout *l) {
  return l->pipeline == 1 || !nxc_layout_is_mirrored(l) || l->n_chunks == 2 * l->pipeline;
}

static void read_layout(const nxc_space *space, const nxc_choice *choice, nxc_layout *l) {
  nxc_knob_value tensor = nxc_choice_value(space, choice, NXC_KNOB_TENSOR);
  nxc_knob_value stages = nxc_choice_value(space, choice, NXC_KNOB_STAGES);
  uint32_t expert_tensor = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_EXPERT_TENSOR).first;
  l->tensor = (uint32_t)tensor.first;
  l->sequence_parallel = tensor.second != 0;
  l->expert_tensor = expert_tensor > 0 ? expert_tensor : l->tensor;
  l->expert = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_EXPERT).first;
  l->context = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_CONTEXT).first;
  l->ulysses = ulysses_of(space, l->context);
  if (choice->at[NXC_KNOB_STAGES] != 0) l->cuts = stages.cuts != NULL ? stages.cuts->items : NULL;
  l->pipeline = (uint32_t)stages.first;
  l->n_chunks = (uint32_t)(stages.first * stages.second);
  l->pipeline_order = (nxc_order_id)nxc_choice_value(space, choice, NXC_KNOB_ORDER).first;
  if (!orders_well(l)) l->pipeline_order = NXC_ORDER_1F1B; /* and nxc_choice_divides says no */
  l->data = l->world / l->tensor / l->context / l->pipeline;
  if (choice->at[NXC_KNOB_REPLICATE] != 0)
    l->replicate = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_REPLICATE).first;
  else if (l->data % l->replicate != 0) l->replicate = 1;
}

static void read_recompute(const nxc_space *space, const nxc_choice *choice, nxc_recomputation *r) {
  if (choice->at[NXC_KNOB_RECOMPUTE] == 0) return;
  nxc_knob_value kind = nxc_choice_value(space, choice, NXC_KNOB_RECOMPUTE);
  *r = (nxc_recomputation){.full = kind.first == NXC_RECOMPUTE_FULL, .layers = 1};
  if (kind.first != NXC_RECOMPUTE_SELECTIVE) return;
  r->modules = &core;
  r->n_modules = 1;
}

/* The padded vocabulary is a multiple of its divisor on every rank. */
static void pad_vocab(const nxc_space *space, nxc_training *t) {
  bool follows = nxc_settings_from(space->settings, NX_SETTING_MODEL_VOCAB_PADDED)->kind == NXC_FROM_RULE;
  if (!follows || !nxc_has(space->settings, NX_SETTING_MODEL_VOCAB_DIVISOR)) return;
  int64_t unit = nxc_int(space->settings, NX_SETTING_MODEL_VOCAB_DIVISOR) * t->layout.tensor;
  t->model.vocab_padded = (t->model.vocab + unit - 1) / unit * unit;
}

void nxc_choice_read(const nxc_space *space, const nxc_choice *choice, nxc_training *t) {
  *t = *space->training;
  read_layout(space, choice, &t->layout);
  t->batch.micro = nxc_choice_value(space, choice, NXC_KNOB_MICRO).first;
  t->batch.global = nxc_choice_value(space, choice, NXC_KNOB_GLOBAL).first;
  t->batch.n_micro = t->layout.data ? t->batch.global / (t->batch.micro * t->layout.data) : 0;
  t->sharding.stage = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_ZERO).first;
  read_recompute(space, choice, &t->recomputation);
  if (choice->at[NXC_KNOB_TENSOR] != 0) pad_vocab(space, t);
}

/* Whether several ranks have the same weights, which a stage of ZeRO may divide. */
static bool has_replicas(const nxc_layout *l, bool mixture) {
  uint64_t experts = (uint64_t)l->expert * l->expert_tensor * l->pipeline;
  return (uint64_t)l->data * l->context > 1 || (mixture && experts < l->world);
}

bool nxc_choice_divides(const nxc_space *space, const nxc_choice *choice) {
  nxc_training t;
  nxc_choice_read(space, choice, &t);
  const nxc_layout *l = &t.layout;
  const nxc_mixture *mixture = t.model.mixture;
  if (choice->at[NXC_KNOB_ORDER] != 0 && l->pipeline == 1) return false; /* it has none */
  if (l->pipeline_order != nxc_choice_value(space, choice, NXC_KNOB_ORDER).first) return false;
  if (choice->at[NXC_KNOB_ZERO] != 0 && !has_replicas(l, mixture != NULL)) return false;
  if (choice->at[NXC_KNOB_REPLICATE] != 0 && (l->data % l->replicate != 0 || t.sharding.stage == 0))
    return false;
  uint64_t replica = (uint64_t)l->tensor * l->context * l->pipeline;
  if (replica > l->world || l->world % replica != 0) return false;
  if (t.batch.global % (t.batch.micro * l->data) != 0) return false;
  if (l->sequence_parallel && t.model.sequence % ((int64_t)l->tensor * l->context) != 0) return false;
  if (mixture == NULL) return true;
  uint64_t experts = (uint64_t)l->expert * l->expert_tensor * l->pipeline;
  if (choice->at[NXC_KNOB_EXPERT_TENSOR] != 0 && l->tensor == 1) return false; /* the same once more */
  return experts <= l->world && l->world % experts == 0 && mixture->hidden % l->expert_tensor == 0;
}

static bool is_share(const nxc_space *space, const nxc_choice *choice, nxc_knob knob,
                     const nxc_settings *settings, nxc_setting_id id) {
  return nxc_choice_value(space, choice, knob).first == nxc_thousandths(settings, id);
}

/* Where the cuts are chosen, and not left to the system. */
static bool has_cuts(const nxc_layout *l, const nxc_value *cuts) {
  bool same = cuts == NULL || (l->cuts != NULL && cuts->n_items + 1 == l->n_chunks);
  for (size_t i = 0; same && cuts != NULL && i < cuts->n_items; i++)
    same = nxc_value_equal(&l->cuts[i], &cuts->items[i]);
  return same;
}

bool nxc_choice_is(const nxc_space *space, const nxc_choice *choice, const nxc_training *t,
                   const nxc_settings *settings) {
  nxc_training chosen;
  nxc_choice_read(space, choice, &chosen);
  const nxc_layout *l = &t->layout, *c = &chosen.layout;
  bool recomputes = nxc_recompute_kind(&t->recomputation) == nxc_recompute_kind(&chosen.recomputation) &&
                    has_same_modules(&t->recomputation, &chosen.recomputation);
  return l->world == c->world && l->tensor == c->tensor && l->context == c->context &&
         l->pipeline == c->pipeline && l->n_chunks == c->n_chunks && l->expert == c->expert &&
         (choice->at[NXC_KNOB_EXPERT_TENSOR] == 0 || l->expert_tensor == c->expert_tensor) &&
         has_cuts(l, nxc_choice_value(space, choice, NXC_KNOB_STAGES).cuts) &&
         (l->pipeline == 1 || l->pipeline_order == c->pipeline_order) &&
         (choice->at[NXC_KNOB_REPLICATE] == 0 || l->replicate == c->replicate) &&
         l->sequence_parallel == c->sequence_parallel && t->batch.micro == chosen.batch.micro &&
         t->batch.global == chosen.batch.global && t->batch.n_micro == chosen.batch.n_micro &&
         t->sharding.stage == chosen.sharding.stage && t->model.sequence == chosen.model.sequence &&
         recomputes &&
         is_share(space, choice, NXC_KNOB_OFFLOAD_OPTIMIZER, settings, NX_SETTING_OFFLOAD_OPTIMIZER) &&
         is_share(space, choice, NXC_KNOB_OFFLOAD_ACTIVATIONS, settings, NX_SETTING_OFFLOAD_ACTIVATIONS);
}

/* ---- settings ---- */

typedef struct setter {
  nxc_settings *settings;
  bool *changed;
  nxc_sink *silent;
} setter;

static void set(const setter *to, nxc_setting_id id, nxc_value value) {
  const nxc_value *old = nxc_settings_value(to->settings, id);
  const nxc_provenance from = {.kind = NXC_FROM_CLI};
  nxc_value *kept = nxc_arena_alloc(nxc_settings_arena(to->settings), sizeof *kept);
  *kept = value;
  to->changed[id] = to->changed[id] || old == NULL || !nxc_value_equal(old, kept);
  nxc_settings_override(to->settings, id, kept, &from, to->silent);
}

static void set_int(const setter *to, nxc_setting_id id, int64_t value) {
  set(to, id, (nxc_value){.kind = NXC_INT, .integer = value});
}

static void set_word(const setter *to, nxc_setting_id id, const char *word) {
  set(to, id, (nxc_value){.kind = NXC_STRING, .text = word, .n_bytes = strlen(word)});
}

static void forget(const setter *to, nxc_setting_id id) {
  to->changed[id] = to->changed[id] || nxc_settings_known(to->settings, id);
  nxc_settings_clear(to->settings, id);
}

static void set_recompute(const setter *to, nxc_knob_value kind) {
  static const char *const words[] = {"none", "selective", "full"};
  const nxc_value cores = {.kind = NXC_LIST, .items = &core, .n_items = 1};
  set_word(to, NX_SETTING_RECOMPUTE_GRANULARITY, words[kind.first]);
  to->changed[NX_SETTING_RECOMPUTE_GRANULARITY] = true;
  if (kind.first == NXC_RECOMPUTE_SELECTIVE) set(to, NX_SETTING_RECOMPUTE_MODULES, cores);
  if (kind.first == NXC_RECOMPUTE_FULL) {
    set_word(to, NX_SETTING_RECOMPUTE_METHOD, "uniform");
    set_int(to, NX_SETTING_RECOMPUTE_LAYERS, 1);
    to->changed[NX_SETTING_RECOMPUTE_METHOD] = to->changed[NX_SETTING_RECOMPUTE_LAYERS] = true;
    return;
  }
  forget(to, NX_SETTING_RECOMPUTE_METHOD);
  forget(to, NX_SETTING_RECOMPUTE_LAYERS);
}

static void set_share(const nxc_space *space, const nxc_choice *choice, nxc_knob knob, const setter *to,
                      nxc_setting_id id) {
  double share = (double)nxc_choice_value(space, choice, knob).first / 1000;
  if (choice->at[knob] != 0) set(to, id, (nxc_value){.kind = NXC_FLOAT, .number = share});
}

static void set_context(const nxc_space *space, int64_t context, const setter *to) {
  bool sized = nxc_has(to->settings, NX_SETTING_MESH_ULYSSES);
  set_int(to, NX_SETTING_MESH_CONTEXT, context);
  if (!is_on(to->settings, NX_SETTING_ATTENTION_ULYSSES))
    set(to, NX_SETTING_ATTENTION_RING, (nxc_value){.kind = NXC_BOOL, .boolean = context > 1});
  if (sized) set_int(to, NX_SETTING_MESH_ULYSSES, ulysses_of(space, (uint32_t)context));
}

/* More ranks than key and value heads hold copies of them, and no more than that. */
static void set_copies(const nxc_space *space, int64_t tensor, const setter *to) {
  int64_t heads = space->training->model.specs[0].attention.kv_heads;
  bool told = nxc_settings_from(space->settings, NX_SETTING_MESH_KV_REPLICATOR)->option != NULL;
  bool divided = heads > 0 && tensor > heads && tensor % heads == 0;
  if (told) set_int(to, NX_SETTING_MESH_KV_REPLICATOR, divided ? tensor / heads : 1);
}

static void set_mesh(const nxc_space *space, const nxc_choice *choice, const setter *to) {
  nxc_knob_value tensor = nxc_choice_value(space, choice, NXC_KNOB_TENSOR);
  nxc_knob_value stages = nxc_choice_value(space, choice, NXC_KNOB_STAGES);
  if (choice->at[NXC_KNOB_TENSOR] != 0) {
    set_int(to, NX_SETTING_MESH_TENSOR, tensor.first);
    set(to, NX_SETTING_SEQUENCE_PARALLEL, (nxc_value){.kind = NXC_BOOL, .boolean = tensor.second != 0});
    set_copies(space, tensor.first, to);
  }
  if (choice->at[NXC_KNOB_STAGES] != 0) {
    set_int(to, NX_SETTING_MESH_PIPELINE, stages.first);
    set_int(to, NX_SETTING_MESH_VIRTUAL_PIPELINE, stages.second);
    if (stages.cuts != NULL) set(to, NX_SETTING_PIPELINE_CUTS, *stages.cuts);
    else forget(to, NX_SETTING_PIPELINE_CUTS);
  }
  if (choice->at[NXC_KNOB_ORDER] != 0)
    set_word(to, NX_SETTING_PIPELINE_SCHEDULE,
             nxc_order_name((nxc_order_id)nxc_choice_value(space, choice, NXC_KNOB_ORDER).first));
  if (choice->at[NXC_KNOB_CONTEXT] != 0)
    set_context(space, nxc_choice_value(space, choice, NXC_KNOB_CONTEXT).first, to);
  if (choice->at[NXC_KNOB_EXPERT] != 0)
    set_int(to, NX_SETTING_MESH_EXPERT, nxc_choice_value(space, choice, NXC_KNOB_EXPERT).first);
  if (choice->at[NXC_KNOB_REPLICATE] != 0)
    set_int(to, NX_SETTING_MESH_REPLICATE, nxc_choice_value(space, choice, NXC_KNOB_REPLICATE).first);
  int64_t expert_tensor = nxc_choice_value(space, choice, NXC_KNOB_EXPERT_TENSOR).first;
  if (choice->at[NXC_KNOB_EXPERT_TENSOR] == 0) return;
  if (expert_tensor > 0) set_int(to, NX_SETTING_MESH_EXPERT_TENSOR, expert_tensor);
  else forget(to, NX_SETTING_MESH_EXPERT_TENSOR);
}

void nxc_choice_set(const nxc_space *space, const nxc_choice *choice, nxc_settings *settings,
                    bool changed[NX_N_SETTINGS]) {
  nxc_training t;
  const setter to = {settings, changed, nxc_sink_new(nxc_settings_arena(settings))};
  nxc_choice_read(space, choice, &t);
  set_mesh(space, choice, &to);
  if (choice->at[NXC_KNOB_MICRO] != 0) set_int(&to, NX_SETTING_BATCH_MICRO, t.batch.micro / t.batch.rows);
  if (choice->at[NXC_KNOB_GLOBAL] != 0) set_int(&to, NX_SETTING_BATCH_GLOBAL, t.batch.global / t.batch.rows);
  if (choice->at[NXC_KNOB_ZERO] != 0) set_int(&to, NX_SETTING_OPTIMIZER_ZERO_STAGE, t.sharding.stage);
  if (choice->at[NXC_KNOB_RECOMPUTE] != 0)
    set_recompute(&to, nxc_choice_value(space, choice, NXC_KNOB_RECOMPUTE));
  set_share(space, choice, NXC_KNOB_OFFLOAD_OPTIMIZER, &to, NX_SETTING_OFFLOAD_OPTIMIZER);
  set_share(space, choice, NXC_KNOB_OFFLOAD_ACTIVATIONS, &to, NX_SETTING_OFFLOAD_ACTIVATIONS);
  set_int(&to, NX_SETTING_MESH_WORLD, t.layout.world);
  set_int(&to, NX_SETTING_MESH_DATA, t.layout.data);
  set_int(&to, NX_SETTING_BATCH_ACCUMULATION, t.batch.n_micro);
  if (nxc_has(settings, NX_SETTING_MODEL_VOCAB_PADDED)) /* it follows, and is not to be said */
    set_int(&to, NX_SETTING_MODEL_VOCAB_PADDED, t.model.vocab_padded);
}

nxc_knob_value nxc_choice_value(const nxc_space *space, const nxc_choice *choice, nxc_knob knob) {
  return space->values[knob][choice->at[knob]];
}
