/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/rule_inputs.h"
#include "compiler/config/rules/rule_report.h"

#include <stdint.h>
#include <string.h>

static bool is_broken(const nxc_rule_run *run, const char *id) {
  for (size_t i = 0; id != NULL && i < run->n_broken; i++)
    if (strcmp(run->broken[i]->id, id) == 0) return true;
  return false;
}

/* Whether the rule is about an old name that such a code has still, or about what an option of its own says
 * otherwise. */
static bool is_about_own(const nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_relative *relative = run->binding != NULL ? run->binding->relative : NULL;
  if (relative == NULL) return false;
  if (rule->at != NULL && rule->at[0] == '@' && nxc_relative_has(relative, rule->at + 1)) return true;
  const nxc_node *root = run->binding->document->root;
  for (size_t i = 0; i < root->n_children; i++)
    if (root->children[i]->key != NULL && nxc_relative_spares(relative, root->children[i]->key, rule->id))
      return true;
  return false;
}

static void skip(nxc_rule_run *run, const nxc_rule_row *rule, const nxc_expression *demand,
                 const nxc_expression *when, const char *error) {
  nxc_name *names;
  size_t n_names = nxc_rule_inputs(run, demand, when, &names);
  const char *missing = "";
  for (size_t i = 0; i < n_names; i++)
    if (nxc_rule_is_missing(run, &names[i]))
      missing = nxc_arena_printf(run->arena, "%s%s%s", missing, *missing ? ", " : "",
                                 nxc_rule_name(run, &names[i]));
  run->skipped = nxc_arena_grow(run->arena, run->skipped, run->n_skipped, sizeof *run->skipped);
  run->skipped[run->n_skipped++] = (nxc_skipped_rule){rule, missing, error};
}

/* False when the rule is violated. */
static bool check_one(nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_expression *when = nxc_rule_parse(run, rule->when);
  const char *error = NULL;
  const nxc_value *condition = when ? nxc_rule_evaluate(run, when, &error) : NULL;
  if (when != NULL && condition == NULL) {
    skip(run, rule, when, NULL, error);
    return true;
  }
  if (condition != NULL && !nxc_value_is_true(condition)) return true;
  const nxc_expression *require = nxc_rule_parse(run, rule->require);
  const nxc_value *value = nxc_rule_evaluate(run, require, &error);
  if (value == NULL) skip(run, rule, require, when, error);
  if (value == NULL || nxc_value_is_true(value)) return true;
  nxc_rule_report(run, rule, require, when);
  return false;
}

static bool check_rows(nxc_rule_run *run, const nxc_rule_row *rows, size_t n_rows) {
  bool ok = true;
  for (size_t i = 0; i < n_rows; i++) {
    const nxc_rule_row *rule = &rows[i];
    if (rule->require == NULL || !nxc_rule_applies(run, rule) || is_broken(run, rule->after)) continue;
    if (is_about_own(run, rule) || (run->structural && !rule->structural)) continue;
    if (check_one(run, rule)) continue;
    run->broken = nxc_arena_grow(run->arena, run->broken, run->n_broken, sizeof *run->broken);
    run->broken[run->n_broken++] = rule;
    if (nxc_rule_severity(run, rule) == NXC_SEVERITY_ERROR) ok = false;
  }
  return ok;
}

bool nxc_rules_check(nxc_rule_run *run) {
  bool ok = check_rows(run, nxc_rules, nxc_n_rules);
  return check_rows(run, run->site.rows, run->site.n_rows) && ok;
}

bool nxc_rules_check_structure(const nxc_settings *settings, nxc_sink *sink) {
  nxc_rule_run run = {.arena = nxc_settings_arena(settings),
                      .settings = (nxc_settings *)(uintptr_t)settings, /* demands only read it */
                      .sink = sink,
                      .structural = true};
  bool ok = check_rows(&run, nxc_rules, nxc_n_rules);
  for (size_t i = 0; ok && i < run.n_skipped; i++) {
    const nxc_skipped_rule *skipped = &run.skipped[i];
    nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, "give what it asks about",
               "%s cannot be judged: %s%s", skipped->rule->id,
               skipped->failure ? skipped->failure : skipped->missing, skipped->failure ? "" : " is unknown");
  }
  return ok && run.n_skipped == 0;
}
