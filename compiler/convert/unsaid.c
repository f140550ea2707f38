/* SPDX-License-Identifier: Apache-2.0 */
/* What a converted text does not say, and why. */
#include "compiler/convert/compose.h"
#include "compiler/convert/converter.h"

#include <string.h>

/* -- what can say a setting ------------------------------------------------------------------------------ */

const char *nxc_converter_join(nxc_arena *arena, const char *names, const char *name) {
  return nxc_arena_printf(arena, "%s%s%s", names, *names ? ", " : "", name);
}

static const char *options_that_say(nxc_converter *c, const nxc_dialect *dialect, nxc_setting_id id) {
  const char *names = "";
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    bool here = row->alias_of == NULL && nxc_in_version(row->versions, row->n_versions, c->back.version);
    if (here && row->n_sets > 0 && nxc_option_speaks_of(c->arena, row, id))
      names = nxc_converter_join(c->arena, names, row->name);
  }
  return names;
}

/* Whether whatever option says the setting always says the same. */
static bool is_constant(nxc_converter *c, nxc_setting_id id) {
  size_t n_constant = 0;
  for (size_t i = 0; i < c->dialect->n_options; i++) {
    const nxc_option_row *row = &c->dialect->options[i];
    for (size_t k = 0; k < row->n_sets; k++) {
      if (row->sets[k].setting != id) continue;
      if (nxc_expression_of(c->arena, row->sets[k].expression)->n_names > 0) return false;
      n_constant++;
    }
  }
  return n_constant > 0;
}

static const nxc_rule_row *rule_that_derives(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool own = rule->dialect != NULL && strcmp(rule->dialect, dialect->name) == 0;
    if (own && rule->derives == id) return rule;
  }
  return NULL;
}

/* No file of the dialect says how many ranks there are: its launcher does. */
bool nxc_converter_is_launchers(nxc_converter *c, nxc_setting_id id) {
  return id == NX_SETTING_MESH_WORLD && *options_that_say(c, c->dialect, id) == '\0' &&
         rule_that_derives(c->dialect, id) == NULL;
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static bool is_same(const nxc_value *one, const nxc_value *other) {
  return one == NULL || other == NULL ? one == other : nxc_value_equal(one, other);
}

typedef enum meaning { MEANS_NOTHING, MAY_MEAN, MEANS_SOMETHING } meaning;

static meaning meaning_in(const nxc_compiled *compiled, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].read_when;
  if (condition == NULL) return MEANS_SOMETHING;
  const nxc_value *read = nxc_binding_evaluate(compiled->binding, NULL, condition);
  return read == NULL ? MAY_MEAN : nxc_value_is_true(read) ? MEANS_SOMETHING : MEANS_NOTHING;
}

bool nxc_converter_differs(const nxc_converter *c, nxc_setting_id id) {
  if (c->back.settings == NULL) return nxc_settings_known(c->source->settings, id);
  meaning here = meaning_in(c->source, id), there = meaning_in(&c->back, id);
  bool nothing = here == MEANS_NOTHING || there == MEANS_NOTHING;
  if (nothing && here != MEANS_SOMETHING && there != MEANS_SOMETHING) return false;
  return !is_same(nxc_settings_value(c->source->settings, id), nxc_settings_value(c->back.settings, id));
}

/* The setting that a derived one differs because of, where that is listed itself. */
static const char *cause_of(const nxc_converter *c, nxc_setting_id id) {
  const nxc_provenance *from = nxc_settings_from(c->source->settings, id);
  const nxc_rule_row *rule = from->kind == NXC_FROM_RULE ? nxc_rule_find(from->origin) : NULL;
  for (size_t i = 0; rule != NULL && rule->dialect == NULL && i < from->n_inputs; i++)
    if (nxc_converter_differs(c, from->inputs[i])) return nxc_setting_path(from->inputs[i]);
  return NULL;
}

/* Why an option that would say the setting was left out; NULL: none was. */
static const char *why_left_out(nxc_converter *c, nxc_setting_id id) {
  for (size_t i = 0; i < c->dialect->n_options; i++)
    if (c->refused[i] != NULL && nxc_option_speaks_of(c->arena, &c->dialect->options[i], id))
      return c->refused[i];
  return NULL;
}

static const char *why_unsaid(nxc_converter *c, nxc_setting_id id) {
  const char *name = c->dialect->name, *options = options_that_say(c, c->dialect, id);
  const nxc_rule_row *rule = rule_that_derives(c->dialect, id);
  const char *cause = cause_of(c, id);
  if (nxc_settings_from(c->source->settings, id)->redacted && !c->request->reveal) return nxc_not_shown;
  if (why_left_out(c, id) != NULL) return why_left_out(c, id);
  if (cause != NULL) return nxc_arena_printf(c->arena, "follows from %s", cause);
  if (!nxc_settings_known(c->source->settings, id))
    return nxc_arena_printf(c->arena, "it is not known here, and %s decides", name);
  if (nxc_converter_is_launchers(c, id))
    return nxc_arena_printf(c->arena, "the launcher of %s says it, no file", name);
  bool in_model = c->front->model_option != NULL && c->back.binding != NULL &&
                  *options_that_say(c, c->back.binding->model_dialect, id) != '\0';
  if (in_model && c->out->model_text == NULL)
    return nxc_arena_printf(c->arena,
                            "%s reads it in the model's config.json, which --model-config-out writes", name);
  if (is_constant(c, id)) return nxc_arena_printf(c->arena, "in %s it never is anything else", name);
  if (*options != '\0') return nxc_arena_printf(c->arena, "%s cannot say it", options);
  if (rule != NULL) return nxc_arena_printf(c->arena, "%s derives it otherwise (%s)", name, rule->id);
  return nxc_arena_printf(c->arena, "%s has no option for it", name);
}

void nxc_converter_compare(nxc_converter *c) {
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    bool outside = nxc_converter_is_launchers(c, id) && !(nxc_settings_known(c->source->settings, id) &&
                                                          !nxc_converter_is_outside(c->source->settings, id));
    bool unsaid = nxc_converter_differs(c, id) || (nxc_converter_is_launchers(c, id) && !outside);
    if (nxc_setting_rows[id].shorthand || nxc_setting_rows[id].changes == NXC_CHANGES_ESTIMATE) continue;
    if (!unsaid) {
      c->out->n_said += nxc_settings_known(c->source->settings, id);
      continue;
    }
    bool known = nxc_settings_known(c->source->settings, id);
    nxc_unsaid one = {.name = nxc_setting_path(id), .why = why_unsaid(c, id)};
    one.value = known ? nxc_settings_show(c->source->settings, id) : "unknown";
    bool known_there = c->back.settings != NULL && nxc_settings_known(c->back.settings, id);
    if (nxc_converter_differs(c, id) && c->back.settings != NULL)
      one.there = known_there ? nxc_settings_show(c->back.settings, id) : "unknown";
    nxc_converter_add(c, one);
  }
}

/* -- what only the first system reads -------------------------------------------------------------------- */

/* Options, and keys that are none, whose meaning no setting holds. What the training does not depend on is
 * left out; what it may depend on is unsaid. */
void nxc_converter_list_left(nxc_converter *c) {
  const char *dialect = c->source->dialect->name;
  c->out->left = "";
  for (size_t i = 0; i < c->n_beyond && !nxc_converter_stays(c); i++) {
    const nxc_beyond *one = &c->beyond[i];
    if (!one->given || !one->read || one->followed) continue;
    if (!nxc_beyond_counts(one)) {
      c->out->left = nxc_converter_join(c->arena, c->out->left, one->name);
      continue;
    }
    const char *why =
        nxc_arena_printf(c->arena, "%s alone has it, and nxcfg does not follow it further", dialect);
    const char *value = one->value ? one->value : "unknown";
    nxc_converter_add(c, (nxc_unsaid){.name = one->name, .value = value, .why = why, .is_option = true});
  }
}
