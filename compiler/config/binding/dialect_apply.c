/* SPDX-License-Identifier: Apache-2.0 */
/* What bound options say together: inactive ones, refused ones, and the settings that the rest set. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/family.h"
#include "compiler/config/interpolation/interpolate.h"
#include "compiler/document/repair.h"

#include <string.h>

/* -- status ---------------------------------------------------------------------------------------------- */

/* A condition without the marks that only the catalogue needs. */
static const char *readable(nxc_arena *arena, const char *expression) {
  char *text = nxc_arena_strdup(arena, expression), *end = text;
  for (const char *at = expression; *at != '\0'; at++) {
    if (*at != '@') *end++ = *at;
  }
  *end = '\0';
  return text;
}

/* What switches an option off: each option that its condition names, with its value and place. */
static size_t switches_of(nxc_binding *binding, const char *condition, nxc_remark **remarks) {
  size_t n_remarks = 0;
  const nxc_expression *expression = nxc_expression_of(binding->arena, condition);
  *remarks = nxc_arena_array(binding->arena, expression->n_names + 1, sizeof **remarks);
  for (size_t i = 0; i < expression->n_names; i++) {
    const nxc_name *name = &expression->names[i];
    const nxc_bound *of = name->kind == NXC_NAME_OPTION ? nxc_binding_find(binding, name->path) : NULL;
    if (of == NULL || of->value == NULL || of->value->kind == NXC_MAP || of->secret) continue;
    const char *shown = nxc_value_show(binding->arena, of->value), *how = of->given ? "" : " (default)";
    (*remarks)[n_remarks++] =
        (nxc_remark){of->at, nxc_arena_printf(binding->arena, "%s is %s%s", name->path, shown, how)};
  }
  return n_remarks;
}

static void report_inactive(nxc_binding *binding, const nxc_bound *bound) {
  bool preset = strncmp(bound->row->name, "precision.", 10) == 0;
  nxc_remark *remarks;
  size_t n_remarks = switches_of(binding, bound->row->read_when, &remarks);
  const char *format = preset ? "%s is given in vain: the precision preset decides (read only where %s)"
                              : "%s is not read here, only where %s";
  nxc_sink_report(binding->sink,
                  &(nxc_finding){.id = preset ? "NX1404" : "NX1402",
                                 .severity = NXC_SEVERITY_NOTE,
                                 .at = bound->at,
                                 .message = nxc_arena_printf(binding->arena, format, bound->row->name,
                                                             readable(binding->arena, bound->row->read_when)),
                                 .remarks = remarks,
                                 .n_remarks = n_remarks});
}

static void report_refused(nxc_binding *binding, const nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  bool is_short = !bound->secret && bound->value->kind != NXC_MAP && bound->value->kind != NXC_LIST;
  const char *shown =
      is_short ? nxc_arena_printf(binding->arena, ": %s", nxc_value_show(binding->arena, bound->value)) : "";
  const char *fix = bound->given ? "leave it out" : "give it another value";
  if (row->instead != NULL) fix = nxc_arena_printf(binding->arena, "use %s", row->instead);
  nxc_report(binding->sink, "NX1401", binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE, bound->at,
             fix, "nxrun cannot execute %s%s%s: %s", row->name, shown, bound->given ? "" : " (the default)",
             row->why ? row->why : "not yet");
}

static bool is_refused(nxc_binding *binding, const nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (bound->value == NULL) return false;
  if (row->refused_when != NULL) return nxc_binding_is_true(binding, bound, row->refused_when);
  if (row->status != NXC_REFUSED || !bound->given || bound->value->kind == NXC_NULL) return false;
  const nxc_value *initial = nxc_option_default(row, binding->version);
  return initial == NULL || !nxc_value_equal(initial, bound->value);
}

/* A key of this entry of a list, where its row says that nxrun cannot execute it. */
static bool refuse_key(nxc_binding *binding, const char *list, size_t entry, const nxc_node *node) {
  nxc_arena *arena = binding->arena;
  const nxc_option_row *row =
      nxc_option_find(binding->dialect, nxc_arena_printf(arena, "%s[].%s", list, node->key));
  const nxc_value *value = nxc_node_value(arena, node);
  if (row == NULL || row->status != NXC_REFUSED || value == NULL || value->kind == NXC_NULL) return false;
  nxc_report(binding->sink, "NX1401", binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE,
             nxc_node_span(node), "leave it out", "nxrun cannot execute %s[%zu].%s: %s", list, entry,
             node->key, row->why ? row->why : "not yet");
  return true;
}

static bool refuse_entries(nxc_binding *binding, const nxc_bound *bound) {
  const nxc_node *list = bound->given && bound->node != NULL ? nxc_node_final(bound->node) : NULL;
  bool any = false;
  for (size_t i = 0; list != NULL && list->kind == NXC_NODE_LIST && i < list->n_children; i++) {
    const nxc_node *entry = nxc_node_final(list->children[i]);
    for (size_t k = 0; entry->kind == NXC_NODE_MAP && k < entry->n_children; k++)
      any = refuse_key(binding, bound->row->name, i, entry->children[k]) || any;
  }
  return any;
}

/* What a section holds is judged key by key. */
static bool is_section_row(const nxc_binding *binding, const nxc_option_row *row) {
  return row->domain.type == NXC_TYPE_MAP && nxc_dialect_has_section(binding->dialect, row->name);
}

static void judge_status(nxc_binding *binding, nxc_bound *bound) {
  const nxc_option_row *row = bound->row;
  if (nxc_option_is_past(row, binding->version)) {
    bound->inactive = true;
    return;
  }
  if (row->read_when != NULL) {
    const nxc_value *read = nxc_binding_evaluate(binding, bound, row->read_when);
    bound->inactive = read ? !nxc_value_is_true(read) : !bound->given;
  }
  if (bound->lacks) return;
  if (bound->inactive) {
    if (bound->given) report_inactive(binding, bound);
    return;
  }
  bool whole = is_refused(binding, bound), entries = refuse_entries(binding, bound);
  bound->refused = whole || entries;
  if (whole) {
    report_refused(binding, bound);
  } else if (bound->given && row->status == NXC_CHECKED && !is_section_row(binding, row)) {
    nxc_report(binding->sink, "NX1403", NXC_SEVERITY_NOTE, bound->at, NULL,
               "%s is checked and otherwise ignored: %s", row->name,
               row->why ? row->why : "it means nothing to nxrun");
  }
}

/* What a wrong value was computed from may be wrong itself: that finding is enough. */
static bool follows_misfit(const nxc_binding *binding, const nxc_misfit_value *misfit) {
  const nxc_derivation *from = misfit->bound->node->derivation;
  for (size_t i = 0; from != NULL && i < from->n_references; i++) {
    for (size_t j = 0; j < binding->n_misfits; j++) {
      if (&binding->misfits[j] != misfit && binding->misfits[j].bound->node == from->references[i].node)
        return true;
    }
  }
  return false;
}

/* Whether the system has a value of its own where the option is left out. */
static bool may_be_left_out(const nxc_binding *binding, const nxc_bound *bound) {
  return bound->row->required == NULL && nxc_option_default(bound->row, binding->version) != NULL;
}

nxc_repair nxc_misfit_repair(nxc_arena *arena, const nxc_node *node, const nxc_verdict *verdict) {
  if (node->derivation != NULL || node->target != NULL) return (nxc_repair){0};
  if (verdict->unwraps) return nxc_repair_unwrap(arena, node, verdict->certain);
  if (verdict->item > 0 && verdict->item <= node->n_children) node = node->children[verdict->item - 1];
  if (verdict->written == NULL) return (nxc_repair){0};
  bool word = verdict->misfit == NXC_NOT_A_WORD;
  return (word ? nxc_repair_text : nxc_repair_value)(arena, node, verdict->written, verdict->certain);
}

/* A value that nobody can guess goes where there is a default. */
static nxc_repair repair_misfit(nxc_binding *binding, const nxc_misfit_value *misfit) {
  const nxc_node *node = misfit->bound->node;
  bool here = node->derivation == NULL && node->target == NULL;
  if (misfit->verdict.written != NULL || misfit->verdict.unwraps || !here)
    return nxc_misfit_repair(binding->arena, node, &misfit->verdict);
  if (may_be_left_out(binding, misfit->bound)) return nxc_repair_remove(binding->arena, node, false);
  const char *usual = nxc_binding_usual(binding, misfit->bound->row);
  return usual ? nxc_repair_value(binding->arena, node, usual, false) : (nxc_repair){0};
}

/* What to do, and what the repair does where the verdict knows none. */
static const char *advise_misfit(const nxc_binding *binding, const nxc_misfit_value *misfit) {
  const nxc_verdict *verdict = &misfit->verdict;
  const char *fix = nxc_misfit_fix(verdict);
  bool known = verdict->written != NULL || verdict->unwraps || verdict->misfit == NXC_NOT_NULLABLE;
  const char *usual = nxc_binding_usual(binding, misfit->bound->row);
  if (verdict->written != NULL || verdict->unwraps) return fix;
  if (may_be_left_out(binding, misfit->bound))
    return known ? fix : nxc_arena_printf(binding->arena, "%s, or leave it out", fix);
  return usual ? nxc_arena_printf(binding->arena, "give it a value, such as %s", usual) : fix;
}

/* "model.activation must be one of swiglu, gelu (it is swiglo)"; what the real system never looks at is worth
 * a warning only. */
static void report_misfit(nxc_binding *binding, const nxc_misfit_value *misfit) {
  nxc_arena *arena = binding->arena;
  const nxc_value *value = misfit->value;
  bool is_short = !misfit->bound->secret && value->kind != NXC_LIST && value->kind != NXC_MAP &&
                  value->kind != NXC_NULL && value->kind != NXC_MISSING;
  const char *shown = is_short ? nxc_arena_printf(arena, " (it is %s)", nxc_value_show(arena, value)) : "";
  bool relative = binding->relative != NULL && misfit->verdict.misfit == NXC_NOT_A_WORD &&
                  !misfit->verdict.certain; /* it may have words of its own */
  bool bounds = misfit->verdict.misfit == NXC_OUT_OF_BOUNDS; /* which only what reads the value may check */
  bool other = binding->program != NULL && binding->program->use == NXC_PROGRAM_SHARES; /* or nothing does */
  bool unseen =
      relative || (bounds && other) || (misfit->bound->inactive && (bounds || !binding->checks_all));
  const char *unread = misfit->bound->inactive ? "; it is not read here" : "";
  const nxc_node *node = misfit->bound->node;
  const char *fix = advise_misfit(binding, misfit);
  if (follows_misfit(binding, misfit)) return;
  if (node->derivation != NULL && value->kind == NXC_STRING && misfit->verdict.misfit == NXC_WRONG_TYPE)
    fix = "write ${oc.decode:...} around the interpolation to read its text as a number or a boolean";
  const nxc_remark remark = {{0}, misfit->bound->row->doc};
  nxc_sink_report(
      binding->sink,
      &(nxc_finding){.id = nxc_misfit_id(misfit->verdict.misfit),
                     .at = misfit->at,
                     .fix = fix,
                     .repair = bounds && unseen ? (nxc_repair){0} : repair_misfit(binding, misfit),
                     .severity = unseen ? NXC_SEVERITY_WARNING : NXC_SEVERITY_ERROR,
                     .message = nxc_arena_printf(arena, "%s %s%s%s", misfit->name, misfit->verdict.problem,
                                                 shown, unread),
                     .remarks = &remark,
                     .n_remarks = remark.text != NULL});
}

/* -- settings -------------------------------------------------------------------------------------------- */

static void warn_of_clash(nxc_binding *binding, const nxc_bound *bound, nxc_setting_id id,
                          const nxc_value *value) {
  const nxc_provenance *from = nxc_settings_from(binding->settings, id);
  bool clash = bound->given && from->kind == bound->kind && from->option &&
               strcmp(from->option, bound->row->name) != 0;
  if (!clash || nxc_value_equal(from->value, value)) return;
  const nxc_remark remark = {from->at, nxc_arena_printf(binding->arena, "%s is given too", from->option)};
  nxc_sink_report(
      binding->sink,
      &(nxc_finding){.id = "NX1317",
                     .severity = NXC_SEVERITY_WARNING,
                     .at = bound->at,
                     .fix = "keep one of them",
                     .remarks = &remark,
                     .n_remarks = 1,
                     .message = nxc_arena_printf(
                         binding->arena, "%s and %s both say what %s is, and differ; %s counts", from->option,
                         bound->row->name, nxc_setting_path(id), bound->row->name)});
}

/* False: the value is not known yet. */
static bool assign(nxc_binding *binding, const nxc_bound *bound, const nxc_assignment *assignment) {
  const nxc_value *value = nxc_binding_evaluate(binding, bound, assignment->expression);
  if (value == NULL) return false;
  if (value->kind == NXC_NULL && !nxc_setting_rows[assignment->setting].domain.nullable) return true;
  warn_of_clash(binding, bound, assignment->setting, value);
  nxc_provenance from = {
      .kind = bound->kind, .at = bound->at, .option = bound->row->name, .redacted = bound->secret};
  from.interpolated = bound->node != NULL && bound->node->derivation != NULL;
  nxc_settings_set(binding->settings, assignment->setting, value, &from, binding->sink);
  return true;
}

static bool is_open(const nxc_binding *binding) {
  return binding->partial && !binding->assumes_defaults;
}

/* Whether it needs an option that is given with a value that it cannot have. */
static bool follows_misfits(const nxc_binding *binding, const char *text) {
  const nxc_expression *expression = nxc_expression_of(binding->arena, text);
  for (size_t i = 0; i < expression->n_names; i++)
    for (size_t j = 0; expression->names[i].kind == NXC_NAME_OPTION && j < binding->n_misfits; j++)
      if (strcmp(binding->misfits[j].bound->row->name, expression->names[i].path) == 0) return true;
  return false;
}

/* What an option says together with a value that does not fit is unknown; of a part, what it says together
 * with an option that another text may give. */
static void forget_untold(nxc_binding *binding, const nxc_bound *bound, const nxc_assignment *assignment) {
  nxc_setting_id id = assignment->setting;
  bool open = is_open(binding) || follows_misfits(binding, assignment->expression);
  if (open && nxc_settings_from(binding->settings, id)->kind == NXC_FROM_DEFAULT)
    nxc_settings_forget(binding->settings, id, bound->row->name, bound->at);
}

/* Assignments may read settings that others make, so those that came too early are tried again. */
static void set_all(nxc_binding *binding, const nxc_bound **bounds, size_t n_bounds) {
  bool **done = nxc_arena_array(binding->arena, n_bounds + 1, sizeof *done);
  for (size_t i = 0; i < n_bounds; i++)
    done[i] = nxc_arena_array(binding->arena, bounds[i]->row->n_sets, sizeof **done);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < n_bounds; i++) {
      for (size_t j = 0; j < bounds[i]->row->n_sets; j++) {
        if (done[i][j] || !assign(binding, bounds[i], &bounds[i]->row->sets[j])) continue;
        done[i][j] = progress = true;
      }
    }
  }
  for (size_t i = 0; i < n_bounds; i++)
    for (size_t j = 0; j < bounds[i]->row->n_sets; j++)
      if (!done[i][j]) forget_untold(binding, bounds[i], &bounds[i]->row->sets[j]);
}

/* What an option with a wrong value would have set is unknown: its default would only lead to further
 * findings. */
static void forget(nxc_binding *binding, const nxc_bound *bound) {
  for (size_t i = 0; i < bound->row->n_sets; i++) {
    nxc_settings_forget(binding->settings, bound->row->sets[i].setting, bound->row->name, bound->at);
  }
}

/* Those that the version has, or those that it has not: what it has counts. */
static void collect(nxc_binding *binding, nxc_bound *bounds, size_t n_bounds, bool of_version,
                    const nxc_bound **kept, size_t *n_kept) {
  for (size_t i = 0; i < n_bounds; i++) {
    const nxc_bound *bound = &bounds[i];
    if (nxc_in_version(bound->row->versions, bound->row->n_versions, binding->version) != of_version)
      continue;
    bool open = bound->given || bound->lacks || is_open(binding);
    if (open && bound->value == NULL && !bound->inactive) forget(binding, bound);
    if (bound->value != NULL && !bound->inactive && bound->row->n_sets > 0) kept[(*n_kept)++] = bound;
  }
}

/* In a part of a configuration what is not given may be anything. */
static void forget_defaults(nxc_binding *binding) {
  for (size_t i = 0; i < binding->dialect->n_options; i++)
    if (!binding->options[i].given) binding->options[i].value = NULL;
}

static bool sets(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < dialect->n_options; i++)
    for (size_t j = 0; j < dialect->options[i].n_sets; j++)
      if (dialect->options[i].sets[j].setting == id) return true;
  return false;
}

static bool reads_model(const nxc_binding *binding) {
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    if (bound->row->names != NULL && strcmp(bound->row->names, "model") == 0 && !bound->inactive) return true;
  }
  return false;
}

/* What only a config.json says is unknown, and not at our default, where the system reads one and it is not
 * here. */
static void forget_model(nxc_binding *binding) {
  if (binding->has_model_config || !reads_model(binding)) return;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++)
    if (nxc_settings_from(binding->settings, id)->kind == NXC_FROM_DEFAULT &&
        (sets(binding->model_dialect, id) || nxc_families_set(id)))
      nxc_settings_clear(binding->settings, id);
}

/* A config.json of a family that is not known here. */
static void refuse_family(nxc_binding *binding) {
  nxc_bound *type = nxc_binding_family_key(binding);
  bool named = type->given && type->value != NULL && type->value->kind == NXC_STRING && !binding->one_family;
  if (!named || type->refused) return;
  type->refused = true;
  report_refused(binding, type);
}

void nxc_binding_apply(nxc_binding *binding) {
  if (is_open(binding)) forget_defaults(binding);
  size_t n_options = binding->dialect->n_options, n_kept = 0;
  size_t n_model = binding->has_model_config ? binding->model_dialect->n_options : 0;
  const nxc_family *family = nxc_binding_read_family(binding);
  for (size_t i = 0; i < n_options; i++) judge_status(binding, &binding->options[i]);
  for (size_t i = 0; i < n_model; i++) judge_status(binding, &binding->model_options[i]);
  if (n_model > 0 && family == NULL) refuse_family(binding);
  for (size_t i = 0; i < binding->n_misfits; i++) report_misfit(binding, &binding->misfits[i]);
  nxc_binding_check_required(binding);
  const nxc_bound **kept = nxc_arena_array(binding->arena, n_options + n_model + 2, sizeof *kept);
  collect(binding, binding->model_options, n_model, true, kept, &n_kept);
  if (family != NULL) kept[n_kept++] = nxc_binding_family_option(binding, family);
  collect(binding, binding->options, n_options, false, kept, &n_kept);
  collect(binding, binding->options, n_options, true, kept, &n_kept);
  set_all(binding, kept, n_kept);
  forget_model(binding);
}
