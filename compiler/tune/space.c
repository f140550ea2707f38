/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/space.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
  LEAST_TOKENS = 1024, /* that context parallelism leaves of a sequence on a rank */
  MOST_MICRO = 64,
};

static const struct {
  const char *name, *group;
} knobs[] = {
#define KNOB(id, name, group) {name, group},
    NXC_KNOBS(KNOB)
#undef KNOB
};

const char *nxc_knob_name(nxc_knob knob) {
  return knobs[knob].name;
}

bool nxc_knobs_parse(nxc_arena *arena, const char *text, bool varies[NXC_N_KNOBS], const char **wrong) {
  memset(varies, 0, NXC_N_KNOBS * sizeof *varies);
  while (*text != '\0') {
    size_t n_word = strcspn(text, ",");
    const char *word = nxc_arena_strndup(arena, text, n_word);
    bool found = false;
    for (int knob = 0; knob < NXC_N_KNOBS; knob++) {
      bool named = strcmp(word, knobs[knob].name) == 0 || strcmp(word, knobs[knob].group) == 0;
      varies[knob] = varies[knob] || named;
      found = found || named;
    }
    *wrong = word;
    if (!found) return false;
    text += n_word + (text[n_word] == ',');
  }
  return true;
}

/* ---- values ---- */

static void add(nxc_space *space, nxc_arena *arena, nxc_knob knob, int64_t first, int64_t second) {
  size_t n = space->n_values[knob];
  for (size_t i = 0; i < n; i++)
    if (space->values[knob][i].first == first && space->values[knob][i].second == second) return;
  space->values[knob] = nxc_arena_grow(arena, space->values[knob], n, sizeof(nxc_knob_value));
  space->values[knob][space->n_values[knob]++] = (nxc_knob_value){first, second};
}

static int64_t recompute_of(const nxc_recomputation *r) {
  return r->full ? NXC_RECOMPUTE_FULL : r->modules != NULL ? NXC_RECOMPUTE_SELECTIVE : NXC_RECOMPUTE_NONE;
}

static bool has_same_modules(const nxc_recomputation *a, const nxc_recomputation *b) {
  bool same = a->n_modules == b->n_modules;
  for (size_t i = 0; same && i < a->n_modules; i++) same = nxc_value_equal(&a->modules[i], &b->modules[i]);
  return same;
}

static int64_t thousandths(const nxc_settings *settings, nxc_setting_id id) {
  return lround(1000 * nxc_number(settings, id));
}

static void add_own(nxc_space *space, nxc_arena *arena) {
  const nxc_training *t = space->training;
  const nxc_layout *l = &t->layout;
  add(space, arena, NXC_KNOB_TENSOR, l->tensor, l->sequence_parallel);
  add(space, arena, NXC_KNOB_STAGES, l->pipeline, l->n_chunks / l->pipeline);
  add(space, arena, NXC_KNOB_CONTEXT, l->context, 0);
  add(space, arena, NXC_KNOB_EXPERT, l->expert, 0);
  add(space, arena, NXC_KNOB_MICRO, t->batch.micro, 0);
  add(space, arena, NXC_KNOB_ZERO, t->sharding.stage, 0);
  add(space, arena, NXC_KNOB_RECOMPUTE, recompute_of(&t->recomputation), 0);
  add(space, arena, NXC_KNOB_GLOBAL, t->batch.global, 0);
  add(space, arena, NXC_KNOB_OFFLOAD_OPTIMIZER, thousandths(space->settings, NX_SETTING_OFFLOAD_OPTIMIZER),
      0);
  add(space, arena, NXC_KNOB_OFFLOAD_ACTIVATIONS,
      thousandths(space->settings, NX_SETTING_OFFLOAD_ACTIVATIONS), 0);
}

/* A rank that divides what lies between products too always needs less and takes no longer. */
static void add_tensor(nxc_space *space, nxc_arena *arena) {
  const nxc_training *t = space->training;
  const nxc_layer_spec *layer = &t->model.specs[0];
  for (int64_t n = 1; n <= t->layout.world; n++)
    if (t->layout.world % n == 0 && layer->attention.heads % n == 0 && layer->ffn.width % n == 0)
      for (int64_t divides = n > 1; divides >= 0; divides--) add(space, arena, NXC_KNOB_TENSOR, n, divides);
}

static void add_stages(nxc_space *space, nxc_arena *arena) {
  int64_t layers = space->training->model.layers, world = space->training->layout.world;
  for (int64_t n = 1; n <= layers && n <= world; n++) {
    if (world % n != 0) continue;
    add(space, arena, NXC_KNOB_STAGES, n, 1);
    for (int64_t chunks = 2; n > 1 && layers % n == 0 && chunks <= layers / n; chunks++)
      if (layers / n % chunks == 0) add(space, arena, NXC_KNOB_STAGES, n, chunks);
  }
}

static void add_context(nxc_space *space, nxc_arena *arena) {
  int64_t sequence = space->training->model.sequence, world = space->training->layout.world;
  for (int64_t n = 1; n <= world && (n == 1 || sequence / n >= LEAST_TOKENS); n++)
    if (world % n == 0 && (n == 1 || sequence % (2 * n) == 0)) add(space, arena, NXC_KNOB_CONTEXT, n, 0);
}

static void add_experts(nxc_space *space, nxc_arena *arena) {
  const nxc_mixture *mixture = space->training->model.mixture;
  for (int64_t n = 1; mixture != NULL && n <= mixture->n_experts; n++)
    if (mixture->n_experts % n == 0 && space->training->layout.world % n == 0)
      add(space, arena, NXC_KNOB_EXPERT, n, 0);
}

static void add_micro(nxc_space *space, nxc_arena *arena) {
  int64_t global = space->training->batch.global, rows = space->training->batch.rows;
  for (int64_t n = rows; n <= rows * MOST_MICRO && global % n == 0; n *= 2)
    add(space, arena, NXC_KNOB_MICRO, n, 0);
}

static void add_zero(nxc_space *space, nxc_arena *arena) {
  for (int64_t stage = 0; stage <= 3; stage++) add(space, arena, NXC_KNOB_ZERO, stage, 0);
}

/* What selective recomputation without further names is of: the scores. */
static const nxc_value core = {.kind = NXC_STRING, .text = "core_attn", .n_bytes = 9};

static void add_recompute(nxc_space *space, nxc_arena *arena) {
  add(space, arena, NXC_KNOB_RECOMPUTE, NXC_RECOMPUTE_NONE, 0);
  add(space, arena, NXC_KNOB_RECOMPUTE, NXC_RECOMPUTE_SELECTIVE, 0);
  add(space, arena, NXC_KNOB_RECOMPUTE, NXC_RECOMPUTE_FULL, 0);
}

static void add_global(nxc_space *space, nxc_arena *arena) {
  int64_t global = space->training->batch.global, rows = space->training->batch.rows;
  for (int64_t parts = 4; parts >= 2; parts /= 2)
    if (global % (parts * rows) == 0) add(space, arena, NXC_KNOB_GLOBAL, global / parts, 0);
  for (int64_t times = 2; times <= 4 && global <= INT32_MAX / times; times *= 2)
    add(space, arena, NXC_KNOB_GLOBAL, global * times, 0);
}

static void add_offload_optimizer(nxc_space *space, nxc_arena *arena) {
  for (int64_t share = 0; share <= 1000; share += 1000)
    add(space, arena, NXC_KNOB_OFFLOAD_OPTIMIZER, share, 0);
}

/* Some systems take whole layers, but not all of them. */
static void add_offload_activations(nxc_space *space, nxc_arena *arena) {
  for (int64_t share = 0; share <= 1000; share += 500)
    add(space, arena, NXC_KNOB_OFFLOAD_ACTIVATIONS, share, 0);
}

nxc_space nxc_space_make(nxc_arena *arena, const nxc_training *training, const nxc_settings *settings,
                         const bool varies[NXC_N_KNOBS]) {
  static void (*const adders[])(nxc_space *, nxc_arena *) = {
      add_tensor, add_stages,    add_context, add_experts,           add_micro,
      add_zero,   add_recompute, add_global,  add_offload_optimizer, add_offload_activations};
  static_assert(sizeof adders / sizeof *adders == NXC_N_KNOBS, "one for each knob");
  nxc_space space = {.training = training, .settings = settings};
  add_own(&space, arena);
  for (int knob = 0; knob < NXC_N_KNOBS; knob++)
    if (varies[knob]) adders[knob](&space, arena);
  return space;
}

/* ---- going over them ---- */

double nxc_space_size(const nxc_space *space) {
  double size = 1;
  for (int knob = 0; knob < NXC_N_KNOBS; knob++) size *= (double)space->n_values[knob];
  return size;
}

bool nxc_space_next(const nxc_space *space, nxc_choice *choice) {
  for (int knob = NXC_N_KNOBS - 1; knob >= 0; knob--) {
    if (++choice->at[knob] < space->n_values[knob]) return true;
    choice->at[knob] = 0;
  }
  return false;
}

void nxc_space_drop(nxc_space *space, nxc_knob knob, size_t place) {
  assert(place > 0 && place < space->n_values[knob]);
  nxc_knob_value *at = &space->values[knob][place];
  memmove(at, at + 1, (--space->n_values[knob] - place) * sizeof *at);
}

nxc_knob_value nxc_choice_value(const nxc_space *space, const nxc_choice *choice, nxc_knob knob) {
  return space->values[knob][choice->at[knob]];
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

static void read_layout(const nxc_space *space, const nxc_choice *choice, nxc_layout *l) {
  nxc_knob_value tensor = nxc_choice_value(space, choice, NXC_KNOB_TENSOR);
  nxc_knob_value stages = nxc_choice_value(space, choice, NXC_KNOB_STAGES);
  bool own_experts = l->expert_tensor != l->tensor || nxc_has(space->settings, NX_SETTING_MESH_EXPERT_TENSOR);
  l->tensor = (uint32_t)tensor.first;
  l->sequence_parallel = tensor.second != 0;
  if (!own_experts) l->expert_tensor = l->tensor;
  l->expert = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_EXPERT).first;
  l->context = (uint32_t)nxc_choice_value(space, choice, NXC_KNOB_CONTEXT).first;
  if (exchanges_heads(space)) l->ulysses = l->context;
  if (l->context % l->ulysses != 0) l->ulysses = 1;
  if (choice->at[NXC_KNOB_STAGES] != 0) l->cuts = NULL;
  l->pipeline = (uint32_t)stages.first;
  l->n_chunks = (uint32_t)(stages.first * stages.second);
  l->data = l->world / l->tensor / l->context / l->pipeline;
  if (l->data % l->replicate != 0) l->replicate = 1;
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
  if (choice->at[NXC_KNOB_ZERO] != 0 && !has_replicas(l, mixture != NULL)) return false;
  uint64_t replica = (uint64_t)l->tensor * l->context * l->pipeline;
  if (replica > l->world || l->world % replica != 0) return false;
  if (t.batch.global % (t.batch.micro * l->data) != 0) return false;
  if (l->sequence_parallel && t.model.sequence % ((int64_t)l->tensor * l->context) != 0) return false;
  if (mixture == NULL) return true;
  uint64_t experts = (uint64_t)l->expert * l->expert_tensor * l->pipeline;
  return experts <= l->world && l->world % experts == 0 && mixture->hidden % l->expert_tensor == 0;
}

static bool is_share(const nxc_space *space, const nxc_choice *choice, nxc_knob knob,
                     const nxc_settings *settings, nxc_setting_id id) {
  return nxc_choice_value(space, choice, knob).first == thousandths(settings, id);
}

bool nxc_choice_is(const nxc_space *space, const nxc_choice *choice, const nxc_training *t,
                   const nxc_settings *settings) {
  nxc_training chosen;
  nxc_choice_read(space, choice, &chosen);
  const nxc_layout *l = &t->layout, *c = &chosen.layout;
  bool recomputes = recompute_of(&t->recomputation) == recompute_of(&chosen.recomputation) &&
                    has_same_modules(&t->recomputation, &chosen.recomputation);
  return l->world == c->world && l->tensor == c->tensor && l->context == c->context &&
         l->pipeline == c->pipeline && l->n_chunks == c->n_chunks && l->expert == c->expert &&
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
  if (sized && exchanges_heads(space)) set_int(to, NX_SETTING_MESH_ULYSSES, context);
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
    forget(to, NX_SETTING_PIPELINE_CUTS);
  }
  if (choice->at[NXC_KNOB_CONTEXT] != 0)
    set_context(space, nxc_choice_value(space, choice, NXC_KNOB_CONTEXT).first, to);
  if (choice->at[NXC_KNOB_EXPERT] != 0)
    set_int(to, NX_SETTING_MESH_EXPERT, nxc_choice_value(space, choice, NXC_KNOB_EXPERT).first);
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
}
