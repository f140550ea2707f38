/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/rule_report.h"

#include "compiler/config/rules/lacks.h"
#include "compiler/config/rules/remedy.h"
#include "compiler/config/rules/rule_inputs.h"
#include "compiler/document/repair.h"

#include <string.h>

/* -- where inputs stand ---------------------------------------------------------------------------------- */

static nxc_span place_of(const nxc_rule_run *run, const nxc_name *name) {
  const nxc_bound *bound = nxc_rule_bound(run, name);
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
  const nxc_bound *bound = nxc_rule_bound(run, name);
  if (bound != NULL) {
    const char *value = bound->value == NULL ? "unknown"
                        : bound->secret      ? "(not shown)"
                                             : nxc_value_show(run->arena, bound->value);
    return (nxc_remark){bound->at, nxc_arena_printf(run->arena, "%s is %s%s", name->path, value,
                                                    bound->given ? "" : " (default)")};
  }
  nxc_setting_id id = nxc_setting_find(name->path);
  const nxc_provenance *from = nxc_settings_from(run->settings, id);
  const char *called = nxc_rule_name(run, name), *value = nxc_settings_show(run->settings, id);
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
    const nxc_bound *bound = nxc_rule_bound(run, name);
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
        nxc_rule_parse(run, nxc_arena_strndup(run->arena, text + value_wanted, n_inside - value_wanted));
    const char *error, *shown = "unknown";
    if (value_wanted && is_hidden(run, expression)) {
      shown = "(not shown)";
    } else if (value_wanted) {
      const nxc_value *value = nxc_rule_evaluate(run, expression, &error);
      if (value != NULL) shown = value->kind == NXC_STRING ? value->text : nxc_value_show(run->arena, value);
    } else {
      shown = nxc_rule_name(run, &expression->names[0]);
    }
    filled = nxc_arena_printf(run->arena, "%s%s", filled, shown);
    text += n_inside + 1;
  }
}

/* Whether it speaks of a setting that no option of the user's dialect says, or of a value that nothing gives.
 */
static bool is_beyond(nxc_rule_run *run, const char *text) {
  if (run->binding == NULL) return false;
  const nxc_dialect *dialect = run->binding->dialect;
  for (const char *open = text; (open = strchr(open, '{')) != NULL; open++) {
    bool is_value = open[1] == '=';
    const char *inside =
        nxc_arena_strndup(run->arena, open + 1 + is_value, strcspn(open + 1 + is_value, "}"));
    const nxc_expression *expression = nxc_rule_parse(run, inside);
    const char *error, *called = is_value ? NULL : nxc_rule_name(run, &expression->names[0]);
    if (is_value ? nxc_rule_evaluate(run, expression, &error) == NULL
                 : strcmp(called, inside) == 0 && nxc_option_find(dialect, called) == NULL)
      return true;
  }
  return false;
}

/* Of several remedies, which || divides, those that can be said in the user's dialect and are known. */
static const char *fill_remedy(nxc_rule_run *run, const char *text) {
  const char *filled = NULL, *end;
  for (; text != NULL; text = end ? end + 4 : NULL) {
    end = strstr(text, " || ");
    const char *one = end ? nxc_arena_strndup(run->arena, text, (size_t)(end - text)) : text;
    if (is_beyond(run, one)) continue;
    one = fill(run, one);
    filled = filled ? nxc_arena_printf(run->arena, "%s, or %s", filled, one) : one;
  }
  return filled;
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
      nxc_rule_parse(run, nxc_arena_strndup(run->arena, open + 1, (size_t)(shut - open - 1)));
  const nxc_name *name = &expression->names[0];
  const nxc_bound *bound = nxc_binding_find(run->binding, nxc_rule_name(run, name));
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

/* The rule's remedy with the change that is made, where it does not say that itself. */
static const char *with_change(nxc_rule_run *run, const char *fix, const nxc_remedy *remedy) {
  const char *name = remedy->bound->row->name;
  const char *value = remedy->value == NULL               ? "out"
                      : remedy->value->kind == NXC_STRING ? remedy->value->text
                                                          : nxc_value_show(run->arena, remedy->value);
  const char *change =
      nxc_arena_printf(run->arena, remedy->value ? "set %s to %s" : "leave %s %s", name, value);
  if (fix == NULL) return change;
  if (!remedy->bound->given || strcmp(fix, nxc_arena_printf(run->arena, "write %s", value)) == 0) return fix;
  bool named = nxc_remedy_says(fix, name) || nxc_remedy_says(fix, nxc_name_last(name));
  bool leaves = nxc_remedy_says(fix, "leave") || nxc_remedy_says(fix, "remove");
  const char *to = nxc_arena_printf(run->arena, "%s %s",
                                    remedy->value && remedy->value->kind == NXC_INT ? "to" : "", value);
  if (named && (remedy->value ? nxc_remedy_says(fix, to + (*to == ' ')) : leaves)) return fix;
  if (named && nxc_remedy_says(fix, nxc_arena_printf(run->arena, "such as %s", value))) return fix;
  bool such = remedy->value != NULL && strstr(fix, " or ") == NULL &&
              strncmp(fix, change, strlen(change) - strlen(value)) == 0;
  return such ? nxc_arena_printf(run->arena, "%s, such as %s", fix, value)
              : nxc_arena_printf(run->arena, "%s; here: %s", fix, change);
}

/* Numbers that do not fit together: any of them may be the slip. */
static bool stands_at_number(nxc_rule_run *run, const nxc_rule_row *rule) {
  const nxc_expression *at = nxc_rule_parse(run, rule->at);
  const nxc_value *value = at && at->n_names > 0 ? nxc_rule_value(run, &at->names[0]) : NULL;
  return value != NULL && value->kind == NXC_INT;
}

/* Its remedy, and as data the change that the remedy names, or the smallest one that mends it: of what fits
 * together in many ways ("such as") rather this. The finding then stands where that is. */
static void advise(nxc_rule_run *run, const nxc_rule_row *rule, nxc_finding *finding) {
  bool one_of_many = rule->fix != NULL && strstr(rule->fix, ", such as {=") != NULL;
  finding->fix = fill_remedy(run, rule->fix);
  finding->repair = repair_of(run, rule);
  if (finding->repair.n_edits == 0) finding->repair = nxc_rule_repair_lacks(run, rule);
  if ((finding->repair.n_edits > 0 && !one_of_many) || finding->severity < NXC_SEVERITY_ERROR) return;
  nxc_remedy remedy = nxc_rule_remedy(run, rule, finding->fix);
  if (remedy.repair.n_edits == 0) return;
  finding->repair = remedy.repair;
  bool number = remedy.value != NULL && remedy.value->kind == NXC_INT;
  if (number && stands_at_number(run, rule)) finding->at = remedy.bound->at;
  finding->fix = with_change(run, finding->fix, &remedy);
}

/* The largest of the inputs that a file gives. */
static nxc_span largest_in_file(nxc_rule_run *run, const nxc_name *names, size_t n_names) {
  nxc_span largest = {0};
  int64_t most = 1;
  for (size_t i = 0; i < n_names; i++) {
    nxc_span at = place_of(run, &names[i]);
    const nxc_value *value = nxc_rule_value(run, &names[i]);
    if (at.source == NULL || !at.source->editable || value == NULL || value->kind != NXC_INT ||
        value->digits != NULL)
      continue;
    if (value->integer <= most) continue;
    most = value->integer;
    largest = at;
  }
  return largest;
}

void nxc_rule_report(nxc_rule_run *run, const nxc_rule_row *rule, const nxc_expression *demand,
                     const nxc_expression *when) {
  nxc_name *names;
  size_t n_names = nxc_rule_inputs(run, demand, when, &names);
  nxc_span at = {0};
  const nxc_expression *wanted = nxc_rule_parse(run, rule->at);
  for (size_t i = 0; wanted != NULL && i < wanted->n_names && at.source == NULL; i++)
    at = place_of(run, &wanted->names[i]);
  bool circumstance =
      at.source != NULL && !at.source->editable && strcmp(wanted->names[0].path, "mesh.world") == 0;
  nxc_span in_file = circumstance ? largest_in_file(run, names, n_names) : (nxc_span){0};
  if (in_file.source != NULL) at = in_file; /* --world-size is what there is; the file has to fit it */
  nxc_remark *remarks = nxc_arena_array(run->arena, n_names + 1, sizeof *remarks);
  size_t n_remarks = 0;
  for (size_t i = 0; i < n_names; i++) {
    if (nxc_rule_is_said(run, &names[i])) remarks[n_remarks++] = describe(run, &names[i]);
    if (at.source == NULL) at = place_of(run, &names[i]);
  }
  if (at.source == NULL && wanted != NULL && wanted->n_names > 0)
    at = place_of_section(run, &wanted->names[0]);
  nxc_finding finding = {.id = rule->id,
                         .severity = nxc_rule_severity(run, rule),
                         .message = fill(run, rule->message),
                         .at = at,
                         .remarks = remarks,
                         .n_remarks = n_remarks,
                         .firm = run->structural};
  advise(run, rule, &finding);
  nxc_sink_report(run->sink, &finding);
}
