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
  LEAST_JUDGED = 10,     /* text may be faster than its record; the best is the same of any --top */
  MOST_LISTED = 1 << 20, /* where all are judged */
  ROUNDS = 16,           /* of lists behind lists that are refused */
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
  nxc_reasons *reasons;
  candidate floor; /* only what comes behind it is listed, and not known to be refused */
  bool has_floor;
  double began_s;
} search;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_late(void *context) {
  search *s = context;
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
  nxc_own_memory memory = nxc_own_memory_of(s->request->system, sizes, training, s->scratch);
  return nxc_own_taken(s->request->machine->device, memory.total, sizes->world);
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
  return s->result->room_bytes == 0 || bytes <= s->result->room_bytes;
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

static void drop_unknown(search *s, nxc_knob knob) {
  nxc_tune_result *r = s->result;
  const nxc_values values = {.space = &r->space,
                             .speaker = s->speaker,
                             .compiled = s->request->compiled,
                             .arena = s->arena,
                             .scratch = s->scratch,
                             .left_out = &r->left_out,
                             .elsewhere = r->elsewhere,
                             .is_late = is_late,
                             .context = s};
  nxc_values_drop_unknown(&values, knob);
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
  double most_tokens_per_s = tokens / nxc_own_time_least(&sizes, &training.layout, s->request->machine);
  if (s->n_list == s->most && class_of(s, most_tokens_per_s) < s->list[s->n_list - 1].class) return;
  nxc_own_time time = nxc_own_time_of(s->request->system, &sizes, &training, s->request->machine, s->scratch);
  r->n_estimated++;
  new.class = class_of(s, time.tokens_per_s);
  if (s->has_floor && compare_candidates(&new, &s->floor) <= 0) return;
  if (!s->has_floor || !nxc_reasons_refuse(s->reasons, choice)) keep(s, &new);
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
      if (estimates && !s->has_floor) tell(s, 0.8 * n / size);
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
  tuned->has_errors = said->has_errors;
  size_t n = s->request->findings != NULL ? nxc_sink_n_findings(s->request->findings) : 0;
  bool *stays = nxc_arena_array(s->arena, n + 1, sizeof *stays);
  memcpy(stays, said->stays, n * sizeof *stays);
  tuned->stays = stays;
}

/* Without a message where it is accepted and has numbers. */
static nxc_refusal judge(search *s, const nxc_choice *choice, nxc_tuned *tuned) {
  nxc_said said = nxc_say(s->speaker, &s->result->space, choice, s->scratch);
  *tuned = (nxc_tuned){.choice = *choice, .layout = said.training.layout, .batch = said.training.batch};
  tuned->layout.cuts = NULL; /* the texts go with the settings */
  tuned->layout.order = NULL;
  if (said.refused.message != NULL) return said.refused;
  if (s->request->machine->device != NULL) {
    estimate_own(s, &said, tuned);
  } else {
    const char *lacks = forecast_plan(s, said.compiled.settings, tuned);
    if (lacks != NULL) return (nxc_refusal){.message = lacks};
  }
  tuned->class = class_of(s, tuned->tokens_per_s);
  keep_text(s, &said, tuned);
  return said.refused;
}

/* The file as it is, before anything is varied. */
static void judge_own(search *s) {
  const nxc_choice own = {{0}};
  nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
  nxc_refusal refusal = judge(s, &own, &s->result->own);
  if (refusal.message != NULL) s->result->own_refused = nxc_arena_strdup(s->arena, refusal.message);
  nxc_arena_rewind(s->scratch, mark);
}

static void judge_one(search *s, const nxc_choice *choice) {
  nxc_tune_result *r = s->result;
  nxc_tuned tuned;
  nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
  nxc_refusal refusal = judge(s, choice, &tuned);
  if (refusal.message != NULL) nxc_reasons_add(s->reasons, choice, &refusal);
  nxc_arena_rewind(s->scratch, mark);
  r->n_judged++;
  if (refusal.message != NULL || !fits(s, tuned.memory_bytes)) return;
  if (s->request->machine->device == NULL) r->n_fit++;
  r->best = nxc_arena_grow(s->arena, r->best, r->n_best, sizeof *r->best);
  r->best[r->n_best++] = tuned;
}

static void judge_layouts(search *s) {
  nxc_tune_result *r = s->result;
  bool forecasts = s->request->machine->device == NULL;
  size_t most = s->request->top > LEAST_JUDGED ? s->request->top : LEAST_JUDGED;
  for (size_t i = 0; i < s->n_list && (forecasts || r->n_best < most) && !is_late(s); i++) {
    const nxc_choice *choice = &s->list[i].choice;
    if (!nxc_reasons_refuse(s->reasons, choice)) judge_one(s, choice);
    tell(s, forecasts ? (double)(i + 1) / (double)s->n_list : 0.8 + 0.2 * (double)r->n_best / (double)most);
  }
}

/* Behind a full list of the fastest, of which none is accepted, there may be slower ones. */
static void judge_slower(search *s) {
  nxc_tune_result *r = s->result;
  const size_t n_fit = r->n_fit, n_divide = r->n_divide, n_estimated = r->n_estimated;
  for (int round = 0; round < ROUNDS && r->n_best == 0 && s->n_list == s->most && !is_late(s); round++) {
    s->floor = s->list[s->n_list - 1];
    s->has_floor = true;
    s->n_list = 0;
    nxc_reasons_list_again(s->reasons);
    list_layouts(s);
    judge_layouts(s);
  }
  r->n_fit = n_fit;
  r->n_divide = n_divide;
  r->n_estimated = n_estimated;
}

static void finish(search *s) {
  nxc_tune_result *r = s->result;
  if (r->n_best > 1) qsort(r->best, r->n_best, sizeof *r->best, compare_tuned);
  if (r->n_best > s->request->top) r->n_best = s->request->top;
  r->n_reasons = nxc_reasons_list(s->reasons, &r->reasons);
  for (size_t i = 0; i < r->n_reasons; i++) r->n_refused += r->reasons[i].n_layouts;
}

void nxc_tune(nxc_arena *arena, const nxc_tune_request *request, nxc_tune_result *result) {
  search s = {
      .arena = arena, .scratch = nxc_arena_new(), .request = request, .result = result, .began_s = now_s()};
  *result = (nxc_tune_result){.room_bytes = (1 - request->spare) * request->memory_bytes};
  result->space = nxc_space_make(arena, request->training, request->compiled->settings, request->varies);
  s.speaker = nxc_speaker_new(arena, request->request, request->compiled, request->findings);
  s.most = request->kept ? request->kept : KEPT;
  if (request->machine->device != NULL) s.list = nxc_arena_array(arena, s.most + 1, sizeof *s.list);
  judge_own(&s);
  for (int knob = 0; knob < NXC_N_KNOBS; knob++) drop_unknown(&s, (nxc_knob)knob);
  list_layouts(&s);
  if (result->n_fit == 0 && request->spare > 0) {
    result->room_bytes = request->memory_bytes;
    result->n_divide = 0;
    list_layouts(&s);
  }
  if (request->offloads && result->n_fit == 0 && !result->cut_short && request->machine->device != NULL)
    list_on_host(&s);
  s.reasons = nxc_reasons_new(arena, &result->space, request->compiled);
  judge_layouts(&s);
  if (request->machine->device != NULL) judge_slower(&s);
  finish(&s);
  nxc_arena_free(s.scratch);
}
