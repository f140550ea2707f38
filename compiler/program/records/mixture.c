/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/mixture.h"

#include "compiler/program/records/read.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t score_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_MOE_ROUTER_ACTIVATION, "sigmoid")) return 2;
  return nxc_flag(s, NX_SETTING_MOE_PRE_SOFTMAX) ? 0 : 1;
}

static nxc_aux_scope scope_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_MOE_AUX_LOSS_SCOPE, "model")) return NXC_AUX_OF_MODEL;
  return nxc_is(s, NX_SETTING_MOE_AUX_LOSS_SCOPE, "sequence") ? NXC_AUX_OF_SEQUENCE : NXC_AUX_OF_LAYER;
}

static nxc_aux_over over_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_MOE_AUX_LOSS_OVER, "step")) return NXC_AUX_OVER_STEP;
  return nxc_is(s, NX_SETTING_MOE_AUX_LOSS_OVER, "ranks") ? NXC_AUX_OVER_RANKS : NXC_AUX_OVER_MICRO_BATCH;
}

static nxc_drop drop_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_MOE_DROP_POLICY, "random")) return NXC_DROP_LEAST;
  return nxc_is(s, NX_SETTING_MOE_DROP_POLICY, "position") ? NXC_DROP_LAST : NXC_DROP_LIGHTEST;
}

static nxc_mixture_biases biases_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_MOE_BIASES, "layer")) return NXC_BIASES_OF_LAYER;
  if (nxc_is(s, NX_SETTING_MOE_BIASES, "none")) return NXC_NO_BIASES;
  return nxc_is(s, NX_SETTING_MOE_BIASES, "first") ? NXC_BIASES_OF_FIRST : NXC_BIASES_OF_EXPERTS;
}

/* Of a loss that is added to the model's; what nothing can be divided by is none. */
static double weight(const nxc_settings *s, nxc_setting_id id) {
  double given = nxc_number(s, id);
  return given < DBL_MIN ? 0 : given;
}

/* A loss that has no other beside it is the one. */
static void merge_losses(nxc_mixture *m) {
  if (m->aux > 0 || (m->aux_sequence > 0) == (m->aux_step > 0)) return;
  m->aux_scope = m->aux_sequence > 0 ? NXC_AUX_OF_SEQUENCE : NXC_AUX_OF_LAYER;
  m->aux_over = m->aux_step > 0 ? NXC_AUX_OVER_STEP : NXC_AUX_OVER_MICRO_BATCH;
  m->aux = m->aux_sequence + m->aux_step;
  m->aux_sequence = m->aux_step = 0;
}

nxc_mixture nxc_mixture_read(const nxc_settings *s) {
  nxc_mixture m = {
      .n_experts = nxc_int(s, NX_SETTING_MOE_EXPERTS),
      .top_k = nxc_int(s, NX_SETTING_MOE_TOP_K),
      .shared_hidden = nxc_int(s, NX_SETTING_MOE_SHARED_FFN_HIDDEN),
      .shared_gate = nxc_flag(s, NX_SETTING_MOE_SHARED_GATE) || nxc_flag(s, NX_SETTING_MOE_SHARED_SOFTMAX),
      .shared_softmax = nxc_flag(s, NX_SETTING_MOE_SHARED_SOFTMAX),
      .score = score_of(s),
      .normalize = nxc_flag(s, NX_SETTING_MOE_NORMALIZE_TOP_K),
      .scale = nxc_number(s, NX_SETTING_MOE_ROUTER_SCALE),
      .tolerance = nxc_number(s, NX_SETTING_MOE_SINKHORN_TOLERANCE),
      .biased = nxc_flag(s, NX_SETTING_MOE_ROUTER_BIAS),
      .corrected = nxc_flag(s, NX_SETTING_MOE_ROUTER_CORRECTION),
      .correction_rate = nxc_number(s, NX_SETTING_MOE_CORRECTION_RATE),
      .by_quantiles = nxc_is(s, NX_SETTING_MOE_ROUTING, "quantiles"),
      .quantile_memory = nxc_number(s, NX_SETTING_MOE_QUANTILE_MEMORY),
      .groups = nxc_int_or(s, NX_SETTING_MOE_GROUPS, 1),
      .min_capacity = nxc_int_or(s, NX_SETTING_MOE_MIN_CAPACITY, 0),
      .drop = drop_of(s),
      .biases = biases_of(s),
      .aux = weight(s, NX_SETTING_MOE_AUX_LOSS_COEF),
      .z = weight(s, NX_SETTING_MOE_Z_LOSS_COEF),
      .aux_scope = scope_of(s),
      .aux_over = over_of(s),
      .gathers = nxc_is(s, NX_SETTING_MOE_DISPATCHER, "allgather"),
      .random = nxc_flag(s, NX_SETTING_MOE_RANDOM_LOGITS),
      .jitter = nxc_number_or(s, NX_SETTING_MOE_INPUT_JITTER, 0),
      .buffer_factor = nxc_number(s, NX_SETTING_MOE_BUFFER_FACTOR)};
  m.aux_sequence = weight(s, NX_SETTING_MOE_SEQUENCE_AUX_LOSS_COEF);
  m.aux_step = weight(s, NX_SETTING_MOE_STEP_AUX_LOSS_COEF);
  merge_losses(&m);
  m.top_groups = m.groups > 1 ? nxc_int_or(s, NX_SETTING_MOE_TOP_GROUPS, m.groups) : m.groups;
  m.group_best = m.groups > 1 ? nxc_int_or(s, NX_SETTING_MOE_GROUP_BEST, 1) : 1;
  m.hidden = nxc_int(s, nxc_has(s, NX_SETTING_MOE_FFN_HIDDEN) ? NX_SETTING_MOE_FFN_HIDDEN
                                                              : NX_SETTING_MODEL_FFN_HIDDEN);
  if (nxc_is(s, NX_SETTING_MOE_ROUTING, "sinkhorn"))
    m.sinkhorn = nxc_int(s, NX_SETTING_MOE_SINKHORN_ITERATIONS);
  if (!nxc_flag(s, NX_SETTING_MOE_DROPLESS))
    m.capacity_factor = nxc_number_or(s, NX_SETTING_MOE_CAPACITY_FACTOR, 0);
  m.evaluation_capacity_factor =
      m.capacity_factor > 0 ? nxc_number_or(s, NX_SETTING_MOE_EVALUATION_CAPACITY_FACTOR, m.capacity_factor)
                            : 0;
  if (m.capacity_factor <= 0) m.drop = NXC_DROP_LIGHTEST; /* nothing is */
  return m;
}

static int64_t capacity_of(const nxc_mixture *m, double factor, int64_t n_tokens) {
  if (factor <= 0) return 0;
  double capacity = ceil(factor * (double)(n_tokens * m->top_k) / (double)m->n_experts);
  if (capacity < (double)m->min_capacity) capacity = (double)m->min_capacity;
  return capacity < (double)n_tokens ? (int64_t)capacity : n_tokens;
}

int64_t nxc_mixture_capacity(const nxc_mixture *m, int64_t n_tokens) {
  return capacity_of(m, m->capacity_factor, n_tokens);
}

int64_t nxc_mixture_evaluation_capacity(const nxc_mixture *m, int64_t n_tokens) {
  return capacity_of(m, m->evaluation_capacity_factor, n_tokens);
}

/* ---- patterns ----
 * sum = product { "+" product };  product = term { "*" term };  term = number | "(" sum ")" | "[" numbers "]"
 * A value is a number, or a list of 0 and 1; a product of a list and a number repeats it. */

enum { MOST_LAYERS = 4096 };

typedef struct pattern_value {
  bool is_list;
  int64_t number;
  int64_t n;
  bool mixture[MOST_LAYERS];
} pattern_value;

typedef struct pattern_reader {
  const char *at;
  int depth;
  bool good;
} pattern_reader;

static bool accept(pattern_reader *r, char wanted) {
  while (*r->at == ' ') r->at++;
  if (*r->at != wanted) return false;
  r->at++;
  return true;
}

static int64_t number(pattern_reader *r) {
  char *end;
  while (*r->at == ' ') r->at++;
  bool digit = *r->at >= '0' && *r->at <= '9';
  int64_t value = strtol(r->at, &end, 10);
  r->good = r->good && digit && value <= MOST_LAYERS;
  r->at = end;
  return value;
}

static void list(pattern_reader *r, pattern_value *v) {
  v->is_list = true;
  if (accept(r, ']')) return;
  do {
    int64_t entry = number(r);
    r->good = r->good && v->n < MOST_LAYERS && entry <= 1;
    if (r->good) v->mixture[v->n++] = entry == 1;
  } while (r->good && accept(r, ','));
  r->good = r->good && accept(r, ']');
}

static void sum(pattern_reader *r, pattern_value *v);

static void term(pattern_reader *r, pattern_value *v) {
  *v = (pattern_value){0};
  if (accept(r, '[')) {
    list(r, v);
  } else if (accept(r, '(')) {
    if (++r->depth > 8) r->good = false;
    if (r->good) sum(r, v);
    r->good = r->good && accept(r, ')');
    r->depth--;
  } else {
    v->number = number(r);
  }
}

static void multiply(pattern_reader *r, pattern_value *a, const pattern_value *b) {
  int64_t times = a->is_list ? b->number : a->number;
  const pattern_value once = a->is_list ? *a : *b;
  if (a->is_list && b->is_list) r->good = false;
  if (!a->is_list && !b->is_list) {
    a->number *= b->number;
    r->good = r->good && a->number <= MOST_LAYERS;
    return;
  }
  r->good = r->good && once.n * times <= MOST_LAYERS;
  *a = (pattern_value){.is_list = true};
  for (int64_t i = 0; r->good && i < once.n * times; i++) a->mixture[a->n++] = once.mixture[i % once.n];
}

static void product(pattern_reader *r, pattern_value *v) {
  term(r, v);
  while (r->good && accept(r, '*')) {
    pattern_value factor;
    term(r, &factor);
    if (r->good) multiply(r, v, &factor);
  }
}

static void sum(pattern_reader *r, pattern_value *v) {
  product(r, v);
  while (r->good && accept(r, '+')) {
    pattern_value more;
    product(r, &more);
    r->good = r->good && v->is_list == more.is_list && v->n + more.n <= MOST_LAYERS;
    v->number += more.number;
    for (int64_t i = 0; r->good && i < more.n; i++) v->mixture[v->n++] = more.mixture[i];
  }
}

static bool pattern_read(const char *pattern, pattern_value *v) {
  pattern_reader r = {.at = pattern, .good = true};
  sum(&r, v);
  return r.good && *r.at == '\0';
}

/* Which layers are mixtures: those of a list, or those whose number modulo the frequency is the offset. */
typedef struct selection {
  int64_t frequency, offset;
  pattern_value pattern;
} selection;

static bool select_layers(const nxc_settings *s, selection *which) {
  *which = (selection){.frequency = nxc_int(s, NX_SETTING_MOE_FREQUENCY),
                       .offset = nxc_int(s, NX_SETTING_MOE_OFFSET)};
  if (!nxc_has(s, NX_SETTING_MOE_PATTERN)) return true;
  pattern_value *v = &which->pattern;
  if (!pattern_read(nxc_text(s, NX_SETTING_MOE_PATTERN), v)) return false;
  which->frequency = v->number;
  which->offset = 0;
  return v->is_list || v->number > 0;
}

static bool is_selected(const selection *which, int64_t layer) {
  if (which->pattern.is_list) return layer < which->pattern.n && which->pattern.mixture[layer];
  return layer % which->frequency == which->offset;
}

bool nxc_pattern_marks(const char *pattern, int64_t n_layers, uint8_t *marks) {
  pattern_value v;
  if (!pattern_read(pattern, &v) || !v.is_list || v.n != n_layers) return false;
  for (int64_t layer = 0; marks != NULL && layer < n_layers; layer++) marks[layer] = v.mixture[layer];
  return true;
}

bool nxc_mixture_layers_read(const nxc_settings *s, int64_t n_layers, uint8_t *is_mixture) {
  selection which;
  if (!select_layers(s, &which)) return false;
  for (int64_t layer = 0; is_mixture != NULL && layer < n_layers; layer++)
    is_mixture[layer] = is_selected(&which, layer);
  return !which.pattern.is_list || which.pattern.n == n_layers;
}
