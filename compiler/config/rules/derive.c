/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/rule_inputs.h"
#include "compiler/config/rules/rule_report.h"

#include "compiler/settings/domain.h"

#include <string.h>

typedef struct derivation {
  const nxc_rule_row *rule;
  const nxc_expression *when, *derive;
  bool reported;
} derivation;

/* Inputs that are settings go in by id; of options the first that is given lends its place. */
static nxc_provenance provenance_of(nxc_rule_run *run, const derivation *d) {
  nxc_name *names;
  size_t n_names = nxc_rule_inputs(run, d->derive, d->when, &names);
  nxc_setting_id *ids = nxc_arena_array(run->arena, n_names + 1, sizeof *ids);
  nxc_provenance from = {.kind = NXC_FROM_RULE, .origin = d->rule->id, .inputs = ids};
  for (size_t i = 0; i < n_names; i++) {
    const nxc_bound *bound = nxc_rule_bound(run, &names[i]);
    if (nxc_rule_is_said(run, &names[i])) {
      from.input_names = nxc_arena_printf(run->arena, "%s%s%s", from.input_names ? from.input_names : "",
                                          from.input_names ? ", " : "", names[i].path);
    }
    if (bound != NULL && bound->secret) from.redacted = true;
    if (bound != NULL && from.at.source == NULL) from.at = bound->at;
    if (names[i].kind != NXC_NAME_SETTING) continue;
    nxc_setting_id id = nxc_setting_find(names[i].path);
    if (nxc_settings_from(run->settings, id)->redacted) from.redacted = true;
    ids[from.n_inputs++] = id;
  }
  return from;
}

static bool holds(nxc_rule_run *run, const nxc_expression *when) {
  const char *error;
  const nxc_value *value = when ? nxc_rule_evaluate(run, when, &error) : NULL;
  return when == NULL || (value != NULL && nxc_value_is_true(value));
}

/* Of two rules for one setting that of the site counts, then that of the dialect. */
static int rank_of(const nxc_rule_run *run, const nxc_rule_row *rule) {
  bool of_site = run->site.n_rows > 0 && rule >= run->site.rows && rule < run->site.rows + run->site.n_rows;
  return of_site ? 2 : rule->dialect != NULL;
}

static const nxc_rule_row *find_rule(const nxc_rule_run *run, const char *id) {
  for (size_t i = 0; i < run->site.n_rows; i++)
    if (strcmp(run->site.rows[i].id, id) == 0) return &run->site.rows[i];
  return nxc_rule_find(id);
}

/* What a rule has given belongs to it, before rules of less rank; among a site's to the first. */
static bool is_taken(const nxc_rule_run *run, const nxc_provenance *from, const nxc_rule_row *by) {
  const nxc_rule_row *giver = from->kind == NXC_FROM_RULE ? find_rule(run, from->origin) : NULL;
  if (giver == NULL || giver == by) return false;
  int rank = rank_of(run, giver), other = rank_of(run, by);
  return rank > other || (rank == other && rank == 2);
}

/* What the system decides anyway is the rule's all the same where an option that is given has a part in
 * it. */
static bool take_over(nxc_rule_run *run, const derivation *d, bool *changed) {
  nxc_provenance from = provenance_of(run, d);
  if (from.at.source == NULL) return true;
  *changed = true;
  return nxc_settings_override(run->settings, d->rule->derives,
                               nxc_settings_value(run->settings, d->rule->derives), &from, run->sink);
}

/* 1 and 1.0 are, since settings keep whichever their type has. */
static bool is_same(const nxc_value *a, const nxc_value *b) {
  if (a->kind == NXC_INT && b->kind == NXC_FLOAT) return (double)a->integer == b->number;
  if (a->kind == NXC_FLOAT && b->kind == NXC_INT) return a->number == (double)b->integer;
  return nxc_value_equal(a, b);
}

/* Runs one rule once; *changed when the setting has a new value. */
static bool derive_one(nxc_rule_run *run, derivation *d, bool *changed) {
  nxc_setting_id id = d->rule->derives;
  bool overrides = d->rule->message != NULL;
  const nxc_value *old = nxc_settings_value(run->settings, id);
  const nxc_provenance *before = nxc_settings_from(run->settings, id);
  bool forgotten = before->kind == NXC_FROM_UNKNOWN && before->option != NULL;
  bool stronger = !overrides && before->kind > NXC_FROM_RULE;
  if (forgotten || stronger || is_taken(run, before, d->rule)) return true;
  if (!holds(run, d->when)) return true;
  const char *error;
  const nxc_value *value = nxc_rule_evaluate(run, d->derive, &error);
  if (value == NULL) return true;
  if (old != NULL && is_same(old, value)) return before->kind != NXC_FROM_FIXED || take_over(run, d, changed);
  if (overrides && !d->reported) nxc_rule_report(run, d->rule, d->derive, d->when);
  d->reported = true;
  nxc_provenance from = provenance_of(run, d);
  *changed = true;
  return nxc_settings_override(run->settings, id, value, &from, run->sink);
}

static derivation *add_derivations(nxc_rule_run *run, const nxc_rule_row *rows, size_t n_rows,
                                   derivation *at) {
  for (size_t i = 0; i < n_rows; i++) {
    if (rows[i].derive == NULL || !nxc_rule_applies(run, &rows[i])) continue;
    *at++ =
        (derivation){&rows[i], nxc_rule_parse(run, rows[i].when), nxc_rule_parse(run, rows[i].derive), false};
  }
  return at;
}

static bool report_unsettled(nxc_rule_run *run, const char *id) {
  nxc_report(run->sink, "NX1520", NXC_SEVERITY_ERROR, (nxc_span){0},
             "derive it from what does not depend on it",
             "%s: what it derives changes what it is derived from", id);
  return false;
}

/* What the system decides itself; NULL: unknown. In the setting's own type, where it has that. */
static const nxc_value *fixed_value(nxc_rule_run *run, const nxc_fixed_row *row) {
  const nxc_setting_row *setting = &nxc_setting_rows[row->setting];
  if (row->value == NULL) return row->kind == NXC_ABSENT ? setting->initial : NULL;
  const char *error;
  const nxc_value *value = nxc_rule_evaluate(run, nxc_rule_parse(run, row->value), &error);
  if (value == NULL) return NULL;
  nxc_verdict verdict = nxc_domain_judge(run->arena, &setting->domain, value, true);
  return verdict.misfit == NXC_FITS ? verdict.value : value;
}

/* It stands where nothing stronger has spoken, and takes the place of our defaults. */
static bool fix_one(nxc_rule_run *run, const nxc_fixed_row *row, bool *changed) {
  const nxc_provenance *before = nxc_settings_from(run->settings, row->setting);
  const nxc_provenance from = {.kind = row->kind == NXC_ABSENT ? NXC_FROM_ABSENT : NXC_FROM_FIXED,
                               .origin = row->why ? row->why : row->source};
  bool forgotten = before->kind == NXC_FROM_UNKNOWN && before->option != NULL;
  if (forgotten || before->kind > NXC_FROM_FIXED) return true;
  const nxc_value *value = fixed_value(run, row), *old = before->value;
  bool same = value == NULL || old == NULL ? value == old : nxc_value_equal(value, old);
  if (same && before->kind != NXC_FROM_DEFAULT) return true;
  *changed = true;
  nxc_settings_clear(run->settings, row->setting); /* our default was never the system's */
  return value == NULL || nxc_settings_override(run->settings, row->setting, value, &from, run->sink);
}

static bool fix_settings(nxc_rule_run *run, bool *changed) {
  bool ok = true;
  for (size_t i = 0; i < run->binding->dialect->n_fixed; i++)
    ok = fix_one(run, &run->binding->dialect->fixed[i], changed) && ok;
  return ok;
}

/* What a system's own rule would derive, were its inputs known, is unknown: no default is its value. */
static void forget_underived(nxc_rule_run *run, const derivation *d) {
  const char *error;
  nxc_provenance_kind kind = nxc_settings_from(run->settings, d->rule->derives)->kind;
  bool missing = false, assumed = kind == NXC_FROM_DEFAULT || kind == NXC_FROM_FIXED;
  for (size_t i = 0; i < d->derive->n_names; i++)
    missing = missing || nxc_rule_is_missing(run, &d->derive->names[i]);
  if (d->rule->dialect == NULL || !assumed || !missing || !holds(run, d->when)) return;
  if (nxc_rule_evaluate(run, d->derive, &error) == NULL) nxc_settings_clear(run->settings, d->rule->derives);
}

bool nxc_rules_derive(nxc_rule_run *run) {
  derivation *first = nxc_arena_array(run->arena, nxc_n_rules + run->site.n_rows + 1, sizeof *first);
  derivation *ours = add_derivations(run, run->site.rows, run->site.n_rows, first); /* behind the site's */
  derivation *end = add_derivations(run, nxc_rules, nxc_n_rules, ours);
  bool ok = true, changed = true;
  const char *last = "";
  for (ptrdiff_t pass = 0; changed && ok; pass++) {
    if (pass > end - first + 1) return report_unsettled(run, last);
    changed = false;
    ok = run->binding == NULL || fix_settings(run, &changed);
    for (derivation *d = first; d < end && ok; d++) {
      bool now = false;
      ok = derive_one(run, d, &now);
      if (now && (d < ours || run->site.n_rows == 0)) last = d->rule->id;
      changed |= now;
    }
  }
  for (const derivation *d = first; d < end; d++) forget_underived(run, d);
  return ok;
}
