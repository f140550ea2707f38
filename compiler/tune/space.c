/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/space.h"

#include "compiler/document/scalar.h"

#include <assert.h>
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

/* The file's own value stays the only one of its numbers. */
static void add_value(nxc_space *space, nxc_arena *arena, nxc_knob knob, nxc_knob_value value) {
  size_t n = space->n_values[knob];
  for (size_t i = 0; i < n; i++) {
    const nxc_knob_value *other = &space->values[knob][i];
    bool same = other->first == value.first && other->second == value.second;
    if (same && (i == 0 || other->cuts == value.cuts)) return;
  }
  space->values[knob] = nxc_arena_grow(arena, space->values[knob], n, sizeof value);
  space->values[knob][space->n_values[knob]++] = value;
}

static void add(nxc_space *space, nxc_arena *arena, nxc_knob knob, int64_t first, int64_t second) {
  add_value(space, arena, knob, (nxc_knob_value){.first = first, .second = second});
}

static void add_own(nxc_space *space, nxc_arena *arena) {
  const nxc_training *t = space->training;
  const nxc_layout *l = &t->layout;
  add(space, arena, NXC_KNOB_TENSOR, l->tensor, l->sequence_parallel);
  add(space, arena, NXC_KNOB_STAGES, l->pipeline, l->n_chunks / l->pipeline);
  add(space, arena, NXC_KNOB_CONTEXT, l->context, 0);
  add(space, arena, NXC_KNOB_EXPERT, l->expert, 0);
  add(space, arena, NXC_KNOB_EXPERT_TENSOR,
      l->expert_tensor != l->tensor || nxc_has(space->settings, NX_SETTING_MESH_EXPERT_TENSOR)
          ? l->expert_tensor
          : 0,
      0);
  add(space, arena, NXC_KNOB_MICRO, t->batch.micro, 0);
  add(space, arena, NXC_KNOB_ZERO, t->sharding.stage, 0);
  add(space, arena, NXC_KNOB_RECOMPUTE, nxc_recompute_kind(&t->recomputation), 0);
  add(space, arena, NXC_KNOB_GLOBAL, t->batch.global, 0);
  add(space, arena, NXC_KNOB_OFFLOAD_OPTIMIZER,
      nxc_thousandths(space->settings, NX_SETTING_OFFLOAD_OPTIMIZER), 0);
  add(space, arena, NXC_KNOB_OFFLOAD_ACTIVATIONS,
      nxc_thousandths(space->settings, NX_SETTING_OFFLOAD_ACTIVATIONS), 0);
  add(space, arena, NXC_KNOB_ORDER, l->pipeline_order, 0);
  add(space, arena, NXC_KNOB_REPLICATE, l->replicate, 0);
}

/* A rank that divides what lies between products too always needs less and takes no longer. */
static void add_tensor(nxc_space *space, nxc_arena *arena) {
  const nxc_training *t = space->training;
  const nxc_layer_spec *layer = &t->model.specs[0];
  for (int64_t n = 1; n <= t->layout.world; n++)
    if (t->layout.world % n == 0 && layer->attention.heads % n == 0 && layer->ffn.width % n == 0)
      for (int64_t divides = n > 1; divides >= 0; divides--) add(space, arena, NXC_KNOB_TENSOR, n, divides);
}

/* The ends, which have embedding and loss, get less, and all others the same. */
static const nxc_value *cut_unevenly(nxc_arena *arena, int64_t n_chunks, int64_t each, int64_t lacking) {
  nxc_value *names = nxc_arena_array(arena, (size_t)n_chunks, sizeof *names);
  nxc_value *list = nxc_arena_alloc(arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = names, .n_items = (size_t)n_chunks - 1};
  for (int64_t chunk = 1; chunk < n_chunks; chunk++) {
    const char *name = nxc_arena_printf(arena, "layers.%lld", (long long)(chunk * each - lacking / 2 - 1));
    names[chunk - 1] = nxc_string_value(name, strlen(name));
  }
  return list;
}

/* Layers that do not divide: one or two less are a chunk's embedding and loss; of whole stages more may lack,
 * as long as something is left. */
static void add_uneven(nxc_space *space, nxc_arena *arena, int64_t stages, int64_t chunks) {
  int64_t layers = space->training->model.layers, n = stages * chunks;
  int64_t each = (layers - 1) / n + 1, lacking = n * each - layers, most = chunks > 1 ? 2 : 2 * each - 2;
  if (lacking == 0 || lacking > most || (lacking + 1) / 2 >= each) return;
  const nxc_value *cuts = cut_unevenly(arena, n, each, lacking);
  add_value(space, arena, NXC_KNOB_STAGES, (nxc_knob_value){stages, chunks, cuts});
}

static void add_stages(nxc_space *space, nxc_arena *arena) {
  int64_t layers = space->training->model.layers, world = space->training->layout.world;
  for (int64_t n = 1; n <= layers && n <= world; n++) {
    if (world % n != 0) continue;
    add(space, arena, NXC_KNOB_STAGES, n, 1);
    for (int64_t chunks = 1; n > 1 && chunks <= layers / n; chunks++)
      if (layers % (n * chunks) == 0) add(space, arena, NXC_KNOB_STAGES, n, chunks);
      else add_uneven(space, arena, n, chunks);
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

/* Whole experts make larger products and send less; divided ones need fewer ranks of their own. */
static void add_expert_tensor(nxc_space *space, nxc_arena *arena) {
  for (int64_t n = 0; space->training->model.mixture != NULL && n <= 1; n++)
    add(space, arena, NXC_KNOB_EXPERT_TENSOR, n, 0);
}

static void add_micro(nxc_space *space, nxc_arena *arena) {
  int64_t global = space->training->batch.global, rows = space->training->batch.rows;
  for (int64_t n = rows; n <= rows * MOST_MICRO && global % n == 0; n *= 2)
    add(space, arena, NXC_KNOB_MICRO, n, 0);
}

static void add_zero(nxc_space *space, nxc_arena *arena) {
  for (int64_t stage = 0; stage <= 3; stage++) add(space, arena, NXC_KNOB_ZERO, stage, 0);
}

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

/* Those that may be better than others: interleaved is 1f1b, and gpipe keeps more and waits as long. */
static void add_orders(nxc_space *space, nxc_arena *arena) {
  static const nxc_order_id orders[] = {NXC_ORDER_1F1B, NXC_ORDER_ZERO_BUBBLE, NXC_ORDER_ZBV,
                                        NXC_ORDER_DUALPIPEV};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    if (orders[i] != NXC_ORDER_1F1B || space->training->layout.pipeline_order != NXC_ORDER_INTERLEAVED)
      add(space, arena, NXC_KNOB_ORDER, orders[i], 0);
}

/* Groups that each hold what ZeRO divides: hybrid sharding. */
static void add_replicate(nxc_space *space, nxc_arena *arena) {
  int64_t world = space->training->layout.world;
  for (int64_t n = 1; n <= world / 2; n *= 2)
    if (world % n == 0) add(space, arena, NXC_KNOB_REPLICATE, n, 0);
}

nxc_space nxc_space_make(nxc_arena *arena, const nxc_training *training, const nxc_settings *settings,
                         const bool varies[NXC_N_KNOBS]) {
  static void (*const adders[])(nxc_space *, nxc_arena *) = {
      add_tensor,   add_stages,    add_context, add_experts,           add_expert_tensor,       add_micro,
      add_zero,     add_recompute, add_global,  add_offload_optimizer, add_offload_activations, add_orders,
      add_replicate};
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
