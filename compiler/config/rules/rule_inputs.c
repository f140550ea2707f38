/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/rule_inputs.h"

#include <string.h>

/* -- expressions over a run ------------------------------------------------------------------------------ */

static const nxc_value *look_up(void *context, const nxc_name *name) {
  const nxc_rule_run *run = context;
  if (name->kind != NXC_NAME_SETTING) return NULL;
  nxc_setting_id id = nxc_setting_find(name->path);
  return id < NX_N_SETTINGS ? nxc_settings_value(run->settings, id) : NULL;
}

static bool is_given(void *context, const nxc_name *name) {
  const nxc_rule_run *run = context;
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  return id < NX_N_SETTINGS && nxc_settings_from(run->settings, id)->kind >= NXC_FROM_ASSUMED;
}

static nxc_scope scope_of(nxc_rule_run *run) {
  if (run->binding != NULL) return nxc_binding_scope(run->binding);
  return (nxc_scope){.lookup = look_up, .given = is_given, .context = run};
}

const nxc_expression *nxc_rule_parse(nxc_rule_run *run, const char *text) {
  return nxc_expression_of(run->arena, text);
}

const nxc_value *nxc_rule_evaluate(nxc_rule_run *run, const nxc_expression *expression, const char **error) {
  nxc_scope scope = scope_of(run);
  return nxc_expression_evaluate(run->arena, expression, &scope, error);
}

bool nxc_rule_applies(const nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_binding *binding = run->binding;
  return nxc_rule_is_of(rule, binding ? binding->dialect->name : NULL, binding ? binding->version : NULL);
}

/* -- what inputs are, and are called -------------------------------------------------------------------- */

const nxc_bound *nxc_rule_bound(const nxc_rule_run *run, const nxc_name *name) {
  if (run->binding == NULL) return NULL;
  if (name->kind == NXC_NAME_OPTION) return nxc_binding_find(run->binding, name->path);
  return name->kind == NXC_NAME_MODEL_CONFIG ? nxc_binding_find_model(run->binding, name->path) : NULL;
}

const nxc_node *nxc_rule_section(nxc_rule_run *run, const nxc_bound *bound) {
  const nxc_node *root = run->binding->document->root;
  const char *name = bound->row->name, *last = nxc_name_last(name);
  if (last == name) return root;
  return nxc_node_lookup(root, nxc_arena_strndup(run->arena, name, (size_t)(last - name - 1)));
}

/* The key of config.json that gives a setting, and that is written for it; NULL when none does. */
static const char *model_key_of(const nxc_binding *binding, nxc_setting_id id) {
  for (size_t i = 0; binding->model_dialect != NULL && i < binding->model_dialect->n_options; i++) {
    const nxc_option_row *row = &binding->model_dialect->options[i];
    if (row->from != NULL && strcmp(row->from, "unknown") == 0) continue;
    for (size_t j = 0; j < row->n_sets; j++) {
      if (row->sets[j].setting == id) return row->name;
    }
  }
  return NULL;
}

/* The given option from which a rule derived a setting; NULL when there is none. */
static const char *option_behind(const nxc_rule_run *run, nxc_setting_id id) {
  const nxc_provenance *from = nxc_settings_from(run->settings, id);
  if (from->kind != NXC_FROM_RULE || from->input_names == NULL || run->binding == NULL) return NULL;
  const char *first = nxc_arena_strndup(run->arena, from->input_names, strcspn(from->input_names, ","));
  const nxc_bound *bound = nxc_binding_find(run->binding, first);
  return bound != NULL && bound->given ? first : NULL;
}

const char *nxc_rule_name(const nxc_rule_run *run, const nxc_name *name) {
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  if (id == NX_N_SETTINGS) return name->path;
  const char *behind = option_behind(run, id);
  if (behind != NULL) return behind;
  const char *called = nxc_setting_name_in_dialect(run->settings, id);
  const nxc_bound *bound = run->binding ? nxc_binding_find(run->binding, called) : NULL;
  const char *key = bound && bound->inactive ? model_key_of(run->binding, id) : NULL;
  return key ? nxc_arena_printf(run->arena, "%s in config.json", key) : called;
}

const nxc_value *nxc_rule_value(nxc_rule_run *run, const nxc_name *name) {
  nxc_scope scope = scope_of(run);
  return scope.lookup(scope.context, name);
}

static bool names_have(const nxc_name *names, size_t n_names, const nxc_name *name) {
  for (size_t i = 0; i < n_names; i++) {
    if (names[i].kind == name->kind && strcmp(names[i].path, name->path) == 0) return true;
  }
  return false;
}

size_t nxc_rule_inputs(nxc_rule_run *run, const nxc_expression *demand, const nxc_expression *when,
                       nxc_name **names) {
  size_t n_names = 0;
  *names = nxc_arena_array(run->arena, demand->n_names + (when ? when->n_names : 0) + 1, sizeof **names);
  for (size_t i = 0; i < demand->n_names; i++) (*names)[n_names++] = demand->names[i];
  for (size_t i = 0; when != NULL && i < when->n_names; i++) {
    if (!names_have(*names, n_names, &when->names[i])) (*names)[n_names++] = when->names[i];
  }
  return n_names;
}

bool nxc_rule_is_said(const nxc_rule_run *run, const nxc_name *name) {
  const nxc_bound *bound = nxc_rule_bound(run, name);
  if (bound != NULL) return bound->value != NULL && bound->value->kind != NXC_MAP;
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  return id < NX_N_SETTINGS && nxc_settings_known(run->settings, id) &&
         !nxc_settings_absent(run->settings, id);
}

nxc_severity nxc_rule_severity(const nxc_rule_run *run, const nxc_rule_row *rule) {
  bool relative = run->binding != NULL && run->binding->relative != NULL && rule->dialect != NULL;
  return relative && rule->severity == NXC_SEVERITY_ERROR ? NXC_SEVERITY_WARNING : rule->severity;
}

bool nxc_rule_is_missing(nxc_rule_run *run, const nxc_name *name) {
  nxc_scope scope = scope_of(run);
  if (scope.partial && name->only_asked && !scope.given(scope.context, name)) return true;
  return !name->only_asked && !name->minded && scope.lookup(scope.context, name) == NULL;
}
