/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/say.h"

#include "compiler/convert/compose.h"

#include <string.h>

struct nxc_speaker {
  const nxc_request *request;
  const nxc_compiled *compiled;
  const nxc_sink *findings;
  bool *speaks;  /* of each option and setting: the option may say it */
  bool *sets;    /* the same: it does */
  bool *follows; /* of each setting: an option of the file says it, which follows from others */
  const char **lacking; /* of each option: why it is not said; NULL: it may be */
  nxc_setting_id *places; /* of each option: given, and only says which layers or ranks have what: of these
                           * cuts, or this division of data (NX_N_SETTINGS: neither) */
  bool has_places, has_references, restates;
};

/* ---- which options matter ---- */

static bool is_here(const nxc_compiled *compiled, const nxc_option_row *row) {
  return row->alias_of == NULL && nxc_binding_may_have(compiled->binding, row);
}

/* Its value is read elsewhere in the file, and may change with what stands there. */
static bool refers(const nxc_bound *bound) {
  return bound->given && bound->node != NULL && bound->node->derivation != NULL;
}

/* What layouts are made of. */
static const nxc_setting_id laid_out[] = {
    NX_SETTING_MESH_TENSOR,       NX_SETTING_MESH_PIPELINE,         NX_SETTING_MESH_VIRTUAL_PIPELINE,
    NX_SETTING_MESH_CONTEXT,      NX_SETTING_MESH_EXPERT,           NX_SETTING_MESH_ULYSSES,
    NX_SETTING_MESH_DATA,         NX_SETTING_BATCH_MICRO,           NX_SETTING_BATCH_GLOBAL,
    NX_SETTING_PIPELINE_CUTS,     NX_SETTING_BATCH_ACCUMULATION,    NX_SETTING_OPTIMIZER_ZERO_STAGE,
    NX_SETTING_RECOMPUTE_LAYERS,  NX_SETTING_RECOMPUTE_GRANULARITY, NX_SETTING_RECOMPUTE_METHOD,
    NX_SETTING_SEQUENCE_PARALLEL, NX_SETTING_RECOMPUTE_MODULES,     NX_SETTING_ATTENTION_RING,
    NX_SETTING_OFFLOAD_OPTIMIZER, NX_SETTING_OFFLOAD_ACTIVATIONS,   NX_SETTING_MESH_EXPERT_TENSOR,
    NX_SETTING_MESH_REPLICATE};

static void find_options(nxc_speaker *s, nxc_arena *arena) {
  const nxc_dialect *dialect = s->compiled->dialect;
  s->speaks = nxc_arena_array(arena, dialect->n_options * NX_N_SETTINGS, sizeof *s->speaks);
  s->sets = nxc_arena_array(arena, dialect->n_options * NX_N_SETTINGS, sizeof *s->sets);
  s->follows = nxc_arena_array(arena, NX_N_SETTINGS, sizeof *s->follows);
  s->lacking = nxc_arena_array(arena, dialect->n_options, sizeof *s->lacking);
  for (size_t option = 0; option < dialect->n_options; option++) {
    const nxc_option_row *row = &dialect->options[option];
    if (!nxc_binding_may_have(s->compiled->binding, row)) s->lacking[option] = "it is not there";
    for (size_t i = 0; is_here(s->compiled, row) && i < sizeof laid_out / sizeof *laid_out; i++) {
      bool speaks = nxc_option_speaks_of(arena, row, laid_out[i]);
      s->speaks[option * NX_N_SETTINGS + laid_out[i]] = speaks;
      s->follows[laid_out[i]] |= speaks && s->compiled->binding->options[option].given;
      s->has_references |= speaks && refers(&s->compiled->binding->options[option]);
    }
    for (size_t i = 0; i < row->n_sets; i++) s->sets[option * NX_N_SETTINGS + row->sets[i].setting] = true;
    const nxc_setting_id same = row->from ? nxc_setting_find(row->from) : NX_N_SETTINGS;
    if (same < NX_N_SETTINGS) s->sets[option * NX_N_SETTINGS + same] = true;
  }
}

/* Numbers, and what else is composed, that only the rules read which derive what stands where. */
static void find_places(nxc_speaker *s, nxc_arena *arena) {
  const nxc_binding *binding = s->compiled->binding;
  s->places = nxc_arena_array(arena, binding->dialect->n_options, sizeof *s->places);
  for (size_t i = 0; i < binding->dialect->n_options; i++) s->places[i] = NX_N_SETTINGS;
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool derives = rule->derives == NX_SETTING_PIPELINE_CUTS || rule->derives == NX_SETTING_MESH_REPLICATE;
    if (!derives || rule->dialect == NULL || strcmp(rule->dialect, binding->dialect->name) != 0) continue;
    const nxc_expression *derive = nxc_expression_of(arena, rule->derive);
    for (size_t n = 0; n < derive->n_names; n++) {
      if (derive->names[n].kind != NXC_NAME_OPTION) continue;
      const nxc_bound *bound = nxc_binding_find(binding, derive->names[n].path);
      if (bound == NULL || !bound->given || bound->row->n_sets > 0) continue;
      if (bound->row->domain.type != NXC_TYPE_INT && bound->row->from == NULL) continue;
      s->places[bound - binding->options] = rule->derives;
      s->has_places = true;
    }
  }
}

/* ---- edits ---- */

/* Ways to say a layout, from the least that may be enough to the most. */
typedef struct way {
  bool all;   /* options that depend on what has changed too, not only those that set it */
  bool drops; /* options that place layers are taken out */
  bool pins;  /* the batch stands as a number where it was a reference */
  bool restates; /* what stays as it is too: it may be said in several ways, of which not all go with the rest
                  */
} way;

static const way ways[] = {{0},
                           {.all = true},
                           {.drops = true},
                           {.all = true, .drops = true},
                           {.pins = true},
                           {.all = true, .pins = true},
                           {.all = true, .drops = true, .pins = true},
                           {.restates = true},
                           {.all = true, .drops = true, .restates = true}};

typedef struct saying {
  nxc_speaker *speaker;
  nxc_arena *arena;
  const way *how;
  nxc_option_change *edits;
  size_t n_edits;
} saying;

static nxc_binding *compose(const nxc_speaker *speaker, const nxc_settings *wanted, nxc_arena *arena) {
  const nxc_compiled *compiled = speaker->compiled;
  const nxc_composing composing = {.wanted = wanted,
                                   .dialect = compiled->dialect,
                                   .version = compiled->version,
                                   .refused = speaker->lacking};
  return nxc_compose(arena, &composing);
}

static void edit(saying *s, size_t option, const nxc_value *value) {
  s->edits = nxc_arena_grow(s->arena, s->edits, s->n_edits, sizeof *s->edits);
  const nxc_compiled *compiled = s->speaker->compiled;
  const nxc_bound *bound = &compiled->binding->options[option];
  s->edits[s->n_edits++] =
      (nxc_option_change){bound, value, nxc_option_default(bound->row, compiled->version)};
}

static bool speaks_of_changed(const saying *s, size_t option, const bool changed[NX_N_SETTINGS]) {
  const nxc_speaker *speaker = s->speaker;
  const bool *says = (s->how->all ? speaker->speaks : speaker->sets) + option * NX_N_SETTINGS;
  for (size_t id = 0; id < NX_N_SETTINGS; id++)
    if (changed[id] && says[id]) return true;
  return false;
}

/* What follows from other settings is said only where the file says it too. */
static void keep_followers(const nxc_speaker *s, bool changed[NX_N_SETTINGS]) {
  static const nxc_setting_id ids[] = {NX_SETTING_MESH_DATA, NX_SETTING_BATCH_ACCUMULATION,
                                       NX_SETTING_PIPELINE_CUTS};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    changed[ids[i]] = changed[ids[i]] && s->follows[ids[i]];
}

/* Whether a setting has its value from the option. One that nothing reads may be read elsewhere, as the size
 * of a bucket without ZeRO, and one that sets nothing may serve others too. */
static bool acts(const nxc_compiled *compiled, const nxc_bound *bound) {
  bool any = false;
  for (size_t i = 0; i < bound->row->n_sets; i++) {
    const char *from = nxc_settings_from(compiled->settings, bound->row->sets[i].setting)->option;
    any = any || (from != NULL && strcmp(from, bound->row->name) == 0);
  }
  return any;
}

static void compare_option(saying *s, size_t option, const nxc_bound *shall) {
  const nxc_compiled *compiled = s->speaker->compiled;
  const nxc_bound *is = &compiled->binding->options[option];
  const nxc_value *usual = nxc_option_default(is->row, compiled->version);
  bool pinned = s->how->pins && refers(is);
  bool same =
      !pinned && is->value != NULL && shall->value != NULL && nxc_value_equal(is->value, shall->value);
  bool silent = !is->given && shall->value != NULL && usual != NULL && nxc_value_equal(shall->value, usual);
  if (shall->given && !same && !silent) edit(s, option, shall->value);
  if (!shall->given && is->given && acts(compiled, is)) edit(s, option, NULL);
}

static void compare_options(saying *s, const nxc_binding *composed, const bool changed[NX_N_SETTINGS]) {
  const nxc_compiled *compiled = s->speaker->compiled;
  for (size_t i = 0; i < compiled->dialect->n_options; i++)
    if (is_here(compiled, composed->options[i].row) && speaks_of_changed(s, i, changed))
      compare_option(s, i, &composed->options[i]);
}

/* What is assumed is nobody's to say. */
static void restate(const nxc_settings *settings, bool changed[NX_N_SETTINGS]) {
  for (size_t i = 0; i < sizeof laid_out / sizeof *laid_out; i++)
    if (nxc_settings_from(settings, laid_out[i])->kind != NXC_FROM_ASSUMED) changed[laid_out[i]] = true;
}

static void make_edits(saying *s, const nxc_space *space, const nxc_choice *choice) {
  const nxc_compiled *compiled = s->speaker->compiled;
  bool changed[NX_N_SETTINGS] = {false};
  nxc_settings *wanted = nxc_settings_copy(s->arena, compiled->settings);
  nxc_choice_set(space, choice, wanted, changed);
  if (s->how->restates) restate(compiled->settings, changed);
  if (!s->how->all) keep_followers(s->speaker, changed);
  if (s->how->pins) changed[NX_SETTING_BATCH_GLOBAL] = changed[NX_SETTING_BATCH_MICRO] = true;
  const nxc_binding *composed = compose(s->speaker, wanted, s->arena);
  compare_options(s, composed, changed);
  bool other_stages = choice->at[NXC_KNOB_STAGES] != 0; /* for which the old cuts were not meant */
  for (size_t i = 0; i < compiled->dialect->n_options; i++) {
    nxc_setting_id place = s->speaker->places[i];
    bool drops = s->how->drops || (other_stages && place == NX_SETTING_PIPELINE_CUTS);
    if (place != NX_N_SETTINGS && drops && !composed->options[i].given) edit(s, i, NULL);
  }
}

/* Whether the file says its own layout otherwise than it would be said here. */
static bool has_restatements(nxc_speaker *speaker, nxc_arena *arena) {
  const nxc_compiled *compiled = speaker->compiled;
  saying s = {.speaker = speaker, .arena = arena, .how = &(way){.restates = true}};
  bool changed[NX_N_SETTINGS] = {false};
  restate(compiled->settings, changed);
  keep_followers(speaker, changed);
  compare_options(&s, compose(speaker, compiled->settings, arena), changed);
  return s.n_edits > 0;
}

nxc_said nxc_say_setting(nxc_speaker *speaker, nxc_setting_id id, const nxc_value *value, nxc_arena *arena) {
  const nxc_compiled *compiled = speaker->compiled;
  const nxc_provenance from = {.kind = NXC_FROM_CLI};
  nxc_settings *wanted = nxc_settings_copy(arena, compiled->settings);
  saying s = {.speaker = speaker, .arena = arena, .how = &ways[0]};
  nxc_settings_override(wanted, id, value, &from, nxc_sink_new(arena));
  const nxc_binding *composed = compose(speaker, wanted, arena);
  for (size_t i = 0; i < compiled->dialect->n_options; i++) {
    const nxc_option_row *row = composed->options[i].row;
    if (is_here(compiled, row) && nxc_option_speaks_of(arena, row, id))
      compare_option(&s, i, &composed->options[i]);
  }
  return (nxc_said){.edits = s.edits, .n_edits = s.n_edits};
}

nxc_speaker *nxc_speaker_new(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                             const nxc_sink *findings) {
  nxc_speaker *speaker = nxc_arena_alloc(arena, sizeof *speaker);
  *speaker = (nxc_speaker){.request = request, .compiled = compiled, .findings = findings};
  find_options(speaker, arena);
  find_places(speaker, arena);
  speaker->restates = has_restatements(speaker, arena);
  return speaker;
}

/* ---- reading back ---- */

/* Whether the file has the finding whatever its layout is: an error word by word, a warning of this kind. */
static bool has_already(const nxc_sink *before, const nxc_finding *finding) {
  for (size_t i = 0; before != NULL && i < nxc_sink_n_findings(before); i++) {
    const nxc_finding *one = nxc_sink_finding(before, i);
    bool same = finding->severity == NXC_SEVERITY_ERROR ? strcmp(one->message, finding->message) == 0
                                                        : strcmp(one->id, finding->id) == 0;
    if (same) return true;
  }
  return false;
}

static bool has_kind(const nxc_sink *sink, const char *id) {
  for (size_t i = 0; sink != NULL && i < nxc_sink_n_findings(sink); i++)
    if (strcmp(nxc_sink_finding(sink, i)->id, id) == 0) return true;
  return false;
}

static bool *find_staying(const nxc_sink *before, const nxc_sink *after, nxc_arena *arena) {
  size_t n = before != NULL ? nxc_sink_n_findings(before) : 0;
  bool *stays = nxc_arena_array(arena, n + 1, sizeof *stays);
  for (size_t i = 0; i < n; i++) {
    const nxc_finding *one = nxc_sink_finding(before, i);
    stays[i] = one->severity == NXC_SEVERITY_ERROR && has_already(after, one);
  }
  return stays;
}

/* The first that `before` (NULL: nothing) has not anyway. */
static nxc_refusal first_of(const saying *s, const nxc_sink *sink, nxc_severity severity,
                            const nxc_sink *before) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity != severity || has_already(before, finding)) continue;
    const nxc_rule_row *rule = has_kind(before, finding->id) ? NULL : nxc_rule_find(finding->id);
    return (nxc_refusal){
        .message = nxc_arena_printf(s->arena, "%s (%s)", finding->message, finding->id),
        .id = finding->id,
        .remedy = finding->fix,
        .rules = {rule},
        .n_rules = rule != NULL};
  }
  return (nxc_refusal){0};
}

static const char unsaid[] = "its options do not say it";

static void read_back(saying *s, const nxc_space *space, const nxc_choice *choice, nxc_said *said) {
  nxc_sink *sink = nxc_sink_new(s->arena);
  nxc_request request = *s->speaker->request;
  const nxc_source *first = s->speaker->compiled->binding->origin.first;
  request.text = nxc_source_new(s->arena, first ? first->name : "arguments", said->text, strlen(said->text));
  bool all_ranks =
      space->training->layout.world == nxc_int(s->speaker->compiled->settings, NX_SETTING_MESH_WORLD);
  if (!all_ranks) request.world_size = nxc_arena_printf(s->arena, "%u", space->training->layout.world);
  nxc_compile_settings(s->arena, &request, sink, &said->compiled);
  said->has_errors = nxc_sink_count(sink, NXC_SEVERITY_ERROR) > 0;
  const nxc_sink *before = s->speaker->findings; /* what the file has anyway is no layout's fault */
  said->stays = find_staying(before, sink, s->arena);
  said->refused = first_of(s, sink, NXC_SEVERITY_ERROR, before);
  if (all_ranks && said->refused.message == NULL)
    said->refused = first_of(s, sink, NXC_SEVERITY_WARNING, before);
  if (said->refused.message != NULL) return;
  if (!nxc_training_read(said->compiled.settings, sink, &said->training)) {
    said->refused = first_of(s, sink, NXC_SEVERITY_ERROR, before);
    if (said->refused.message == NULL) said->refused = first_of(s, sink, NXC_SEVERITY_ERROR, NULL);
    said->refused.n_rules = 0;
    if (said->refused.message == NULL) said->refused.message = "sizes are unknown";
  } else if (!nxc_choice_is(space, choice, &said->training, said->compiled.settings)) {
    said->refused.message = unsaid;
  }
}

static nxc_said say(nxc_speaker *speaker, const nxc_space *space, const nxc_choice *choice, const way *how,
                    nxc_arena *arena) {
  saying s = {.speaker = speaker, .arena = arena, .how = how};
  make_edits(&s, space, choice);
  nxc_said said = {.edits = s.edits, .n_edits = s.n_edits};
  said.text = nxc_patch(arena, speaker->compiled->binding, s.edits, s.n_edits);
  if (said.text == NULL) said.refused.message = "the text of the file has no place for its options";
  else read_back(&s, space, choice, &said);
  return said;
}

/* With that of the ways before, which are `n_said`. A finding tells more than that there is no place. */
static void join_refusals(nxc_refusal *last, const nxc_refusal *before, size_t n_said) {
  bool by_rules = last->n_rules > 0 && (n_said == 0 || before->n_rules > 0);
  if (last->id == NULL && before->id != NULL) *last = *before;
  else
    for (size_t i = 0; i < before->n_rules; i++) last->rules[last->n_rules++] = before->rules[i];
  if (!by_rules) last->n_rules = 0;
}

/* The first way that is accepted; where the file has errors, one that mends them comes before those that do
 * not. */
nxc_said nxc_say(nxc_speaker *speaker, const nxc_space *space, const nxc_choice *choice, nxc_arena *arena) {
  nxc_said first = {0}, accepted = {.refused.message = ""};
  size_t n_said = 0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if ((ways[i].drops && !speaker->has_places) || (ways[i].pins && !speaker->has_references) ||
        (ways[i].restates && !speaker->restates))
      continue;
    nxc_said said = say(speaker, space, choice, &ways[i], arena);
    if (said.refused.message == NULL && !said.has_errors) return said;
    if (said.refused.message == NULL) {
      if (accepted.refused.message != NULL) accepted = said;
      continue;
    }
    /* What a rule says of places that are gone is no reason where nothing was wrong with them. */
    bool beside = ways[i].drops && said.refused.id != NULL && n_said > 0 && first.refused.message == unsaid;
    if (beside) said.refused = first.refused;
    else join_refusals(&said.refused, &first.refused, n_said);
    if (n_said++ == 0) first = said;
    first.refused = said.refused;
  }
  return accepted.refused.message == NULL ? accepted : first;
}
