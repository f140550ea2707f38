/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/settings.h"

#include "compiler/settings/domain.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
  const nxc_value *value; /* NULL: unknown */
  const nxc_provenance *from;
} slot;

struct nxc_settings {
  nxc_arena *arena;
  const nxc_dialect *dialect;
  const char *missed_model;
  size_t missed_arguments;
  slot slots[NX_N_SETTINGS];
};

static const nxc_provenance from_nothing = {.kind = NXC_FROM_UNKNOWN};

nxc_settings *nxc_settings_new(nxc_arena *arena) {
  nxc_settings *settings = nxc_arena_alloc(arena, sizeof *settings);
  settings->arena = arena;
  settings->dialect = nxc_dialect_find("nx");
  nxc_provenance *defaults = nxc_arena_array(arena, NX_N_SETTINGS, sizeof *defaults);
  for (size_t id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_value *initial = nxc_setting_rows[id].initial;
    defaults[id] = (nxc_provenance){.kind = NXC_FROM_DEFAULT, .value = initial};
    settings->slots[id] = (slot){initial, initial ? &defaults[id] : &from_nothing};
  }
  return settings;
}

nxc_arena *nxc_settings_arena(const nxc_settings *settings) {
  return settings->arena;
}

void nxc_settings_speak(nxc_settings *settings, const nxc_dialect *dialect) {
  settings->dialect = dialect;
}

void nxc_settings_miss_model(nxc_settings *settings, const char *name) {
  settings->missed_model = name;
}

const char *nxc_settings_missed_model(const nxc_settings *settings) {
  return settings->missed_model;
}

void nxc_settings_miss_arguments(nxc_settings *settings, size_t n_arguments) {
  settings->missed_arguments = n_arguments;
}

size_t nxc_settings_missed_arguments(const nxc_settings *settings) {
  return settings->missed_arguments;
}

static int compare_path(const void *path, const void *id) {
  return strcmp(path, nxc_setting_rows[*(const nxc_setting_id *)id].path);
}

nxc_setting_id nxc_setting_find(const char *path) {
  const nxc_setting_id *id = bsearch(path, nxc_settings_by_path, NX_N_SETTINGS, sizeof *id, compare_path);
  return id ? *id : NX_N_SETTINGS;
}

const char *nxc_setting_path(nxc_setting_id id) {
  return nxc_setting_rows[id].path;
}

/* -- writing --------------------------------------------------------------------------------------------- */

/* In the user's words where an option, or the setting itself, was given; else an option or a rule made the
 * value. */
static void report_misfit(nxc_settings *settings, nxc_setting_id id, const nxc_value *value,
                          const nxc_provenance *from, const nxc_verdict *verdict, nxc_sink *sink) {
  const char *shown = from->redacted ? "(not shown)" : nxc_value_show(settings->arena, value);
  const char *path = nxc_setting_path(id), *giver = from->origin ? from->origin : from->option;
  bool direct = giver == NULL || strcmp(giver, path) == 0;
  const char *message =
      direct ? nxc_arena_printf(settings->arena, "%s %s (it is %s)", path, verdict->problem, shown)
             : nxc_arena_printf(settings->arena, "%s gives %s the value %s, but that setting %s", giver, path,
                                shown, verdict->problem);
  nxc_report(sink, nxc_misfit_id(verdict->misfit), NXC_SEVERITY_ERROR, from->at, nxc_misfit_fix(verdict),
             "%s", message);
}

/* A whole number is an integer wherever a setting may be one. */
static const nxc_value *whole(nxc_settings *settings, nxc_setting_id id, const nxc_value *value) {
  if (nxc_setting_rows[id].domain.type != NXC_TYPE_INT_OR_FLOAT || value->kind != NXC_FLOAT) return value;
  if (fabs(value->number) > 1e15 || value->number != floor(value->number)) return value;
  nxc_value *integer = nxc_arena_alloc(settings->arena, sizeof *integer);
  *integer = (nxc_value){.kind = NXC_INT, .integer = (int64_t)value->number};
  return integer;
}

/* Numbers, also of a list; what is no number is finite. */
static bool is_finite(const nxc_value *value) {
  for (size_t i = 0; value->kind == NXC_LIST && i < value->n_items; i++)
    if (!is_finite(&value->items[i])) return false;
  return value->kind != NXC_FLOAT || isfinite(value->number);
}

static bool judge(nxc_settings *settings, nxc_setting_id id, const nxc_value **value,
                  const nxc_provenance *from, nxc_sink *sink) {
  nxc_verdict verdict = nxc_domain_judge(settings->arena, &nxc_setting_rows[id].domain, *value, true);
  if (verdict.misfit == NXC_FITS && !is_finite(*value))
    verdict = (nxc_verdict){.misfit = NXC_OUT_OF_BOUNDS, .problem = "must be finite"};
  if (verdict.misfit != NXC_FITS) report_misfit(settings, id, *value, from, &verdict, sink);
  else verdict.value = whole(settings, id, verdict.value);
  *value = verdict.value;
  return verdict.misfit == NXC_FITS;
}

static nxc_provenance *keep_provenance(nxc_settings *settings, const nxc_provenance *from,
                                       const nxc_value *value) {
  nxc_provenance *kept = nxc_arena_alloc(settings->arena, sizeof *kept);
  *kept = *from;
  kept->value = value;
  kept->previous = NULL;
  return kept;
}

bool nxc_settings_override(nxc_settings *settings, nxc_setting_id id, const nxc_value *value,
                           const nxc_provenance *from, nxc_sink *sink) {
  if (!judge(settings, id, &value, from, sink)) return false;
  slot *place = &settings->slots[id];
  nxc_provenance *kept = keep_provenance(settings, from, value);
  if (place->from != &from_nothing) kept->previous = place->from;
  *place = (slot){value, kept};
  return true;
}

bool nxc_settings_set(nxc_settings *settings, nxc_setting_id id, const nxc_value *value,
                      const nxc_provenance *from, nxc_sink *sink) {
  slot *place = &settings->slots[id];
  if (from->kind >= place->from->kind) return nxc_settings_override(settings, id, value, from, sink);
  if (!judge(settings, id, &value, from, sink)) return false;
  nxc_provenance *loser = keep_provenance(settings, from, value);
  loser->previous = place->from->previous;
  nxc_provenance *winner = keep_provenance(settings, place->from, place->value);
  winner->previous = loser;
  place->from = winner;
  return true;
}

void nxc_settings_forget(nxc_settings *settings, nxc_setting_id id, const char *option, nxc_span at) {
  const nxc_provenance from = {.kind = NXC_FROM_UNKNOWN, .option = option, .at = at};
  settings->slots[id] = (slot){NULL, keep_provenance(settings, &from, NULL)};
}

nxc_settings *nxc_settings_copy(nxc_arena *arena, const nxc_settings *settings) {
  nxc_settings *copy = nxc_arena_alloc(arena, sizeof *copy);
  *copy = *settings;
  copy->arena = arena;
  return copy;
}

void nxc_settings_clear(nxc_settings *settings, nxc_setting_id id) {
  settings->slots[id] = (slot){NULL, &from_nothing};
}

/* -- reading --------------------------------------------------------------------------------------------- */

bool nxc_settings_known(const nxc_settings *settings, nxc_setting_id id) {
  return settings->slots[id].value != NULL;
}

bool nxc_settings_absent(const nxc_settings *settings, nxc_setting_id id) {
  return settings->slots[id].from->kind == NXC_FROM_ABSENT;
}

bool nxc_has(const nxc_settings *settings, nxc_setting_id id) {
  const nxc_value *value = settings->slots[id].value;
  return value != NULL && value->kind != NXC_NULL;
}

const nxc_value *nxc_settings_value(const nxc_settings *settings, nxc_setting_id id) {
  return settings->slots[id].value;
}

static const nxc_value *demand(const nxc_settings *settings, nxc_setting_id id, nxc_kind kind) {
  const nxc_value *value = settings->slots[id].value;
  assert(value != NULL && value->kind == kind);
  return value;
}

int64_t nxc_int(const nxc_settings *settings, nxc_setting_id id) {
  return demand(settings, id, NXC_INT)->integer;
}

double nxc_number(const nxc_settings *settings, nxc_setting_id id) {
  const nxc_value *value = settings->slots[id].value;
  if (value != NULL && value->kind == NXC_INT) return (double)value->integer;
  return demand(settings, id, NXC_FLOAT)->number;
}

bool nxc_flag(const nxc_settings *settings, nxc_setting_id id) {
  return demand(settings, id, NXC_BOOL)->boolean;
}

const char *nxc_text(const nxc_settings *settings, nxc_setting_id id) {
  return demand(settings, id, NXC_STRING)->text;
}

bool nxc_is(const nxc_settings *settings, nxc_setting_id id, const char *text) {
  const nxc_value *value = settings->slots[id].value;
  return value != NULL && value->kind == NXC_STRING && strcmp(value->text, text) == 0;
}

const nxc_value *nxc_list(const nxc_settings *settings, nxc_setting_id id, size_t *n_items) {
  const nxc_value *value = settings->slots[id].value;
  *n_items = 0;
  if (value != NULL && value->kind == NXC_NULL) return NULL;
  value = demand(settings, id, NXC_LIST);
  *n_items = value->n_items;
  return value->items;
}

/* -- where it came from ---------------------------------------------------------------------------------- */

const nxc_provenance *nxc_settings_from(const nxc_settings *settings, nxc_setting_id id) {
  return settings->slots[id].from;
}

const char *nxc_provenance_kind_name(nxc_provenance_kind kind) {
  static const char *const names[] = {
      [NXC_FROM_UNKNOWN] = "unknown", [NXC_FROM_DEFAULT] = "default",
      [NXC_FROM_ABSENT] = "absent",   [NXC_FROM_FIXED] = "fixed",
      [NXC_FROM_RULE] = "rule",       [NXC_FROM_DIALECT_DEFAULT] = "dialect-default",
      [NXC_FROM_PRESET] = "preset",   [NXC_FROM_MODEL_CONFIG] = "model-config",
      [NXC_FROM_ASSUMED] = "assumed",
      [NXC_FROM_FILE] = "file",       [NXC_FROM_LAYER] = "layer",
      [NXC_FROM_PROJECT] = "project", [NXC_FROM_CLI] = "cli",
  };
  return names[kind];
}

static nxc_span find_span(const nxc_settings *settings, nxc_setting_id id, unsigned depth) {
  enum { DEPTH_MAX = 16 };
  const nxc_provenance *from = settings->slots[id].from;
  nxc_span at = from->at;
  for (size_t i = 0; at.source == NULL && depth < DEPTH_MAX && i < from->n_inputs; i++) {
    at = find_span(settings, from->inputs[i], depth + 1);
  }
  return at;
}

nxc_span nxc_settings_span(const nxc_settings *settings, nxc_setting_id id) {
  return find_span(settings, id, 0);
}

/* How well an option says a setting. */
typedef enum speaking { SAYS_NOTHING, IS_NEVER_WRITTEN, SAYS_MORE, SAYS_IT } speaking;

static speaking how_it_says(const nxc_option_row *row, nxc_setting_id id) {
  for (size_t i = 0; i < row->n_sets; i++) {
    if (row->sets[i].setting != id) continue;
    if (row->from != NULL && strcmp(row->from, "unknown") == 0) return IS_NEVER_WRITTEN;
    return row->n_sets == 1 && strcmp(row->sets[i].expression, "value") == 0 ? SAYS_IT : SAYS_MORE;
  }
  return SAYS_NOTHING;
}

const char *nxc_setting_name_in_dialect(const nxc_settings *settings, nxc_setting_id id) {
  const nxc_provenance *from = settings->slots[id].from;
  if (from->option != NULL) return from->option;
  const nxc_dialect *dialect = settings->dialect;
  const char *best = nxc_setting_path(id);
  speaking most = SAYS_NOTHING;
  for (size_t i = 0; i < dialect->n_options && most < SAYS_IT; i++) {
    speaking how = how_it_says(&dialect->options[i], id);
    if (how <= most) continue;
    most = how;
    best = dialect->options[i].name;
  }
  return best;
}

const char *nxc_settings_show(const nxc_settings *settings, nxc_setting_id id) {
  const slot *place = &settings->slots[id];
  if (place->value == NULL) return "unknown";
  if (place->from->kind == NXC_FROM_ABSENT)
    return nxc_arena_printf(settings->arena, "not in %s", settings->dialect->name);
  if (place->from->redacted) return "(not shown)";
  return place->value->kind == NXC_NULL ? "none" : nxc_value_show(settings->arena, place->value);
}

/* "case.yaml:12, trainer.devices"; an option of the setting's own name, as in nx, is not said again. */
static const char *show_place(const nxc_settings *settings, nxc_setting_id id) {
  const nxc_provenance *from = settings->slots[id].from;
  if (from->at.source == NULL) return "given";
  bool own_name = from->option == NULL || strcmp(from->option, nxc_setting_path(id)) == 0;
  return nxc_arena_printf(settings->arena, "%s:%u%s%s", from->at.source->name, from->at.line,
                          own_name ? "" : ", ", own_name ? "" : from->option);
}

const char *nxc_settings_show_origin(const nxc_settings *settings, nxc_setting_id id) {
  const nxc_provenance *from = settings->slots[id].from;
  switch (from->kind) {
  case NXC_FROM_UNKNOWN: return "unknown";
  case NXC_FROM_DEFAULT: return "default";
  case NXC_FROM_ABSENT: return from->origin;
  case NXC_FROM_FIXED: return nxc_arena_printf(settings->arena, "fixed by %s", settings->dialect->name);
  case NXC_FROM_RULE:
    if (from->input_names == NULL) return nxc_arena_printf(settings->arena, "derived by %s", from->origin);
    return nxc_arena_printf(settings->arena, "derived by %s from %s", from->origin, from->input_names);
  case NXC_FROM_DIALECT_DEFAULT: return nxc_arena_printf(settings->arena, "default of %s", from->option);
  case NXC_FROM_PRESET: return nxc_arena_printf(settings->arena, "precision preset %s", from->origin);
  case NXC_FROM_ASSUMED:
    return from->origin ? nxc_arena_printf(settings->arena, "assumed: %s", from->origin) : "assumed";
  default: return show_place(settings, id);
  }
}

bool nxc_setting_is_wanted(nxc_setting_id id) {
  return nxc_setting_rows[id].needed || nxc_setting_rows[id].initial != NULL;
}

size_t nxc_settings_unknown_for_plan(const nxc_settings *settings, nxc_setting_id ids[NX_N_SETTINGS]) {
  size_t n_ids = 0;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++)
    if (nxc_setting_is_wanted(id) && settings->slots[id].value == NULL) ids[n_ids++] = id;
  return n_ids;
}
