/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/forecast/advice.h"

#include "compiler/config/assignment.h"
#include "compiler/program/forecast/machine.h"

#include <inttypes.h>

uint64_t nxc_memory_need(const nx_plan *plan) {
  uint64_t most = 0;
  for (uint32_t stage = 0; stage < nx_plan_n_stages(plan); stage++) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++)
      bytes += nx_plan_stage_bytes(plan, stage, plan->arenas[i].kind);
    if (bytes > most) most = bytes;
  }
  return most + plan->run->workspace_bytes;
}

/* ---- changes that may help ---- */

typedef struct change {
  nxc_setting_id setting;
  nxc_value value;
} change;

/* What would be changed, if anything: false where it is so already, or makes no sense. */
typedef bool propose(const nxc_settings *settings, change *out);

static nxc_value whole(int64_t number) {
  return (nxc_value){.kind = NXC_INT, .integer = number};
}

static bool propose_zero(const nxc_settings *s, change *out) {
  *out = (change){NX_SETTING_OPTIMIZER_ZERO_STAGE, whole(1)};
  return nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE) < 1;
}

static bool propose_shards(const nxc_settings *s, change *out) {
  *out = (change){NX_SETTING_OPTIMIZER_ZERO_STAGE, whole(3)};
  return nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE) < 3;
}

static bool propose_recompute(const nxc_settings *s, change *out) {
  const nxc_value full = {.kind = NXC_STRING, .text = "full", .n_bytes = 4};
  *out = (change){NX_SETTING_RECOMPUTE_GRANULARITY, full};
  return !nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "full");
}

static bool propose_micro(const nxc_settings *s, change *out) {
  int64_t micro = nxc_int(s, NX_SETTING_BATCH_MICRO);
  *out = (change){NX_SETTING_BATCH_MICRO, whole(micro / 2)};
  return micro > 1 && micro % 2 == 0;
}

static bool propose_tensor(const nxc_settings *s, change *out) {
  int64_t tensor = nxc_int(s, NX_SETTING_MESH_TENSOR);
  *out = (change){NX_SETTING_MESH_TENSOR, whole(2 * tensor)};
  return nxc_int(s, NX_SETTING_MESH_WORLD) % (2 * tensor) == 0;
}

static propose *const proposals[] = {propose_zero, propose_shards, propose_recompute, propose_micro, propose_tensor};
enum { N_PROPOSALS = sizeof proposals / sizeof *proposals };

static void apply(nxc_settings *settings, const change *to, nxc_sink *sink) {
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

/* The need of a rank after some changes, or 0 where there is no plan. The plan is given back at once. */
static uint64_t need_after(const nxc_settings *settings, const change *changes, size_t n_changes,
                           nxc_arena *arena) {
  nxc_arena_mark mark = nxc_arena_mark_now(arena);
  nxc_sink *silent = nxc_sink_new(arena);
  nxc_settings *changed = nxc_settings_copy(arena, settings);
  nxc_plan_bytes plan;
  for (size_t i = 0; i < n_changes; i++) apply(changed, &changes[i], silent);
  derive_again(changed, silent);
  uint64_t need = nxc_program_compile(changed, arena, silent, &plan) ? nxc_memory_need(&plan.plan) : 0;
  nxc_arena_rewind(arena, mark);
  return need;
}

/* ---- the finding ---- */

enum { MAX_REMARKS = NX_N_ARENAS + N_PROPOSALS + 2 };

typedef struct telling {
  const nxc_settings *settings;
  nxc_arena *arena;
  uint64_t limit_bytes;
  nxc_remark remarks[MAX_REMARKS];
  size_t n_remarks;
  const char *fix; /* the first that makes it fit */
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

static void tell_arena(telling *t, const nx_plan *plan, const nx_arena_record *arena) {
  const nx_value *value = largest_value(plan, arena->kind);
  const char *inside = "";
  if (value != NULL)
    inside = nxc_arena_printf(t->arena, "; largest: %s %s, %s", nx_plan_string(plan, value->name),
                              show_box(t->arena, value), nxc_bytes_show(t->arena, value->bytes));
  remark(t, nxc_arena_printf(t->arena, "%s takes %s%s", nx_arena_name(arena->kind),
                             nxc_bytes_show(t->arena, arena->bytes), inside));
}

/* The three largest arenas, in order. */
static void tell_arenas(telling *t, const nx_plan *plan) {
  bool told[NX_N_ARENAS] = {false};
  for (int rank = 0; rank < 3; rank++) {
    const nx_arena_record *largest = NULL;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++) {
      const nx_arena_record *arena = &plan->arenas[i];
      if (!told[arena->kind] && (largest == NULL || arena->bytes > largest->bytes)) largest = arena;
    }
    if (largest == NULL) return;
    told[largest->kind] = true;
    tell_arena(t, plan, largest);
  }
}

/* `prefix` path=value, or path = value where there is no prefix; between them `joint`. */
static const char *show_changes(telling *t, const char *prefix, const char *joint, const change *changes,
                                size_t n) {
  const char *text = "";
  for (size_t i = 0; i < n; i++)
    text = nxc_arena_printf(t->arena, "%s%s%s%s%s%s", text, i ? joint : "", prefix,
                            nxc_setting_path(changes[i].setting), *prefix ? "=" : " = ",
                            nxc_value_show(t->arena, &changes[i].value));
  return text;
}

static void tell_changes(telling *t, const change *changes, size_t n, uint64_t need, uint64_t now) {
  bool fits = need <= t->limit_bytes;
  const char *name = show_changes(t, "", ", ", changes, n);
  remark(t, nxc_arena_printf(t->arena, "with %s a rank needs %s, %s less%s", name,
                             nxc_bytes_show(t->arena, need), nxc_bytes_show(t->arena, now - need),
                             fits ? ": it fits" : ""));
  if (fits && t->fix == NULL) t->fix = show_changes(t, "--set nx:", " ", changes, n);
}

/* A change of the same setting takes the place of an earlier one. */
static void keep_change(change *changes, size_t *n, change new) {
  size_t at = 0;
  while (at < *n && changes[at].setting != new.setting) at++;
  changes[at] = new;
  if (at == *n) ++*n;
}

/* Each change alone; where none is enough, those that help together. */
static void try_changes(telling *t, uint64_t now) {
  change changes[N_PROPOSALS], one;
  size_t n = 0;
  for (size_t i = 0; i < N_PROPOSALS; i++) {
    if (!proposals[i](t->settings, &one)) continue;
    uint64_t need = need_after(t->settings, &one, 1, t->arena);
    if (need == 0 || need >= now) continue;
    tell_changes(t, &one, 1, need, now);
    keep_change(changes, &n, one);
  }
  uint64_t need = t->fix == NULL && n > 1 ? need_after(t->settings, changes, n, t->arena) : 0;
  if (need && need < now) tell_changes(t, changes, n, need, now);
}

bool nxc_memory_check(const nxc_settings *settings, const nx_plan *plan, uint64_t limit_bytes,
                      const char *source, nxc_arena *arena, nxc_sink *sink) {
  uint64_t need = nxc_memory_need(plan);
  if (need <= limit_bytes) return true;
  telling t = {.settings = settings, .arena = arena, .limit_bytes = limit_bytes};
  tell_arenas(&t, plan);
  try_changes(&t, need);
  const char *message = nxc_arena_printf(
      arena,
      "a rank does not fit: it needs %s (%" PRIu64 " bytes; %s of them at most for workspace), and %s allows %s",
      nxc_bytes_show(arena, need), need, nxc_bytes_show(arena, plan->run->workspace_bytes), source,
      nxc_bytes_show(arena, limit_bytes));
  nxc_sink_report(sink, &(nxc_finding){.id = "NX3101",
                                       .severity = NXC_SEVERITY_ERROR,
                                       .message = message,
                                       .fix = t.fix,
                                       .remarks = t.remarks,
                                       .n_remarks = t.n_remarks});
  return false;
}

const char *nxc_memory_skip(const nxc_sink *obstacles, nxc_arena *arena, nxc_sink *sink) {
  const char *why = "";
  for (size_t i = 0; i < nxc_sink_n_findings(obstacles); i++)
    why = nxc_arena_printf(arena, "%s%s%s", why, i ? "; " : "", nxc_sink_finding(obstacles, i)->message);
  const char *text = nxc_arena_printf(arena, "memory is not judged, for there is no plan yet: %s", why);
  nxc_report(sink, "NX3102", NXC_SEVERITY_NOTE, (nxc_span){0}, NULL, "%s", text);
  return text;
}
