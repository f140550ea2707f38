/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/search.h"

#include "compiler/estimate/memory.h"
#include "compiler/estimate/advice.h"
#include "compiler/program/forecast/cost.h"
#include "compiler/program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  KEPT = 512,            /* the fastest, to be judged */
  MOST_LISTED = 1 << 20, /* where all are judged */
};

typedef struct candidate {
  nxc_choice choice;
  double class, memory_bytes;
} candidate;

typedef struct search {
  nxc_arena *arena, *scratch;
  const nxc_tune_request *request;
  nxc_tune_result *result;
  nxc_speaker *speaker;
  candidate *list; /* the best first */
  size_t n_list, most;
  bool needs_host; /* nothing fits in the device's memory alone */
  double began_s;
} search;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_late(search *s) {
  bool late = s->request->deadline_s > 0 && now_s() - s->began_s > s->request->deadline_s;
  s->result->cut_short = s->result->cut_short || late;
  return late;
}

static void tell(const search *s, double done) {
  if (s->request->progress != NULL) s->request->progress(done);
}

/* ---- estimates ---- */

const char *const *nxc_tune_parts(const nxc_machine *machine, size_t *n_parts) {
  static const char *names[NXC_N_COSTS + 1];
  *n_parts = NXC_N_SPENT;
  if (machine->device != NULL) return nxc_spent_names;
  memcpy(names, nxc_cost_names, NXC_N_COSTS * sizeof *names);
  names[NXC_N_COSTS] = "bubble";
  *n_parts = NXC_N_COSTS + 1;
  return names;
}

static double own_memory(const search *s, const nxc_sizes *sizes, const nxc_training *training) {
  const nxc_device *device = s->request->machine->device;
  nxc_own_memory memory = nxc_own_memory_of(s->request->system, sizes, training, s->scratch);
  return memory.total * device->allocator + (double)device->reserved_bytes;
}

static void estimate_own(search *s, const nxc_said *said, nxc_tuned *tuned) {
  const nxc_tune_request *r = s->request;
  nxc_sizes sizes = nxc_sizes_read(&said->training, said->compiled.settings);
  tuned->memory_bytes = own_memory(s, &sizes, &said->training);
  nxc_own_time time = nxc_own_time_of(r->system, &sizes, &said->training, r->machine, s->scratch);
  tuned->step_s = time.step_s;
  tuned->tokens_per_s = time.tokens_per_s;
  tuned->utilisation = time.utilisation;
  memcpy(tuned->parts, time.parts, sizeof time.parts);
}

/* NULL; or why there is no forecast. */
static const char *forecast_plan(search *s, const nxc_settings *settings, nxc_tuned *tuned) {
  nxc_plan_bytes plan;
  nxc_sink *sink = nxc_sink_new(s->scratch);
  if (!nxc_program_compile(settings, s->scratch, sink, &plan)) {
    size_t n = nxc_sink_n_findings(sink);
    return n > 0 ? nxc_arena_strdup(s->arena, nxc_sink_finding(sink, 0)->message) : "there is no plan";
  }
  const char *lacks = nxc_forecast_lacks(&plan.plan, s->request->machine, s->arena);
  if (lacks != NULL) return nxc_arena_printf(s->arena, "the machine description has no %s", lacks);
  nxc_forecast f = nxc_forecast_step(&plan.plan, s->request->machine, s->scratch);
  tuned->memory_bytes = (double)nxc_memory_of_plan(&plan.plan);
  tuned->step_s = f.step_s;
  tuned->tokens_per_s = f.tokens_per_s;
  tuned->utilisation = f.utilisation;
  memcpy(tuned->parts, f.class_s, sizeof f.class_s);
  tuned->parts[NXC_N_COSTS] = f.bubble_s;
  return NULL;
}

static bool fits(const search *s, double bytes) {
  if (s->result->least_bytes == 0 || bytes < s->result->least_bytes) s->result->least_bytes = bytes;
  return s->request->memory_bytes == 0 || bytes <= s->request->memory_bytes;
}

/* ---- order ---- */

/* Estimated speeds are parted into classes of half a percent: no estimate tells more. */
static double class_of(const search *s, double tokens_per_s) {
  return s->request->machine->device != NULL ? floor(log(tokens_per_s) / 0.005) : tokens_per_s;
}

static int compare(double class_a, double class_b, double bytes_a, double bytes_b, const nxc_choice *a,
                   const nxc_choice *b) {
  if (class_a != class_b) return class_a > class_b ? -1 : 1;
  if (bytes_a != bytes_b) return bytes_a < bytes_b ? -1 : 1;
  for (int knob = 0; knob < NXC_N_KNOBS; knob++)
    if (a->at[knob] != b->at[knob]) return a->at[knob] < b->at[knob] ? -1 : 1;
  return 0;
}

static int compare_candidates(const candidate *a, const candidate *b) {
  return compare(a->class, b->class, a->memory_bytes, b->memory_bytes, &a->choice, &b->choice);
}

static int compare_tuned(const void *a, const void *b) {
  const nxc_tuned *x = a, *y = b;
  return compare(x->class, y->class, x->memory_bytes, y->memory_bytes, &x->choice, &y->choice);
}

/* In order; of the list that is full the last one goes. */
static void keep(search *s, const candidate *new) {
  size_t low = 0, high = s->n_list;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare_candidates(&s->list[middle], new) < 0) low = middle + 1;
    else high = middle;
  }
  if (low == s->most) return;
  if (s->n_list < s->most) s->n_list++;
  memmove(&s->list[low + 1], &s->list[low], (s->n_list - 1 - low) * sizeof *s->list);
  s->list[low] = *new;
}

/* ---- values that the system knows ---- */

static uint32_t common_multiple(uint32_t a, uint32_t b) {
  uint32_t x = a, y = b;
  while (y != 0) {
    uint32_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

/* As few ranks as the value needs, so that there are many micro-batches; hosts divide them. */
static bool choose_world(const nxc_space *space, const nxc_choice *choice, nxc_training *training) {
  enum { ATTEMPTS = 64 };
  nxc_space trial = *space;
  nxc_training chosen;
  nxc_choice_read(space, choice, &chosen);
  const nxc_layout *l = &chosen.layout;
  uint64_t replica = (uint64_t)l->tensor * l->pipeline * l->context;
  if (replica > INT32_MAX / ATTEMPTS / l->nodes) return false;
  uint32_t unit = common_multiple((uint32_t)replica, l->nodes);
  trial.training = training;
  for (uint32_t times = 1; times <= ATTEMPTS; times++) {
    training->layout.world = times * unit;
    if (nxc_choice_divides(&trial, choice)) return true;
  }
  return false;
}

/* Whether an option that would change stands in another text than the file's. */
static bool stands_elsewhere(const search *s, const nxc_said *said) {
  const nxc_source *first = s->request->compiled->binding->origin.first;
  for (size_t i = 0; i < said->n_edits; i++) {
    const nxc_bound *bound = said->edits[i].bound;
    if (bound->given && bound->node != NULL && bound->node->at.source != first) return true;
  }
  return false;
}

/* Whether the system takes the layout, on as many ranks as are good for it. */
static bool is_accepted(search *s, const nxc_choice *choice, bool *elsewhere) {
  const nxc_space *space = &s->result->space;
  nxc_training training = *space->training;
  nxc_space probe = *space;
  probe.training = &training;
  if (!choose_world(space, choice, &training)) return false;
  nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
  const nxc_said said = nxc_say(s->speaker, &probe, choice, s->scratch);
  bool accepted = said.refused == NULL;
  *elsewhere = *elsewhere || (said.text == NULL && stands_elsewhere(s, &said));
  nxc_arena_rewind(s->scratch, mark);
  return accepted;
}

/* The value alone, or where another knob stands at its lowest: ZeRO 3 and a pipeline may exclude each
 * other. */
static bool is_known(search *s, nxc_knob knob, size_t place) {
  const nxc_space *space = &s->result->space;
  nxc_choice choice = {{0}};
  bool *elsewhere = &s->result->elsewhere[knob];
  choice.at[knob] = (uint16_t)place;
  if (is_accepted(s, &choice, elsewhere)) return true;
  for (int other = 0; other < NXC_N_KNOBS; other++)
    for (size_t low = 1; other != (int)knob && other != NXC_KNOB_GLOBAL && low < space->n_values[other];
         low++) {
      nxc_choice both = choice;
      both.at[other] = (uint16_t)low;
      if (space->values[other][low].first <= 1 && is_accepted(s, &both, elsewhere)) return true;
    }
  return false;
}

/* Of two values of a degree, of which one divides sequences too, that one is better; of two names of the same
 * the first that the system knows is enough. */
static bool is_worse(const nxc_space *space, nxc_knob knob, size_t place) {
  nxc_knob_value value = space->values[knob][place];
  for (size_t i = 0; i < place; i++) {
    nxc_knob_value other = space->values[knob][i];
    if (other.first != value.first) continue;
    if (knob == NXC_KNOB_RECOMPUTE || (knob == NXC_KNOB_TENSOR && other.second > value.second)) return true;
  }
  return false;
}

static void drop_unknown(search *s, nxc_knob knob) {
  nxc_space *space = &s->result->space;
  for (size_t place = 1; place < space->n_values[knob] && !is_late(s);) {
    if (is_worse(space, knob, place) || !is_known(s, knob, place)) nxc_space_drop(space, knob, place);
    else place++;
  }
}

/* ---- layouts ---- */

/* Sizes have what the file's settings say; what goes to the host's memory may be another. */
static void read_offload(const nxc_space *space, const nxc_choice *choice, nxc_sizes *sizes) {
  if (choice->at[NXC_KNOB_OFFLOAD_OPTIMIZER] != 0)
    sizes->offload_optimizer =
        (double)nxc_choice_value(space, choice, NXC_KNOB_OFFLOAD_OPTIMIZER).first / 1000;
  if (choice->at[NXC_KNOB_OFFLOAD_ACTIVATIONS] != 0)
    sizes->offload_activations =
        (double)nxc_choice_value(space, choice, NXC_KNOB_OFFLOAD_ACTIVATIONS).first / 1000;
}

static void estimate(search *s, const nxc_choice *choice) {
  nxc_tune_result *r = s->result;
  nxc_training training;
  nxc_choice_read(&r->space, choice, &training);
  nxc_sizes sizes = nxc_sizes_read(&training, s->request->compiled->settings);
  read_offload(&r->space, choice, &sizes);
  candidate new = {.choice = *choice, .memory_bytes = own_memory(s, &sizes, &training)};
  if (!fits(s, new.memory_bytes)) return;
  r->n_fit++;
  double tokens = sizes.micro_batches * sizes.micro_batch * sizes.sequence * sizes.data;
  double most_tokens_per_s = tokens / nxc_own_time_least(&sizes, s->request->machine);
  if (s->n_list == s->most && class_of(s, most_tokens_per_s) < s->list[s->n_list - 1].class) return;
  nxc_own_time time = nxc_own_time_of(s->request->system, &sizes, &training, s->request->machine, s->scratch);
  r->n_estimated++;
  new.class = class_of(s, time.tokens_per_s);
  keep(s, &new);
}

static const nxc_knob offloads[] = {NXC_KNOB_OFFLOAD_OPTIMIZER, NXC_KNOB_OFFLOAD_ACTIVATIONS};

static bool is_on_host(const nxc_choice *choice) {
  return choice->at[offloads[0]] != 0 || choice->at[offloads[1]] != 0;
}

static void list_layouts(search *s) {
  const nxc_space *space = &s->result->space;
  bool estimates = s->request->machine->device != NULL;
  double size = nxc_space_size(space), n = 0;
  nxc_choice choice = {{0}};
  do {
    n++;
    if (s->needs_host && !is_on_host(&choice)) continue; /* it does not fit */
    if (!nxc_choice_divides(space, &choice)) continue;
    if (s->result->n_divide++ % 64 == 0) {
      if (is_late(s)) return;
      if (estimates) tell(s, 0.8 * n / size);
    }
    if (!estimates) {
      if (s->n_list == MOST_LISTED) return;
      s->list = nxc_arena_grow(s->arena, s->list, s->n_list, sizeof *s->list);
      s->list[s->n_list++] = (candidate){.choice = choice};
      continue;
    }
    nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
    estimate(s, &choice);
    nxc_arena_rewind(s->scratch, mark);
  } while (nxc_space_next(space, &choice));
}

/* Where nothing fits, what the host's memory can take of it. */
static void list_on_host(search *s) {
  const nxc_tune_request *r = s->request;
  const bool varies[NXC_N_KNOBS] = {
      [NXC_KNOB_OFFLOAD_OPTIMIZER] = true, [NXC_KNOB_OFFLOAD_ACTIVATIONS] = true};
  const nxc_space with = nxc_space_make(s->arena, r->training, r->compiled->settings, varies);
  nxc_space *space = &s->result->space;
  for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
    space->values[offloads[i]] = with.values[offloads[i]];
    space->n_values[offloads[i]] = with.n_values[offloads[i]];
    drop_unknown(s, offloads[i]);
  }
  s->needs_host = true;
  if (!is_late(s)) list_layouts(s);
}

/* ---- judging ---- */

static void keep_text(search *s, const nxc_said *said, nxc_tuned *tuned) {
  nxc_option_change *edits = nxc_arena_array(s->arena, said->n_edits + 1, sizeof *edits);
  for (size_t i = 0; i < said->n_edits; i++) {
    const nxc_option_change *edit = &said->edits[i];
    edits[i] = *edit;
    if (edit->value != NULL) edits[i].value = nxc_value_copy(s->arena, edit->value);
    if (edit->usual != NULL) edits[i].usual = nxc_value_copy(s->arena, edit->usual);
  }
  tuned->edits = edits;
  tuned->n_edits = said->n_edits;
  tuned->text = nxc_arena_strdup(s->arena, said->text);
}

/* NULL: it is accepted, has numbers, and fits. */
static const char *judge(search *s, const nxc_choice *choice, nxc_tuned *tuned) {
  nxc_said said = nxc_say(s->speaker, &s->result->space, choice, s->scratch);
  *tuned = (nxc_tuned){.choice = *choice, .layout = said.training.layout, .batch = said.training.batch};
  tuned->layout.cuts = NULL; /* the texts go with the settings */
  tuned->layout.order = NULL;
  if (said.refused != NULL) return nxc_arena_strdup(s->arena, said.refused);
  if (s->request->machine->device != NULL) {
    estimate_own(s, &said, tuned);
  } else {
    const char *lacks = forecast_plan(s, said.compiled.settings, tuned);
    if (lacks != NULL) return lacks;
  }
  tuned->class = class_of(s, tuned->tokens_per_s);
  keep_text(s, &said, tuned);
  return NULL;
}

static void judge_layouts(search *s) {
  nxc_tune_result *r = s->result;
  bool forecasts = s->request->machine->device == NULL;
  for (size_t i = 0; i < s->n_list && (forecasts || r->n_best < s->request->top) && !is_late(s); i++) {
    nxc_tuned tuned;
    nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
    const char *refused = judge(s, &s->list[i].choice, &tuned);
    nxc_arena_rewind(s->scratch, mark);
    r->n_judged++;
    if (refused != NULL) r->n_refused++;
    if (refused != NULL && r->refused == NULL) r->refused = refused;
    tell(s, forecasts ? (double)(i + 1) / (double)s->n_list
                      : 0.8 + 0.2 * (double)r->n_best / (double)s->request->top);
    if (refused != NULL || !fits(s, tuned.memory_bytes)) continue;
    if (forecasts) r->n_fit++;
    r->best = nxc_arena_grow(s->arena, r->best, r->n_best, sizeof *r->best);
    r->best[r->n_best++] = tuned;
  }
  if (r->n_best > 1) qsort(r->best, r->n_best, sizeof *r->best, compare_tuned);
  if (r->n_best > s->request->top) r->n_best = s->request->top;
}

void nxc_tune(nxc_arena *arena, const nxc_tune_request *request, nxc_tune_result *result) {
  search s = {
      .arena = arena, .scratch = nxc_arena_new(), .request = request, .result = result, .began_s = now_s()};
  const nxc_choice own = {{0}};
  *result = (nxc_tune_result){0};
  result->space = nxc_space_make(arena, request->training, request->compiled->settings, request->varies);
  s.speaker = nxc_speaker_new(arena, request->request, request->compiled, request->findings);
  s.most = request->kept ? request->kept : KEPT;
  if (request->machine->device != NULL) s.list = nxc_arena_array(arena, s.most + 1, sizeof *s.list);
  nxc_arena_mark mark = nxc_arena_mark_now(s.scratch);
  result->own_refused = judge(&s, &own, &result->own);
  nxc_arena_rewind(s.scratch, mark);
  for (int knob = 0; knob < NXC_N_KNOBS; knob++) drop_unknown(&s, (nxc_knob)knob);
  list_layouts(&s);
  if (request->offloads && result->n_fit == 0 && !result->cut_short && request->machine->device != NULL)
    list_on_host(&s);
  judge_layouts(&s);
  nxc_arena_free(s.scratch);
}
