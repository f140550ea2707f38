/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/convert/compose.h"

#include "compiler/document/scalar.h"
#include "compiler/config/rules/presets.h"
#include "compiler/settings/evaluate.h"
#include "compiler/settings/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES_MAX = 12 };

typedef struct composer {
  nxc_arena *arena;
  const nxc_composing *composing;
  nxc_binding *binding; /* its settings are the wanted ones */
  bool changed;
} composer;

/* What a value, put through `sets`, says about the wanted settings. */
typedef struct fit {
  int agrees, differs;
} fit;

static void add_fit(fit *sum, fit one) {
  sum->agrees += one.agrees;
  sum->differs += one.differs;
}

static int score(fit found) {
  return 2 * found.agrees - 3 * found.differs;
}

/* -- what a value says ----------------------------------------------------------------------------------- */

/* A preset's name is right when the preset means what is wanted; manual leaves it to other options. */
static fit fit_preset(const composer *c, const nxc_value *value) {
  const nxc_preset_row *row =
      value->kind == NXC_STRING ? nxc_preset_find(c->binding->dialect, value->text) : NULL;
  if (row == NULL || row->refused || !nxc_preset_means(row, c->binding->settings)) return (fit){0, 1};
  return (fit){row->compute != NULL ? 2 : 1, 0};
}

static bool holds(composer *c, const nxc_bound *bound, const char *condition) {
  const nxc_value *value = condition ? nxc_binding_evaluate(c->binding, bound, condition) : NULL;
  return value != NULL && nxc_value_is_true(value);
}

/* Whether what is wanted leaves the setting a meaning. */
static bool is_read(composer *c, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].read_when;
  return condition == NULL || holds(c, NULL, condition);
}

static fit fit_setting(composer *c, nxc_setting_id id, const nxc_value *value) {
  const nxc_setting_row *row = &nxc_setting_rows[id];
  if (value == NULL || (value->kind == NXC_NULL && !row->domain.nullable) || !is_read(c, id)) return (fit){0};
  nxc_verdict verdict = nxc_domain_judge(c->arena, &row->domain, value, true);
  const nxc_value *wanted = nxc_settings_value(c->binding->settings, id);
  if (wanted == NULL && !row->shorthand) return (fit){0}; /* nothing is wanted */
  if (verdict.misfit != NXC_FITS) return (fit){0, 1};
  if (row->shorthand) return fit_preset(c, verdict.value);
  return nxc_value_equal(wanted, verdict.value) ? (fit){1, 0} : (fit){0, 1};
}

/* What the option would say with this value. Where it is not given and says nothing at all, the settings' own
 * defaults stay. */
static fit fit_value(composer *c, nxc_bound *bound, const nxc_value *value, bool given) {
  const nxc_bound kept = *bound;
  const nxc_option_row *row = bound->row;
  fit said = {0}, unsaid = {0};
  bool silent = true;
  bound->value = value;
  bound->given = given;
  for (size_t i = 0; i < row->n_sets; i++) {
    const nxc_setting_id id = row->sets[i].setting;
    const nxc_value *result = value ? nxc_binding_evaluate(c->binding, bound, row->sets[i].expression) : NULL;
    silent = silent && result == NULL;
    add_fit(&said, fit_setting(c, id, result));
    add_fit(&unsaid, fit_setting(c, id, nxc_setting_rows[id].initial));
  }
  *bound = kept;
  return silent ? unsaid : said;
}

/* -- trying ---------------------------------------------------------------------------------------------- */

typedef struct trial {
  composer *c;
  nxc_bound *bound;
  const nxc_value *best;
  fit found;
} trial;

static const nxc_value *keep(composer *c, nxc_value value) {
  nxc_value *kept = nxc_arena_alloc(c->arena, sizeof *kept);
  *kept = value;
  return kept;
}

/* The value in the option's own type: whole numbers as integers where it takes no others. */
static const nxc_value *in_domain(composer *c, const nxc_option_row *row, const nxc_value *value) {
  bool integer = row->domain.type == NXC_TYPE_INT;
  bool real = value->kind == NXC_FLOAT && fabs(value->number) < 1e15;
  if (integer && real && value->number == floor(value->number))
    value = keep(c, (nxc_value){.kind = NXC_INT, .integer = (int64_t)value->number});
  nxc_verdict verdict = nxc_domain_judge(c->arena, &row->domain, value, false);
  if (verdict.misfit != NXC_FITS) return NULL;
  const nxc_versioned *kept = value->kind == NXC_STRING ? nxc_option_word(row, value->text) : NULL;
  bool elsewhere = kept && !nxc_in_version(kept->versions, kept->n_versions, c->composing->version);
  return elsewhere ? NULL : verdict.value;
}

static const nxc_value *default_of(const composer *c, const nxc_option_row *row) {
  return nxc_option_default(row, c->composing->version);
}

static void try_value(trial *t, const nxc_value *value) {
  value = value ? in_domain(t->c, t->bound->row, value) : NULL;
  if (value == NULL) return;
  const nxc_value *initial = default_of(t->c, t->bound->row);
  bool usual = initial != NULL && nxc_value_equal(initial, value);
  fit found = fit_value(t->c, t->bound, value, !usual);
  if (t->best != NULL && score(found) <= score(t->found)) return;
  t->best = value;
  t->found = found;
}

static void try_word(trial *t, const char *word) {
  try_value(t, keep(t->c, nxc_string_value(word, strlen(word))));
}

static void try_presets(trial *t) {
  const nxc_dialect *dialect = t->c->binding->dialect;
  for (size_t i = 0; i < nxc_n_presets; i++)
    if (nxc_preset_find(dialect, nxc_presets[i].spellings[0]) == &nxc_presets[i])
      try_word(t, nxc_presets[i].spellings[0]);
}

/* Whether no value can say more: each assignment agrees. */
static bool says_all(const trial *t) {
  const nxc_option_row *row = t->bound->row;
  bool preset = false; /* which may agree in more than itself */
  for (size_t i = 0; i < row->n_sets; i++)
    preset = preset || nxc_setting_rows[row->sets[i].setting].shorthand;
  return t->best != NULL && !preset && t->found.differs == 0 && t->found.agrees == (int)row->n_sets;
}

/* Every value that the assignments could have come from; of those that say as much the first is taken. */
static void try_all(trial *t) {
  const nxc_option_row *row = t->bound->row;
  try_value(t, default_of(t->c, row));
  for (size_t i = 0; i < row->n_sets && !says_all(t); i++) {
    const nxc_setting_id id = row->sets[i].setting;
    const nxc_value *wanted = nxc_settings_value(t->c->binding->settings, id);
    if (wanted) try_value(t, nxc_binding_invert(t->c->binding, row->sets[i].expression, wanted));
    try_value(t, wanted);
    if (wanted && wanted->kind == NXC_LIST && wanted->n_items == 1) try_value(t, &wanted->items[0]);
    if (nxc_setting_rows[id].shorthand) try_presets(t);
  }
  if (says_all(t)) return;
  for (size_t i = 0; i < row->domain.n_values; i++) try_word(t, row->domain.values[i]);
  for (int truth = 1; truth >= 0; truth--) {
    try_value(t, keep(t->c, (nxc_value){.kind = NXC_BOOL, .boolean = truth}));
    try_value(t, keep(t->c, (nxc_value){.kind = NXC_INT, .integer = truth}));
    if (row->domain.type == NXC_TYPE_BIT) try_word(t, truth ? "1" : "0");
  }
  try_value(t, keep(t->c, (nxc_value){.kind = NXC_NULL}));
}

/* -- which options are given ----------------------------------------------------------------------------- */

/* What an option says something about, or decides with others. */
static size_t subjects_of(nxc_arena *arena, const nxc_option_row *row, nxc_setting_id **ids) {
  const nxc_expression *from = nxc_expression_of(arena, row->from);
  size_t n = 0;
  *ids = nxc_arena_array(arena, row->n_sets + (from ? from->n_names : 0) + 1, sizeof **ids);
  for (size_t i = 0; i < row->n_sets; i++) (*ids)[n++] = row->sets[i].setting;
  for (size_t i = 0; from != NULL && i < from->n_names; i++) {
    const nxc_name *name = &from->names[i];
    nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
    if (id < NX_N_SETTINGS) (*ids)[n++] = id;
  }
  return n;
}

bool nxc_option_speaks_of(nxc_arena *arena, const nxc_option_row *row, nxc_setting_id id) {
  for (size_t i = 0; i < row->n_sets; i++)
    if (row->sets[i].setting == id) return true;
  if (row->from == NULL) return false;
  nxc_setting_id *ids;
  const size_t n = subjects_of(arena, row, &ids);
  for (size_t i = 0; i < n; i++)
    if (ids[i] == id) return true;
  return false;
}

/* Whether the option is the setting's own word: it sets it, or is nothing but it. */
static bool says_plainly(const nxc_option_row *row, nxc_setting_id id) {
  for (size_t i = 0; i < row->n_sets; i++)
    if (row->sets[i].setting == id) return true;
  return row->from != NULL && strcmp(row->from, nxc_setting_path(id)) == 0;
}

/* Whether a setting that the option speaks of is worth a word even where the default says it. */
static bool is_worth_a_word(composer *c, const nxc_option_row *row) {
  nxc_setting_id *ids;
  const size_t n = subjects_of(c->arena, row, &ids);
  for (size_t i = 0; i < n; i++) {
    bool spoken = nxc_settings_from(c->binding->settings, ids[i])->kind >= NXC_FROM_ASSUMED;
    if (c->composing->insist != NULL && c->composing->insist[ids[i]]) return true;
    if (spoken && says_plainly(row, ids[i]) && is_read(c, ids[i])) return true;
  }
  return false;
}

/* Whether every reader derives the settings just so, whatever the dialect. */
static bool derived_anyway(composer *c, const nxc_option_row *row) {
  for (size_t i = 0; i < row->n_sets; i++) {
    const nxc_provenance *from = nxc_settings_from(c->binding->settings, row->sets[i].setting);
    const nxc_rule_row *rule = from->kind == NXC_FROM_RULE ? nxc_rule_find(from->origin) : NULL;
    if (rule == NULL || rule->dialect != NULL) return false;
  }
  return row->n_sets > 0;
}

static bool is_said(composer *c, nxc_bound *bound, const nxc_value *value, fit found) {
  const nxc_option_row *row = bound->row;
  if (holds(c, bound, row->required)) return value->kind != NXC_NULL || row->initial == NULL;
  const nxc_value *initial = default_of(c, row);
  bool usual = initial != NULL && nxc_value_equal(initial, value);
  bool means = row->from != NULL || found.agrees > 0;
  if (usual) return means && value->kind != NXC_NULL && is_worth_a_word(c, row);
  if (row->from != NULL) return true;
  fit unsaid = fit_value(c, bound, initial, false);
  if (score(found) > score(unsaid))
    return unsaid.differs > 0 || !derived_anyway(c, row) || is_worth_a_word(c, row);
  return score(found) == score(unsaid) && found.agrees > 0 && is_worth_a_word(c, row);
}

/* The family that the wanted model has in transformers; NULL: none. */
static const nxc_family *wanted_family(const composer *c) {
  const nxc_settings *wanted = c->binding->settings;
  bool named = nxc_has(wanted, NX_SETTING_MODEL_CHECKPOINT_NAMES);
  const nxc_family *family =
      named ? nxc_family_find(nxc_text(wanted, NX_SETTING_MODEL_CHECKPOINT_NAMES)) : NULL;
  return family != NULL && family->architecture != NULL ? family : NULL;
}

/* Of a key of config.json: whether the family's own config.json says it, and with which value (NULL: it
 * leaves the key out). */
static bool family_writes(composer *c, const nxc_option_row *row, const nxc_value **value) {
  const nxc_family *family = wanted_family(c);
  if (family == NULL || nxc_option_find(c->binding->model_dialect, row->name) != row) return false;
  bool type = row->names != NULL && strcmp(row->names, "family") == 0;
  bool class = row->names != NULL && strcmp(row->names, "class") == 0;
  if (type || class) {
    const char *text = type ? family->model_types[0] : family->architecture;
    nxc_value *item = nxc_arena_alloc(c->arena, sizeof *item);
    *item = nxc_string_value(text, strlen(text));
    *value = type ? item : keep(c, (nxc_value){.kind = NXC_LIST, .items = item, .n_items = 1});
    return true;
  }
  for (size_t i = family->n_writes; i-- > 0;) { /* the last of a key counts */
    if (strcmp(family->writes[i].key, row->name) != 0) continue;
    *value = nxc_settings_evaluate(c->binding->settings, NULL, family->writes[i].as);
    return true;
  }
  return false;
}

/* What the system itself takes where it demands an option that nothing wanted says, or else what the setting
 * is that the option alone says. NULL: only its user knows. */
static const nxc_value *filled_value(composer *c, const nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (!holds(c, bound, row->required)) return NULL;
  const nxc_value *value = default_of(c, row);
  if (value == NULL && row->n_sets == 1 && strcmp(row->sets[0].expression, "value") == 0)
    value = nxc_setting_rows[row->sets[0].setting].initial;
  bool says = value != NULL && value->kind != NXC_NULL && (value->kind != NXC_LIST || value->n_items > 0);
  return says ? value : NULL;
}

static bool is_refused(const composer *c, const nxc_bound *bound) {
  const char *const *refused = c->composing->refused;
  bool own = bound >= c->binding->options && bound < c->binding->options + c->binding->dialect->n_options;
  return refused != NULL && own && refused[bound - c->binding->options] != NULL;
}

static const nxc_value *value_for(composer *c, nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (is_refused(c, bound)) return filled_value(c, bound);
  trial t = {.c = c, .bound = bound};
  const nxc_value *written;
  if (family_writes(c, row, &written)) {
    if (written != NULL) try_value(&t, written);
  } else if (row->from != NULL) {
    const nxc_value *value = nxc_binding_evaluate(c->binding, bound, row->from);
    bool section = row->domain.type == NXC_TYPE_MAP; /* `from` says whether it is there */
    if (section && value != NULL && nxc_value_is_true(value)) t.best = keep(c, (nxc_value){.kind = NXC_MAP});
    else if (!section && value != NULL) try_value(&t, value);
  } else if (row->n_sets > 0) {
    try_all(&t);
  }
  bool read = row->read_when == NULL || holds(c, bound, row->read_when);
  if (t.best != NULL && read && is_said(c, bound, t.best, t.found)) return t.best;
  return read ? filled_value(c, bound) : NULL;
}

/* Whether the option is given although no setting that is wanted asks for it. */
static bool is_filled(composer *c, const nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (!bound->given || is_refused(c, bound)) return bound->given;
  bool asked = row->domain.type == NXC_TYPE_MAP || row->names != NULL;
  nxc_setting_id *ids;
  const size_t n = subjects_of(c->arena, row, &ids);
  for (size_t i = 0; i < n && !asked; i++) asked = nxc_settings_known(c->binding->settings, ids[i]);
  return !asked;
}

static bool is_composed(const composer *c, const nxc_option_row *row) {
  return row->alias_of == NULL && (row->from != NULL || row->n_sets > 0) &&
         nxc_in_version(row->versions, row->n_versions, c->composing->version);
}

static void go_over(composer *c, nxc_bound *bounds, size_t n_bounds) {
  for (size_t i = 0; i < n_bounds; i++) {
    nxc_bound *bound = &bounds[i];
    if (!is_composed(c, bound->row)) continue;
    const nxc_value *value = value_for(c, bound);
    bool same = value == NULL ? !bound->given : bound->given && nxc_value_equal(value, bound->value);
    c->changed = c->changed || !same;
    bound->given = value != NULL;
    bound->value = value ? value : default_of(c, bound->row);
  }
}

static void name_model_config(nxc_binding *binding, const nxc_composing *composing) {
  const nxc_option_row *row = nxc_option_find(binding->dialect, composing->model_option);
  nxc_bound *bound = &binding->options[row - binding->dialect->options];
  nxc_value *path = nxc_arena_alloc(binding->arena, sizeof *path);
  *path = nxc_string_value(composing->model_path, strlen(composing->model_path));
  bound->given = true;
  bound->value = path;
  binding->has_model_config = true;
}

nxc_binding *nxc_compose(nxc_arena *arena, const nxc_composing *composing) {
  nxc_settings *wanted = nxc_settings_copy(arena, composing->wanted);
  nxc_binding *binding =
      nxc_binding_new(arena, composing->dialect, composing->version, NULL,
                                         &(nxc_origin){0}, wanted, nxc_sink_new(arena));
  composer c = {.arena = arena, .composing = composing, .binding = binding};
  binding->version = composing->version;
  if (composing->model_option != NULL) name_model_config(binding, composing);
  for (int pass = 0; pass < PASSES_MAX; pass++) {
    c.changed = false;
    if (binding->has_model_config) go_over(&c, binding->model_options, binding->model_dialect->n_options);
    go_over(&c, binding->options, binding->dialect->n_options);
    if (!c.changed) break;
  }
  for (size_t i = 0; composing->filled != NULL && i < binding->dialect->n_options; i++)
    composing->filled[i] = is_filled(&c, &binding->options[i]);
  return binding;
}
