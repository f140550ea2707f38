/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/rules.h"

#include "compiler/settings/domain.h"
#include "compiler/document/repair.h"

#include <stdint.h>
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

static const nxc_expression *parse(nxc_rule_run *run, const char *text) {
  return nxc_expression_of(run->arena, text);
}

static const nxc_value *evaluate(nxc_rule_run *run, const nxc_expression *expression, const char **error) {
  nxc_scope scope = scope_of(run);
  return nxc_expression_evaluate(run->arena, expression, &scope, error);
}

static bool applies(const nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_binding *binding = run->binding;
  return nxc_rule_is_of(rule, binding ? binding->dialect->name : NULL, binding ? binding->version : NULL);
}

/* -- what inputs are called and where they stand --------------------------------------------------------- */

static const nxc_bound *bound_of(const nxc_rule_run *run, const nxc_name *name) {
  if (run->binding == NULL) return NULL;
  if (name->kind == NXC_NAME_OPTION) return nxc_binding_find(run->binding, name->path);
  return name->kind == NXC_NAME_MODEL_CONFIG ? nxc_binding_find_model(run->binding, name->path) : NULL;
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

static const char *name_in_dialect(const nxc_rule_run *run, const nxc_name *name) {
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  if (id == NX_N_SETTINGS) return name->path;
  const char *behind = option_behind(run, id);
  if (behind != NULL) return behind;
  const char *called = nxc_setting_name_in_dialect(run->settings, id);
  const nxc_bound *bound = run->binding ? nxc_binding_find(run->binding, called) : NULL;
  const char *key = bound && bound->inactive ? model_key_of(run->binding, id) : NULL;
  return key ? nxc_arena_printf(run->arena, "%s in config.json", key) : called;
}

static nxc_span place_of(const nxc_rule_run *run, const nxc_name *name) {
  const nxc_bound *bound = bound_of(run, name);
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  if (id < NX_N_SETTINGS) return nxc_settings_span(run->settings, id);
  return bound ? bound->at : (nxc_span){0};
}

/* The innermost of the sections around an option that is there; for one at the top the whole document. */
static nxc_span place_of_section(const nxc_rule_run *run, const nxc_name *name) {
  if (run->binding == NULL || name->kind != NXC_NAME_OPTION) return (nxc_span){0};
  char *path = nxc_arena_strdup(run->arena, name->path);
  for (char *dot; (dot = strrchr(path, '.')) != NULL;) {
    *dot = '\0';
    const nxc_node *section = nxc_node_lookup(run->binding->document->root, path);
    if (section != NULL) return nxc_node_span(section);
  }
  return nxc_node_span(run->binding->document->root);
}

/* "model.num_layers is 30" with its place, or "mesh.data is 4 (derived by NX2001)". */
static nxc_remark describe(const nxc_rule_run *run, const nxc_name *name) {
  const nxc_bound *bound = bound_of(run, name);
  if (bound != NULL) {
    const char *value = bound->value == NULL ? "unknown"
                        : bound->secret      ? "(not shown)"
                                             : nxc_value_show(run->arena, bound->value);
    return (nxc_remark){bound->at, nxc_arena_printf(run->arena, "%s is %s%s", name->path, value,
                                                    bound->given ? "" : " (default)")};
  }
  nxc_setting_id id = nxc_setting_find(name->path);
  const nxc_provenance *from = nxc_settings_from(run->settings, id);
  const char *called = name_in_dialect(run, name), *value = nxc_settings_show(run->settings, id);
  if (from->kind == NXC_FROM_UNKNOWN)
    return (nxc_remark){{0}, nxc_arena_printf(run->arena, "%s is unknown", called)};
  if (from->at.source != NULL && from->kind != NXC_FROM_RULE) {
    const char *source = strcmp(called, name->path) ? nxc_arena_printf(run->arena, ", from %s", called) : "";
    return (nxc_remark){from->at, nxc_arena_printf(run->arena, "%s is %s%s", name->path, value, source)};
  }
  return (nxc_remark){{0},
                      nxc_arena_printf(run->arena, "%s is %s (%s)", name->path, value,
                                       nxc_settings_show_origin(run->settings, id))};
}

/* -- texts ----------------------------------------------------------------------------------------------- */

/* Whether a secret or the environment has a part in its value. */
static bool is_hidden(const nxc_rule_run *run, const nxc_expression *expression) {
  for (size_t i = 0; i < expression->n_names; i++) {
    const nxc_name *name = &expression->names[i];
    const nxc_bound *bound = bound_of(run, name);
    nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
    if (bound != NULL && bound->secret) return true;
    if (id < NX_N_SETTINGS && nxc_settings_from(run->settings, id)->redacted) return true;
  }
  return false;
}

/* {path} and {@option} become names in the user's dialect, {=expression} its value. */
static const char *fill(nxc_rule_run *run, const char *text) {
  const char *filled = "";
  for (;;) {
    size_t n_plain = strcspn(text, "{");
    filled = nxc_arena_printf(run->arena, "%s%.*s", filled, (int)n_plain, text);
    text += n_plain;
    if (*text == '\0') return filled;
    size_t n_inside = strcspn(++text, "}");
    bool value_wanted = *text == '=';
    const nxc_expression *expression =
        parse(run, nxc_arena_strndup(run->arena, text + value_wanted, n_inside - value_wanted));
    const char *error, *shown = "unknown";
    if (value_wanted && is_hidden(run, expression)) {
      shown = "(not shown)";
    } else if (value_wanted) {
      const nxc_value *value = evaluate(run, expression, &error);
      if (value != NULL) shown = value->kind == NXC_STRING ? value->text : nxc_value_show(run->arena, value);
    } else {
      shown = name_in_dialect(run, &expression->names[0]);
    }
    filled = nxc_arena_printf(run->arena, "%s%s", filled, shown);
    text += n_inside + 1;
  }
}

static bool names_have(const nxc_name *names, size_t n_names, const nxc_name *name) {
  for (size_t i = 0; i < n_names; i++) {
    if (names[i].kind == name->kind && strcmp(names[i].path, name->path) == 0) return true;
  }
  return false;
}

/* The names of both expressions, those of the demand first. */
static size_t inputs_of(nxc_rule_run *run, const nxc_expression *demand, const nxc_expression *when,
                        nxc_name **names) {
  size_t n_names = 0;
  *names = nxc_arena_array(run->arena, demand->n_names + (when ? when->n_names : 0) + 1, sizeof **names);
  for (size_t i = 0; i < demand->n_names; i++) (*names)[n_names++] = demand->names[i];
  for (size_t i = 0; when != NULL && i < when->n_names; i++) {
    if (!names_have(*names, n_names, &when->names[i])) (*names)[n_names++] = when->names[i];
  }
  return n_names;
}

/* An option that is not given, and has no default, took no part; nor did what the system does not have. */
static bool is_said(const nxc_rule_run *run, const nxc_name *name) {
  const nxc_bound *bound = bound_of(run, name);
  if (bound != NULL) return bound->value != NULL && bound->value->kind != NXC_MAP;
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  return id < NX_N_SETTINGS && nxc_settings_known(run->settings, id) &&
         !nxc_settings_absent(run->settings, id);
}

/* -- repairs --------------------------------------------------------------------------------------------- */

/* Whether the option's own value is what the name stands for: a setting may be computed from it. */
static bool says_itself(const nxc_rule_run *run, const nxc_name *name, const nxc_bound *bound) {
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  const nxc_value *value = id < NX_N_SETTINGS ? nxc_settings_value(run->settings, id) : bound->value;
  return value != NULL && bound->value != NULL && nxc_value_equal(value, bound->value);
}

/* "set {option} to VALUE", "set {option} to ..., such as VALUE" and "leave {option} out", and no more, are
 * edits too, which somebody has to decide. */
static nxc_repair repair_of(nxc_rule_run *run, const nxc_rule_row *rule) {
  const char *text = rule->fix, *open = text ? strchr(text, '{') : NULL;
  if (open == NULL || run->binding == NULL || open[1] == '=') return (nxc_repair){0};
  const char *shut = strchr(open, '}');
  const nxc_expression *expression =
      parse(run, nxc_arena_strndup(run->arena, open + 1, (size_t)(shut - open - 1)));
  const nxc_name *name = &expression->names[0];
  const nxc_bound *bound = nxc_binding_find(run->binding, name_in_dialect(run, name));
  if (bound == NULL || !bound->given || bound->node == NULL || bound->node->derivation != NULL ||
      bound->secret || !says_itself(run, name, bound))
    return (nxc_repair){0};
  bool leaves = strncmp(text, "leave {", 7) == 0 && strcmp(shut, "} out") == 0;
  if (leaves) return nxc_repair_remove(run->arena, bound->node, false);
  const char *such = strstr(shut, ", such as ");
  const char *value = strncmp(shut, "} to ", 5) == 0 ? fill(run, such ? such + 10 : shut + 5) : " ";
  bool sets = strncmp(text, "set {", 5) == 0 && strpbrk(value, " ,;") == NULL;
  return sets ? nxc_repair_value(run->arena, bound->node, value, false) : (nxc_repair){0};
}

/* A code that grew out of the system may have its own mind about what that demands. */
static nxc_severity severity_of(const nxc_rule_run *run, const nxc_rule_row *rule) {
  bool relative = run->binding != NULL && run->binding->relative != NULL && rule->dialect != NULL;
  return relative && rule->severity == NXC_SEVERITY_ERROR ? NXC_SEVERITY_WARNING : rule->severity;
}

/* Whether the rule is about an old name that such a code has still. */
static bool is_about_own(const nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_relative *relative = run->binding != NULL ? run->binding->relative : NULL;
  bool option = rule->at != NULL && rule->at[0] == '@';
  return relative != NULL && option && nxc_relative_has(relative, rule->at + 1);
}

static void report(nxc_rule_run *run, const nxc_rule_row *rule, const nxc_expression *demand,
                   const nxc_expression *when) {
  nxc_name *names;
  size_t n_names = inputs_of(run, demand, when, &names);
  nxc_span at = {0};
  const nxc_expression *wanted = parse(run, rule->at);
  if (wanted != NULL && wanted->n_names > 0) at = place_of(run, &wanted->names[0]);
  nxc_remark *remarks = nxc_arena_array(run->arena, n_names + 1, sizeof *remarks);
  size_t n_remarks = 0;
  for (size_t i = 0; i < n_names; i++) {
    if (is_said(run, &names[i])) remarks[n_remarks++] = describe(run, &names[i]);
    if (at.source == NULL) at = place_of(run, &names[i]);
  }
  if (at.source == NULL && wanted != NULL && wanted->n_names > 0)
    at = place_of_section(run, &wanted->names[0]);
  nxc_sink_report(run->sink, &(nxc_finding){.id = rule->id,
                                            .severity = severity_of(run, rule),
                                            .message = fill(run, rule->message),
                                            .at = at,
                                            .fix = rule->fix ? fill(run, rule->fix) : NULL,
                                            .repair = repair_of(run, rule),
                                            .remarks = remarks,
                                            .n_remarks = n_remarks,
                                            .firm = run->structural});
}

/* An input whose being unknown hides the outcome. */
static bool is_missing(nxc_rule_run *run, const nxc_name *name) {
  nxc_scope scope = scope_of(run);
  if (scope.partial && name->only_asked && !scope.given(scope.context, name)) return true;
  return !name->only_asked && !name->minded && scope.lookup(scope.context, name) == NULL;
}

static void skip(nxc_rule_run *run, const nxc_rule_row *rule, const nxc_expression *demand,
                 const nxc_expression *when, const char *error) {
  nxc_name *names;
  size_t n_names = inputs_of(run, demand, when, &names);
  const char *missing = "";
  for (size_t i = 0; i < n_names; i++)
    if (is_missing(run, &names[i]))
      missing = nxc_arena_printf(run->arena, "%s%s%s", missing, *missing ? ", " : "",
                                 name_in_dialect(run, &names[i]));
  run->skipped = nxc_arena_grow(run->arena, run->skipped, run->n_skipped, sizeof *run->skipped);
  run->skipped[run->n_skipped++] = (nxc_skipped_rule){rule, missing, error};
}

/* -- deriving -------------------------------------------------------------------------------------------- */

typedef struct derivation {
  const nxc_rule_row *rule;
  const nxc_expression *when, *derive;
  bool reported;
} derivation;

/* Inputs that are settings go in by id; of options the first that is given lends its place. */
static nxc_provenance provenance_of(nxc_rule_run *run, const derivation *d) {
  nxc_name *names;
  size_t n_names = inputs_of(run, d->derive, d->when, &names);
  nxc_setting_id *ids = nxc_arena_array(run->arena, n_names + 1, sizeof *ids);
  nxc_provenance from = {.kind = NXC_FROM_RULE, .origin = d->rule->id, .inputs = ids};
  for (size_t i = 0; i < n_names; i++) {
    const nxc_bound *bound = bound_of(run, &names[i]);
    if (is_said(run, &names[i])) {
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
  const nxc_value *value = when ? evaluate(run, when, &error) : NULL;
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
  const nxc_value *value = evaluate(run, d->derive, &error);
  if (value == NULL) return true;
  if (old != NULL && is_same(old, value)) return before->kind != NXC_FROM_FIXED || take_over(run, d, changed);
  if (overrides && !d->reported) report(run, d->rule, d->derive, d->when);
  d->reported = true;
  nxc_provenance from = provenance_of(run, d);
  *changed = true;
  return nxc_settings_override(run->settings, id, value, &from, run->sink);
}

static derivation *add_derivations(nxc_rule_run *run, const nxc_rule_row *rows, size_t n_rows,
                                   derivation *at) {
  for (size_t i = 0; i < n_rows; i++) {
    if (rows[i].derive == NULL || !applies(run, &rows[i])) continue;
    *at++ = (derivation){&rows[i], parse(run, rows[i].when), parse(run, rows[i].derive), false};
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
  const nxc_value *value = evaluate(run, parse(run, row->value), &error);
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
  for (size_t i = 0; i < d->derive->n_names; i++) missing = missing || is_missing(run, &d->derive->names[i]);
  if (d->rule->dialect == NULL || !assumed || !missing || !holds(run, d->when)) return;
  if (evaluate(run, d->derive, &error) == NULL) nxc_settings_clear(run->settings, d->rule->derives);
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

/* -- demanding ------------------------------------------------------------------------------------------- */

static bool is_broken(const nxc_rule_run *run, const char *id) {
  for (size_t i = 0; id != NULL && i < run->n_broken; i++)
    if (strcmp(run->broken[i]->id, id) == 0) return true;
  return false;
}

/* False when the rule is violated. */
static bool check_one(nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_expression *when = parse(run, rule->when);
  const char *error = NULL;
  const nxc_value *condition = when ? evaluate(run, when, &error) : NULL;
  if (when != NULL && condition == NULL) {
    skip(run, rule, when, NULL, error);
    return true;
  }
  if (condition != NULL && !nxc_value_is_true(condition)) return true;
  const nxc_expression *require = parse(run, rule->require);
  const nxc_value *value = evaluate(run, require, &error);
  if (value == NULL) skip(run, rule, require, when, error);
  if (value == NULL || nxc_value_is_true(value)) return true;
  report(run, rule, require, when);
  return false;
}

static bool check_rows(nxc_rule_run *run, const nxc_rule_row *rows, size_t n_rows) {
  bool ok = true;
  for (size_t i = 0; i < n_rows; i++) {
    const nxc_rule_row *rule = &rows[i];
    if (rule->require == NULL || !applies(run, rule) || is_broken(run, rule->after)) continue;
    if (is_about_own(run, rule) || (run->structural && !rule->structural)) continue;
    if (check_one(run, rule)) continue;
    run->broken = nxc_arena_grow(run->arena, run->broken, run->n_broken, sizeof *run->broken);
    run->broken[run->n_broken++] = rule;
    if (severity_of(run, rule) == NXC_SEVERITY_ERROR) ok = false;
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
    nxc_report(sink, "NX3002", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "%s cannot be judged: %s%s",
               skipped->rule->id, skipped->failure ? skipped->failure : skipped->missing,
               skipped->failure ? "" : " is unknown");
  }
  return ok && run.n_skipped == 0;
}
