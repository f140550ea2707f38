/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/own_advice.h"

#include "compiler/config/write/write.h"

/* ---- over the file ---- */

/* What is assumed for a part of a configuration may lack what its system demands. */
static size_t n_errors(const nxc_own_estimate *own) {
  return nxc_sink_count(own->findings, NXC_SEVERITY_ERROR);
}

/* With more of --set; of two for one option the last counts. */
static nxc_after after_sets(const nxc_own_advice *a, const char *const *more, size_t n_more,
                            const char *world) {
  nxc_request request = *a->request;
  if (world != NULL) request.world_size = world;
  const char **sets = nxc_arena_array(a->scratch, request.n_sets + n_more, sizeof *sets);
  for (size_t i = 0; i < request.n_sets; i++) sets[i] = request.sets[i];
  for (size_t i = 0; i < n_more; i++) sets[request.n_sets++] = more[i];
  request.sets = sets;
  nxc_own_estimate own = nxc_own_estimate_make(a->asked, &request, a->scratch);
  bool good = own.system != NULL && own.lacks == NULL && n_errors(&own) <= n_errors(a->own);
  return good ? (nxc_after){.bytes = nxc_own_bytes(&own), .step_s = own.time.step_s} : (nxc_after){0};
}

static nxc_after after_settings(const nxc_own_advice *a, const nxc_change *changes, size_t n_changes) {
  nxc_arena_mark mark = nxc_arena_mark_now(a->scratch);
  const char **sets = nxc_arena_array(a->scratch, n_changes, sizeof *sets), *world = NULL;
  size_t n_sets = 0;
  for (size_t i = 0; i < n_changes; i++) {
    const char *value = nxc_value_show(a->scratch, &changes[i].value);
    const char *path = nxc_setting_path(changes[i].setting);
    if (changes[i].setting == NX_SETTING_MESH_WORLD) world = value;
    else sets[n_sets++] = nxc_arena_printf(a->scratch, "nx:%s=%s", path, value);
  }
  nxc_after after = after_sets(a, sets, n_sets, world);
  nxc_arena_rewind(a->scratch, mark);
  return after;
}

/* ---- in the file's options ---- */

/* NXC_N_KNOBS where tune does not vary the setting; *first is the value as its space has it. */
static nxc_knob knob_of(const nxc_own_advice *a, const nxc_change *change, int64_t *first) {
  *first = change->value.integer;
  switch (change->setting) {
  case NX_SETTING_OPTIMIZER_ZERO_STAGE: return NXC_KNOB_ZERO;
  case NX_SETTING_MESH_TENSOR: return NXC_KNOB_TENSOR;
  case NX_SETTING_MESH_PIPELINE: return NXC_KNOB_STAGES;
  case NX_SETTING_BATCH_MICRO: *first *= a->own->training.batch.rows; return NXC_KNOB_MICRO;
  case NX_SETTING_RECOMPUTE_GRANULARITY: *first = NXC_RECOMPUTE_FULL; return NXC_KNOB_RECOMPUTE;
  default: return NXC_N_KNOBS;
  }
}

static void begin(nxc_own_advice *a) {
  const bool varies[NXC_N_KNOBS] = {[NXC_KNOB_TENSOR] = true,
                                    [NXC_KNOB_STAGES] = true,
                                    [NXC_KNOB_MICRO] = true,
                                    [NXC_KNOB_ZERO] = true,
                                    [NXC_KNOB_RECOMPUTE] = true};
  const nxc_own_estimate *own = a->own;
  a->space = nxc_space_make(a->arena, &own->training, own->compiled.settings, varies);
  a->speaker = nxc_speaker_new(a->arena, &own->assumed.request, &own->compiled, own->findings);
}

/* "a=1", of which each edit is one. */
static const char *assignment(const nxc_option_change *edit, nxc_arena *arena) {
  return nxc_arena_printf(arena, "%s=%s", edit->bound->row->name,
                          nxc_value_show(arena, nxc_option_change_value(edit)));
}

/* "--set a=1 --set b=2", as a shell reads it; and "a=1, b taken out". */
static void show_edits(const nxc_own_advice *a, const nxc_said *said, nxc_after *after) {
  nxc_buffer sets = {.arena = a->arena};
  const char *words = "";
  for (size_t i = 0; i < said->n_edits; i++) {
    const nxc_option_change *edit = &said->edits[i];
    words =
        nxc_arena_printf(a->arena, "%s%s%s", words, i ? ", " : "", nxc_option_change_show(a->arena, edit));
    nxc_buffer_puts(&sets, i ? " --set " : "--set ");
    nxc_write_shell_word(&sets, assignment(edit, a->arena), false);
  }
  after->said = words;
  after->fix = sets.bytes;
}

/* Whether the text of the file cannot say it: it has no place for it, or another text counts before it. */
static bool stands_elsewhere(const nxc_said *said) {
  bool elsewhere = said->text == NULL;
  for (size_t i = 0; i < said->n_edits; i++) elsewhere |= said->edits[i].bound->kind > NXC_FROM_FILE;
  return elsewhere;
}

static nxc_after after_edits(const nxc_own_advice *a, const nxc_said *said) {
  const char **sets = nxc_arena_array(a->scratch, said->n_edits + 1, sizeof *sets);
  for (size_t i = 0; i < said->n_edits; i++) sets[i] = assignment(&said->edits[i], a->scratch);
  return after_sets(a, sets, said->n_edits, NULL);
}

static nxc_after after_choice(const nxc_own_advice *a, const nxc_choice *choice) {
  nxc_after after = {0};
  if (!nxc_choice_divides(&a->space, choice)) return after;
  nxc_arena_mark mark = nxc_arena_mark_now(a->scratch);
  nxc_said said = nxc_say(a->speaker, &a->space, choice, a->scratch);
  if (said.refused.message == NULL) {
    nxc_own_estimate own = {.system = a->own->system, .compiled = said.compiled, .training = said.training};
    nxc_own_estimate_sizes(&own, a->asked, a->scratch);
    after = (nxc_after){.bytes = nxc_own_bytes(&own), .step_s = own.time.step_s};
  } else if (stands_elsewhere(&said)) {
    after = after_edits(a, &said);
  }
  if (after.bytes > 0) show_edits(a, &said, &after);
  nxc_arena_rewind(a->scratch, mark);
  return after;
}

/* What tune does not vary. */
static nxc_after after_setting(const nxc_own_advice *a, const nxc_change *change) {
  nxc_arena_mark mark = nxc_arena_mark_now(a->scratch);
  const nxc_said said = nxc_say_setting(a->speaker, change->setting, &change->value, a->scratch);
  nxc_after after = said.n_edits > 0 ? after_edits(a, &said) : (nxc_after){0};
  if (after.bytes > 0) show_edits(a, &said, &after);
  nxc_arena_rewind(a->scratch, mark);
  return after;
}

/* Of several values of a knob that mean the same the first that the system takes. */
static nxc_after after_one(nxc_own_advice *a, nxc_knob knob, int64_t first) {
  for (size_t place = 1; place < a->space.n_values[knob]; place++) {
    nxc_choice choice = {{0}};
    if (a->space.values[knob][place].first != first) continue;
    choice.at[knob] = (uint16_t)place;
    nxc_after after = after_choice(a, &choice);
    if (after.bytes == 0) continue;
    a->accepted[knob] = (uint16_t)place;
    return after;
  }
  return (nxc_after){0};
}

static nxc_after after_all(const nxc_own_advice *a, const nxc_change *changes, size_t n_changes) {
  nxc_choice choice = {{0}};
  for (size_t i = 0; i < n_changes; i++) {
    int64_t first;
    nxc_knob knob = knob_of(a, &changes[i], &first);
    if (knob == NXC_N_KNOBS) return (nxc_after){0};
    choice.at[knob] = a->accepted[knob];
  }
  return after_choice(a, &choice);
}

nxc_after nxc_own_after(void *context, const nxc_change *changes, size_t n_changes) {
  nxc_own_advice *a = context;
  int64_t first;
  bool ranks = changes[0].setting == NX_SETTING_MESH_WORLD; /* of which no option tells */
  if (ranks || a->own->compiled.binding->origin.first == NULL) return after_settings(a, changes, n_changes);
  if (a->speaker == NULL) begin(a);
  nxc_knob knob = knob_of(a, &changes[0], &first);
  if (n_changes > 1) return after_all(a, changes, n_changes);
  return knob == NXC_N_KNOBS ? after_setting(a, changes) : after_one(a, knob, first);
}
