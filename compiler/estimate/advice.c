/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/advice.h"

#include "compiler/config/rules/assignment.h"
#include "compiler/machine/machine.h"
#include "compiler/program/program.h"

#include <inttypes.h>
#include <math.h>

uint64_t nxc_memory_of_plan(const nx_plan *plan) {
  uint64_t most = 0;
  for (uint32_t stage = 0; stage < nx_plan_n_stages(plan); stage++) {
    uint64_t bytes = nx_plan_copy_bytes(plan, stage);
    for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++)
      bytes += nx_plan_stage_bytes(plan, stage, plan->arenas[i].kind);
    if (bytes > most) most = bytes;
  }
  return most + plan->run->workspace_bytes;
}

/* ---- changes that may help ---- */

/* What would be changed, if anything: false where it is so already, or makes no sense. */
typedef bool propose(const nxc_settings *settings, nxc_change *out);

static nxc_value whole(int64_t number) {
  return (nxc_value){.kind = NXC_INT, .integer = number};
}

static bool propose_zero(const nxc_settings *s, nxc_change *out) {
  *out = (nxc_change){NX_SETTING_OPTIMIZER_ZERO_STAGE, whole(1)};
  return nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE) < 1;
}

static bool propose_shards(const nxc_settings *s, nxc_change *out) {
  *out = (nxc_change){NX_SETTING_OPTIMIZER_ZERO_STAGE, whole(3)};
  return nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE) < 3;
}

static bool propose_recompute(const nxc_settings *s, nxc_change *out) {
  const nxc_value full = {.kind = NXC_STRING, .text = "full", .n_bytes = 4};
  *out = (nxc_change){NX_SETTING_RECOMPUTE_GRANULARITY, full};
  return !nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "full");
}

static bool propose_micro(const nxc_settings *s, nxc_change *out) {
  int64_t micro = nxc_int(s, NX_SETTING_BATCH_MICRO);
  *out = (nxc_change){NX_SETTING_BATCH_MICRO, whole(micro / 2)};
  return micro > 1 && micro % 2 == 0;
}

static bool propose_tensor(const nxc_settings *s, nxc_change *out) {
  int64_t tensor = nxc_int(s, NX_SETTING_MESH_TENSOR);
  *out = (nxc_change){NX_SETTING_MESH_TENSOR, whole(2 * tensor)};
  return nxc_int(s, NX_SETTING_MESH_WORLD) % (2 * tensor) == 0;
}

static bool propose_stages(const nxc_settings *s, nxc_change *out) {
  int64_t stages = nxc_int(s, NX_SETTING_MESH_PIPELINE);
  *out = (nxc_change){NX_SETTING_MESH_PIPELINE, whole(2 * stages)};
  return nxc_int(s, NX_SETTING_MESH_WORLD) % (2 * stages) == 0;
}

static bool propose_flash(const nxc_settings *s, nxc_change *out) {
  *out = (nxc_change){NX_SETTING_ATTENTION_FLASH, (nxc_value){.kind = NXC_BOOL, .boolean = true}};
  return nxc_has(s, NX_SETTING_ATTENTION_FLASH) && !nxc_flag(s, NX_SETTING_ATTENTION_FLASH);
}

/* The cheapest first; those from `propose_shards` on only where none before them is enough. */
static propose *const proposals[] = {propose_zero,   propose_flash,  propose_recompute, propose_micro,
                                     propose_shards, propose_tensor, propose_stages};
enum { N_PROPOSALS = sizeof proposals / sizeof *proposals };

static void apply(nxc_settings *settings, const nxc_change *to, nxc_sink *sink) {
  const nxc_provenance from = {.kind = NXC_FROM_CLI};
  nxc_settings_override(settings, to->setting, &to->value, &from, sink);
}

/* What was derived from what has changed: it would no longer hold. */
static void derive_again(nxc_settings *settings, nxc_sink *sink) {
  static const nxc_setting_id ids[] = {NX_SETTING_MESH_DATA, NX_SETTING_BATCH_ACCUMULATION,
                                       NX_SETTING_MODEL_VOCAB_PADDED};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (nxc_settings_from(settings, ids[i])->kind == NXC_FROM_RULE) nxc_settings_clear(settings, ids[i]);
  nxc_settings_derive(settings, sink);
}

typedef struct plan_source {
  const nxc_settings *settings;
  nxc_arena *arena;
} plan_source;

/* The plan is given back at once. */
static nxc_after need_of_plan_after(void *context, const nxc_change *changes, size_t n_changes) {
  const plan_source *source = context;
  nxc_arena_mark mark = nxc_arena_mark_now(source->arena);
  nxc_sink *silent = nxc_sink_new(source->arena);
  nxc_settings *changed = nxc_settings_copy(source->arena, source->settings);
  nxc_plan_bytes plan;
  for (size_t i = 0; i < n_changes; i++) apply(changed, &changes[i], silent);
  derive_again(changed, silent);
  bool compiled = nxc_program_compile(changed, source->arena, silent, &plan);
  const nxc_after after = {.bytes = compiled ? nxc_memory_of_plan(&plan.plan) : 0};
  nxc_arena_rewind(source->arena, mark);
  return after;
}

/* ---- the finding ---- */

enum { N_ARENAS_TOLD = 3, MAX_REMARKS = NX_N_ARENAS + N_PROPOSALS + 5 };

typedef struct telling {
  const nxc_settings *settings;
  nxc_arena *arena;
  const nxc_memory_need *need;
  nxc_remark remarks[MAX_REMARKS];
  size_t n_remarks;
  const char *fix; /* of the changes that make it fit the first, or the one whose step is shortest */
  double fix_step_s;
} telling;

static void remark(telling *t, const char *text) {
  t->remarks[t->n_remarks++].text = text;
}

static const nx_value *largest_value(const nx_plan *plan, uint32_t arena) {
  const nx_value *largest = NULL;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++) {
    const nx_value *value = &plan->values[i];
    if (value->arena != arena || value->view_of != NX_NONE) continue;
    if (largest == NULL || value->bytes > largest->bytes) largest = value;
  }
  return largest;
}

static const char *show_box(nxc_arena *arena, const nx_value *value) {
  const char *text = nxc_arena_printf(arena, "%s[", nx_dtype_name(value->dtype));
  for (int dim = 0; dim < value->n_dims; dim++)
    text = nxc_arena_printf(arena, "%s%s%" PRId64, text, dim ? "," : "", value->dims[dim]);
  return nxc_arena_printf(arena, "%s]", text);
}

static const char *show_arena(nxc_arena *arena, const nx_plan *plan, const nx_arena_record *of) {
  const nx_value *value = largest_value(plan, of->kind);
  const char *inside = "";
  if (value != NULL)
    inside = nxc_arena_printf(arena, "; largest: %s %s, %s", nx_plan_string(plan, value->name),
                              show_box(arena, value), nxc_bytes_show(arena, value->bytes));
  return nxc_arena_printf(arena, "%s takes %s%s", nx_arena_name(of->kind), nxc_bytes_show(arena, of->bytes),
                          inside);
}

/* The largest arenas, in order. */
static size_t show_arenas(nxc_arena *arena, const nx_plan *plan, const char *texts[N_ARENAS_TOLD]) {
  bool told[NX_N_ARENAS] = {false};
  for (size_t n = 0; n < N_ARENAS_TOLD; n++) {
    const nx_arena_record *largest = NULL;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++) {
      const nx_arena_record *record = &plan->arenas[i];
      if (!told[record->kind] && (largest == NULL || record->bytes > largest->bytes)) largest = record;
    }
    if (largest == NULL) return n;
    told[largest->kind] = true;
    texts[n] = show_arena(arena, plan, largest);
  }
  return N_ARENAS_TOLD;
}

/* `prefix` path=value, or path = value where there is no prefix; between them `joint`. */
static const char *show_changes(telling *t, const char *prefix, const char *joint, const nxc_change *changes,
                                size_t n) {
  const char *text = "";
  for (size_t i = 0; i < n; i++)
    text = nxc_arena_printf(t->arena, "%s%s%s%s%s%s", text, i ? joint : "", prefix,
                            nxc_setting_path(changes[i].setting), *prefix ? "=" : " = ",
                            nxc_value_show(t->arena, &changes[i].value));
  return text;
}

/* "; a step takes 33 % longer" */
static const char *show_step(const telling *t, double step_s) {
  if (step_s <= 0 || t->need->step_s <= 0) return "";
  double percent = 100 * (step_s / t->need->step_s - 1);
  if (fabs(percent) < 0.5) return "; a step takes as long";
  return nxc_arena_printf(t->arena, "; a step takes %.0f %% %s", fabs(percent),
                          percent > 0 ? "longer" : "less");
}

static void tell_changes(telling *t, const nxc_change *changes, size_t n, const nxc_after *after) {
  bool fits = after->bytes <= t->need->limit_bytes;
  const char *name = after->said ? after->said : show_changes(t, "", ", ", changes, n);
  remark(t, nxc_arena_printf(t->arena, "with %s a rank needs %s, %s less%s%s", name,
                             nxc_bytes_show(t->arena, after->bytes),
                             nxc_bytes_show(t->arena, t->need->bytes - after->bytes), fits ? ": it fits" : "",
                             show_step(t, after->step_s)));
  if (!fits || (t->fix != NULL && after->step_s >= t->fix_step_s)) return;
  t->fix = after->fix ? after->fix : show_changes(t, "--set nx:", " ", changes, n);
  t->fix_step_s = after->step_s;
}

/* A change of the same setting takes the place of an earlier one. */
static void keep_change(nxc_change *changes, size_t *n, nxc_change new) {
  size_t at = 0;
  while (at < *n && changes[at].setting != new.setting) at++;
  changes[at] = new;
  if (at == *n) ++*n;
}

/* The fewest ranks with which it fits, of those that are a power of two more. */
static void try_worlds(telling *t) {
  enum { MOST_TIMES = 64 };
  const nxc_memory_need *now = t->need;
  int64_t world = nxc_int(t->settings, NX_SETTING_MESH_WORLD);
  for (int64_t times = 2; times <= MOST_TIMES && world <= INT32_MAX / times; times *= 2) {
    const nxc_change more = {NX_SETTING_MESH_WORLD, whole(times * world)};
    nxc_after after = now->after(now->context, &more, 1);
    if (after.bytes == 0 || after.bytes > now->limit_bytes) continue;
    const char *ranks = nxc_arena_printf(t->arena, "%" PRId64, times * world);
    after.said = nxc_arena_printf(t->arena, "%s ranks", ranks);
    after.fix = nxc_arena_printf(t->arena, "--world-size %s", ranks);
    after.step_s = 0; /* the batch may be another */
    tell_changes(t, &more, 1, &after);
    return;
  }
}

/* Each change alone; where none is enough, those that help together; and more ranks. */
static void try_changes(telling *t) {
  const nxc_memory_need *now = t->need;
  nxc_change changes[N_PROPOSALS], one;
  size_t n = 0;
  for (size_t i = 0; i < N_PROPOSALS; i++) {
    if (proposals[i] == propose_shards && t->fix != NULL) break;
    if (!proposals[i](t->settings, &one)) continue;
    nxc_after after = now->after(now->context, &one, 1);
    if (after.bytes == 0 || after.bytes >= now->bytes) continue;
    tell_changes(t, &one, 1, &after);
    if (one.setting != NX_SETTING_MESH_PIPELINE)
      keep_change(changes, &n, one); /* ranks may be too few for all */
  }
  nxc_after all = t->fix == NULL && n > 1 ? now->after(now->context, changes, n) : (nxc_after){0};
  if (all.bytes && all.bytes < now->bytes) tell_changes(t, changes, n, &all);
  if (t->fix == NULL) try_worlds(t);
}

static const char *show_need(const nxc_memory_need *need, nxc_arena *arena) {
  return nxc_arena_printf(arena, "it needs %s (%" PRIu64 " bytes; %s), and %s allows %s",
                          nxc_bytes_show(arena, need->bytes), need->bytes, need->parts, need->limit_source,
                          nxc_bytes_show(arena, need->limit_bytes));
}

bool nxc_memory_judge(const nxc_memory_need *need, const nxc_settings *settings, nxc_arena *arena,
                      nxc_sink *sink) {
  static const struct {
    const char *id, *words;
    nxc_severity severity;
  } verdicts[] = {{"NX3103", "fits", NXC_SEVERITY_NOTE},
                  {"NX3104", "may not fit", NXC_SEVERITY_WARNING},
                  {"NX3101", "does not fit", NXC_SEVERITY_ERROR}};
  bool fits = need->bytes <= need->limit_bytes;
  int verdict = fits ? 0 : need->least_bytes > 0 && need->least_bytes <= need->limit_bytes ? 1 : 2;
  telling t = {.settings = settings, .arena = arena, .need = need};
  if (!fits) {
    for (size_t i = 0; i < need->n_largest; i++) remark(&t, need->largest[i]);
    try_changes(&t);
    if (t.fix == NULL)
      remark(&t, "nxcfg tune searches the other layouts, and says what the least of them needs");
  }
  if (need->unjudged != NULL) remark(&t, need->unjudged);
  nxc_sink_report(sink,
                  &(nxc_finding){.id = verdicts[verdict].id,
                                 .severity = verdicts[verdict].severity,
                                 .message = nxc_arena_printf(arena, "a rank of %s %s: %s", need->whose,
                                                             verdicts[verdict].words, show_need(need, arena)),
                                 .fix = t.fix,
                                 .remarks = t.remarks,
                                 .n_remarks = t.n_remarks});
  return fits;
}

bool nxc_memory_check(const nxc_settings *settings, const nx_plan *plan, uint64_t limit_bytes,
                      const char *source, nxc_arena *arena, nxc_sink *sink) {
  const char *largest[N_ARENAS_TOLD];
  plan_source context = {settings, arena};
  nxc_memory_need need = {.whose = "nxrun",
                          .bytes = nxc_memory_of_plan(plan),
                          .limit_bytes = limit_bytes,
                          .limit_source = source,
                          .after = need_of_plan_after,
                          .context = &context};
  need.parts = nxc_arena_printf(arena, "%s of them at most for workspace",
                                nxc_bytes_show(arena, plan->run->workspace_bytes));
  need.largest = largest;
  need.n_largest = show_arenas(arena, plan, largest);
  return nxc_memory_judge(&need, settings, arena, sink);
}

const char *nxc_obstacles_show(const nxc_sink *obstacles, nxc_arena *arena) {
  enum { MOST_SHOWN = 3 };
  const char *why = "";
  size_t n = nxc_sink_n_findings(obstacles);
  for (size_t i = 0; i < n && i < MOST_SHOWN; i++)
    why = nxc_arena_printf(arena, "%s%s%s", why, i ? "; " : "", nxc_sink_finding(obstacles, i)->message);
  return n <= MOST_SHOWN
             ? why
             : nxc_arena_printf(arena, "%s; and %zu more (validate --for nxrun)", why, n - MOST_SHOWN);
}

void nxc_memory_skip(const char *why, nxc_sink *sink) {
  nxc_report(sink, "NX3102", NXC_SEVERITY_NOTE, (nxc_span){0}, NULL, "memory is not judged: %s", why);
}
