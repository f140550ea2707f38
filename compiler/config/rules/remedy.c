/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/remedy.h"
#include "compiler/config/rules/rule_inputs.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STEPS_MAX = 1024, DERIVED_MAX = 64, DEPTH_MAX = 8, OPTIONS_MAX = 16 };

/* -- what settings would be ------------------------------------------------------------------------------ */

/* One option with another value, or left out. */
typedef struct trial {
  nxc_rule_run *run;
  nxc_scope base;
  const nxc_bound *bound;
  const nxc_value *value;
  const nxc_value *current; /* what `value` means in the expression that is evaluated */
  bool given;
  unsigned depth;
  struct {
    nxc_setting_id id;
    const nxc_value *value;
  } known[DERIVED_MAX]; /* what has been found out of it */
  size_t n_known;
} trial;

static const nxc_value *evaluate(trial *t, const char *text);

/* What an option assigns to a setting, under the change. */
static const nxc_value *assign(trial *t, const nxc_bound *bound, nxc_setting_id id, const nxc_value *was) {
  const nxc_option_row *row = bound->row;
  for (size_t i = 0; i < row->n_sets; i++) {
    if (row->sets[i].setting != id) continue;
    const nxc_value *outer = t->current;
    t->current = bound == t->bound ? t->value : bound->value;
    const nxc_value *value = evaluate(t, row->sets[i].expression);
    t->current = outer;
    return value != NULL || bound == t->bound ? value : was;
  }
  return was;
}

/* What the option assigns to a setting that it gave; what the rule derives that gave it; else what it is. */
static const nxc_value *follow(trial *t, nxc_setting_id id, const nxc_value *was) {
  const nxc_provenance *from = nxc_settings_from(t->run->settings, id);
  if (t->depth > DEPTH_MAX) return was;
  const nxc_bound *bound = from->option != NULL ? nxc_binding_find(t->run->binding, from->option) : NULL;
  if (bound != NULL) return assign(t, bound, id, was);
  const nxc_rule_row *rule =
      from->kind == NXC_FROM_RULE && from->origin != NULL ? nxc_rule_find(from->origin) : NULL;
  if (rule == NULL || rule->derive == NULL || rule->derives != id) return was;
  const nxc_value *derived = evaluate(t, rule->derive);
  return derived ? derived : was;
}

static const nxc_value *look_up(void *context, const nxc_name *name) {
  trial *t = context;
  if (name->kind == NXC_NAME_VALUE) return t->current;
  if (name->kind == NXC_NAME_OPTION && nxc_binding_find(t->run->binding, name->path) == t->bound)
    return t->value;
  const nxc_value *was = t->base.lookup(t->base.context, name);
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  if (id == NX_N_SETTINGS) return was;
  for (size_t i = 0; i < t->n_known; i++)
    if (t->known[i].id == id) return t->known[i].value;
  t->depth++;
  const nxc_value *value = follow(t, id, was);
  t->depth--;
  if (t->n_known < DERIVED_MAX) {
    t->known[t->n_known].id = id;
    t->known[t->n_known++].value = value;
  }
  return value;
}

static bool is_given(void *context, const nxc_name *name) {
  const trial *t = context;
  bool own = name->kind == NXC_NAME_VALUE ||
             (name->kind == NXC_NAME_OPTION && nxc_binding_find(t->run->binding, name->path) == t->bound);
  return own ? t->given : t->base.given(t->base.context, name);
}

static const nxc_value *evaluate(trial *t, const char *text) {
  if (strcmp(text, "value") == 0) return t->current;
  nxc_scope scope = {.lookup = look_up, .given = is_given, .context = t, .partial = t->base.partial};
  const char *error;
  return nxc_expression_evaluate(t->run->arena, nxc_expression_of(t->run->arena, text), &scope, &error);
}

/* -- rules ----------------------------------------------------------------------------------------------- */

typedef enum outcome { BROKEN, UNKNOWN, HOLDS } outcome;

static outcome judge(trial *t, const nxc_rule_row *rule) {
  const nxc_value *when = rule->when ? evaluate(t, rule->when) : NULL;
  if (rule->when != NULL && when == NULL) return UNKNOWN;
  if (when != NULL && !nxc_value_is_true(when)) return HOLDS;
  const nxc_value *value = evaluate(t, rule->require);
  return value == NULL ? UNKNOWN : nxc_value_is_true(value) ? HOLDS : BROKEN;
}

static trial trial_of(nxc_rule_run *run, const nxc_bound *bound, const nxc_value *value, bool given) {
  return (trial){
      .run = run, .base = nxc_binding_scope(run->binding), .bound = bound, .value = value, .given = given};
}

/* The rules that one option has to do with, and whether they are broken as it is. */
typedef struct concern {
  const nxc_rule_row *rule;
  bool broken;
} concern;

/* Those whose outcome follows the option: one that is unknown without it hangs on it. */
static size_t concerns_of(nxc_rule_run *run, const nxc_bound *bound, concern *concerns) {
  size_t n = 0;
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    if (rule->require == NULL || rule->severity < NXC_SEVERITY_ERROR || !nxc_rule_applies(run, rule))
      continue;
    trial without = trial_of(run, bound, NULL, false);
    trial as_it_is = trial_of(run, bound, bound->value, bound->given);
    outcome now = judge(&as_it_is, rule);
    if (now != judge(&without, rule)) concerns[n++] = (concern){rule, now == BROKEN};
  }
  return n;
}

/* -- changes --------------------------------------------------------------------------------------------- */

typedef struct change {
  const nxc_bound *bound;
  const nxc_value *value; /* NULL: left out */
  double size;            /* relative; more for each other broken rule about it that stays so */
} change;

typedef struct search {
  nxc_rule_run *run;
  const nxc_rule_row *rule;
  const char *said;  /* the rule's own remedy, filled in */
  concern *concerns; /* of the option that is tried */
  size_t n_concerns;
  bool has_concerns;
  bool names_some; /* the remedy names options that are given */
  change best;
} search;

static bool is_better(const search *s, const change *one) {
  return s->best.bound == NULL || one->size < s->best.size;
}

/* What there is to run on is a circumstance: rather the file is made to fit it. */
static bool changes_ranks(trial *t) {
  const nxc_value *was = nxc_settings_value(t->run->settings, NX_SETTING_MESH_WORLD);
  const nxc_value *now =
      look_up(t, &(nxc_name){.kind = NXC_NAME_SETTING, .path = nxc_setting_path(NX_SETTING_MESH_WORLD)});
  return was != NULL && (now == NULL || !nxc_value_equal(was, now));
}

static bool is_name_byte(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

bool nxc_remedy_says(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *at = text; n > 0 && (at = strstr(at, word)) != NULL; at++) {
    bool stop = at[n] == '.' && !is_name_byte(at[n + 1]);
    bool begins = at == text || !is_name_byte(at[-1]) || (at - text >= 2 && at[-1] == '-' && at[-2] == '-');
    if (begins && (stop || !is_name_byte(at[n]))) return true;
  }
  return false;
}

/* What the rule's own remedy speaks of is likelier meant than anything else. */
static bool is_named(const char *said, const nxc_bound *bound) {
  return nxc_remedy_says(said, bound->row->name) || nxc_remedy_says(said, nxc_name_last(bound->row->name));
}

/* Rather the layout is another one than the model. */
static bool changes_model(const nxc_bound *bound) {
  for (size_t i = 0; i < bound->row->n_sets; i++)
    if (strncmp(nxc_setting_path(bound->row->sets[i].setting), "model.", 6) == 0) return true;
  return false;
}

static const char *shown(nxc_arena *arena, const nxc_value *value) {
  return value->kind == NXC_STRING ? value->text : nxc_value_show(arena, value);
}

static double weigh(const search *s, const nxc_bound *bound, const nxc_value *value, double size) {
  bool named = is_named(s->said, bound);
  const char *text = value ? shown(s->run->arena, value) : NULL;
  if (text != NULL && value->kind == NXC_INT) { /* none of which it is a divisor, or a multiple */
    const char *to = nxc_arena_printf(s->run->arena, "to %s", text);
    const char *such = nxc_arena_printf(s->run->arena, "such as %s", text);
    if (nxc_remedy_says(s->said, to) || nxc_remedy_says(s->said, such)) size *= 0.01;
  } else if (text != NULL && value->kind != NXC_BOOL && nxc_remedy_says(s->said, text)) {
    size *= 0.01;
  }
  if (changes_model(bound)) size += 0.7;
  return named ? 0.8 * size : size;
}

/* Keeps the change where the rule holds then, and nothing that held before is broken. */
static void consider(search *s, const nxc_bound *bound, const nxc_value *value, double size) {
  change one = {bound, value, weigh(s, bound, value, size)};
  const nxc_value *then = value ? value : nxc_option_default(bound->row, s->run->binding->version);
  trial t = trial_of(s->run, bound, then, value != NULL);
  if (judge(&t, s->rule) != HOLDS) return;
  if (changes_ranks(&t)) one.size += 1;
  if (!is_better(s, &one)) return;
  if (!s->has_concerns) s->n_concerns = concerns_of(s->run, bound, s->concerns);
  s->has_concerns = true;
  for (size_t i = 0; i < s->n_concerns; i++) {
    if (judge(&t, s->concerns[i].rule) != BROKEN) continue;
    if (!s->concerns[i].broken) return;
    one.size += 0.25;
  }
  if (is_better(s, &one)) s->best = one;
}

static const nxc_value *keep(nxc_arena *arena, nxc_value value) {
  nxc_value *kept = nxc_arena_alloc(arena, sizeof *kept);
  *kept = value;
  return kept;
}

static void consider_fitting(search *s, const nxc_bound *bound, nxc_value value, double size) {
  const nxc_value *kept = keep(s->run->arena, value);
  if (nxc_domain_judge(s->run->arena, &bound->row->domain, kept, false).misfit == NXC_FITS)
    consider(s, bound, kept, size);
}

/* How much of a number is powers of two, from 0 to 1: a round one is rarely the slip. */
static double roundness(int64_t number) {
  unsigned n_zeros = 0;
  if (number < 2) return 0;
  for (int64_t rest = number; rest % 2 == 0; rest /= 2) n_zeros++;
  return n_zeros / log2((double)number);
}

static double relative(int64_t from, int64_t to) {
  double distance = from > 0 && to > 0 ? fabs(log((double)to / (double)from)) : 4 + fabs((double)(to - from));
  return distance + roundness(from);
}

static void try_integer(search *s, const nxc_bound *bound, int64_t from, int64_t to) {
  if (to == from) return;
  consider_fitting(s, bound, (nxc_value){.kind = NXC_INT, .integer = to}, relative(from, to));
}

/* Outward, and what the other inputs are. */
static void try_integers(search *s, const nxc_bound *bound, const nxc_bound *const *others, size_t n_others) {
  int64_t from = bound->value->integer;
  if (bound->value->digits != NULL || from > INT64_MAX / 4 || from < INT64_MIN / 4) return;
  for (int64_t step = 1; step <= STEPS_MAX; step++) {
    bool found = s->best.bound == bound; /* what is further away is no smaller change */
    if (found && 0.5 * relative(from, from + step) > s->best.size) break;
    try_integer(s, bound, from, from - step);
    try_integer(s, bound, from, from + step);
  }
  for (size_t i = 0; i < n_others; i++)
    if (others[i]->value != NULL && others[i]->value->kind == NXC_INT && others[i]->value->digits == NULL)
      try_integer(s, bound, from, others[i]->value->integer);
}

/* Words of its domain, and those that the demand names in quotes. */
static size_t words_of(nxc_arena *arena, const nxc_bound *bound, const char *demand, const char ***words) {
  const nxc_domain *domain = &bound->row->domain;
  size_t n = 0, n_max = domain->n_values + strlen(demand) / 2;
  *words = nxc_arena_array(arena, n_max + 1, sizeof **words);
  for (size_t i = 0; i < domain->n_values; i++) (*words)[n++] = domain->values[i];
  for (const char *open = strchr(demand, '\''); open != NULL && n < n_max;) {
    const char *shut = strchr(open + 1, '\'');
    if (shut == NULL) break;
    (*words)[n++] = nxc_arena_strndup(arena, open + 1, (size_t)(shut - open - 1));
    open = strchr(shut + 1, '\'');
  }
  return n;
}

/* The nearest; a word that is not like any of them may be each. */
static void try_words(search *s, const nxc_bound *bound) {
  const char **words;
  size_t n = words_of(s->run->arena, bound, s->rule->require, &words);
  nxc_near near = nxc_near_find(bound->value->text, words, n);
  for (size_t i = 0; i < n; i++) {
    bool meant = near.name != NULL && strcmp(near.name, words[i]) == 0;
    bool told = i < bound->row->domain.n_values || nxc_remedy_says(s->said, words[i]);
    if (strcmp(words[i], bound->value->text) == 0 || (!meant && !told)) continue;
    consider_fitting(s, bound, (nxc_value){.kind = NXC_STRING, .text = words[i], .n_bytes = strlen(words[i])},
                     meant ? 0.1 : 3 + 0.01 * (double)i);
  }
}

static bool may_be_left_out(const search *s, const nxc_bound *bound) {
  return bound->row->required == NULL && nxc_option_default(bound->row, s->run->binding->version) != NULL;
}

static bool is_demanded(const search *s, const nxc_bound *bound) {
  const nxc_expression *demand = nxc_rule_parse(s->run, s->rule->require);
  for (size_t i = 0; i < demand->n_names; i++) {
    const nxc_name *name = &demand->names[i];
    const char *called = name->kind == NXC_NAME_SETTING ? nxc_rule_name(s->run, name) : name->path;
    if (nxc_binding_find(s->run->binding, called) == bound) return true;
  }
  return false;
}

/* Without a value of the user's: a switch is switched on, another option has the value that the remedy says.
 */
static void try_adding(search *s, const nxc_bound *bound) {
  const char *name = nxc_name_last(bound->row->name), *at = strstr(s->said, name);
  nxc_value value = {.kind = NXC_BOOL, .boolean = true};
  s->has_concerns = false;
  if (bound->row->domain.type != NXC_TYPE_BOOL) {
    at = at ? at + strlen(name) : "";
    at += strncmp(at, " to ", 4) == 0 ? 4 : *at == ' ' || *at == '=';
    const char *word = nxc_arena_strndup(s->run->arena, at, strcspn(at, " ,;"));
    value = *word ? *nxc_scalar_of(s->run->arena, word) : (nxc_value){0};
  }
  if (value.kind != NXC_NULL) consider_fitting(s, bound, value, 1);
}

static void try_option(search *s, const nxc_bound *const *options, size_t n_options, size_t i) {
  const nxc_bound *bound = options[i];
  double later = 0.001 * (double)i; /* of two that are as good the one that the rule names first */
  bool meant = !s->names_some || is_named(s->said, bound);
  s->has_concerns = false;
  if (bound->value->kind == NXC_INT) try_integers(s, bound, options, n_options);
  if (!meant) return;
  if (bound->value->kind == NXC_STRING && is_demanded(s, bound)) try_words(s, bound); /* no mere condition */
  if (bound->value->kind == NXC_BOOL)
    consider_fitting(s, bound, (nxc_value){.kind = NXC_BOOL, .boolean = !bound->value->boolean}, 1 + later);
  for (size_t k = 0; bound->value->kind == NXC_FLOAT && k < n_options; k++)
    if (k != i && options[k]->value->kind == NXC_FLOAT)
      consider_fitting(s, bound, *options[k]->value, 1 + later);
  if (may_be_left_out(s, bound)) consider(s, bound, NULL, 2 + later);
}

/* -- options --------------------------------------------------------------------------------------------- */

typedef struct inputs {
  const nxc_bound *given[OPTIONS_MAX], *lacking[OPTIONS_MAX];
  size_t n_given, n_lacking;
  bool named;     /* the remedy names some of them */
  bool elsewhere; /* one is given where nothing can be edited: there is the slip, as likely as not */
} inputs;

/* In a place of its own. */
static bool can_change(const nxc_bound *bound) {
  return !bound->lacks && !bound->secret && bound->node != NULL && bound->value != NULL &&
         bound->node->derivation == NULL && bound->node->target == NULL;
}

static void add_once(const nxc_bound **options, size_t *n, const nxc_bound *bound) {
  for (size_t i = 0; i < *n; i++)
    if (options[i] == bound) return;
  if (*n < OPTIONS_MAX) options[(*n)++] = bound;
}

static void add_called(const nxc_rule_run *run, const char *called, const char *said, inputs *to) {
  const nxc_bound *bound = nxc_binding_find(run->binding, called);
  if (bound == NULL) return;
  to->named = to->named || (bound->given && is_named(said, bound));
  if (bound->given && (bound->at.source == NULL || !bound->at.source->editable)) to->elsewhere = true;
  else if (bound->given && can_change(bound)) add_once(to->given, &to->n_given, bound);
  else if (!bound->given && !bound->lacks && is_named(said, bound))
    add_once(to->lacking, &to->n_lacking, bound);
}

/* The option of this name; of a setting that a rule derived, each that has a part in it. */
static void add_option(const nxc_rule_run *run, const nxc_name *name, const char *said, inputs *to) {
  if (name->kind == NXC_NAME_MODEL_CONFIG) return;
  nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
  const nxc_provenance *from = id < NX_N_SETTINGS ? nxc_settings_from(run->settings, id) : NULL;
  bool derived = from != NULL && from->kind == NXC_FROM_RULE && from->input_names != NULL;
  bool told = from != NULL && from->kind == NXC_FROM_CLI && id != NX_SETTING_MESH_WORLD;
  to->elsewhere = to->elsewhere || told;
  add_called(run, id < NX_N_SETTINGS ? nxc_rule_name(run, name) : name->path, said, to);
  for (const char *at = derived ? from->input_names : ""; *at != '\0'; at += strspn(at, ", ")) {
    size_t n = strcspn(at, ", ");
    add_called(run, nxc_arena_strndup(run->arena, at, n), said, to);
    at += n;
  }
  for (size_t i = 0; derived && i < from->n_inputs; i++) {
    const nxc_name input = {.kind = NXC_NAME_SETTING, .path = nxc_setting_path(from->inputs[i])};
    add_called(run, nxc_rule_name(run, &input), said, to);
  }
}

/* The one that the finding stands at comes first. */
static inputs inputs_of(nxc_rule_run *run, const nxc_rule_row *rule, const char *said) {
  const nxc_expression *at = nxc_rule_parse(run, rule->at);
  nxc_name *names;
  size_t n_names =
      nxc_rule_inputs(run, nxc_rule_parse(run, rule->require), nxc_rule_parse(run, rule->when), &names);
  inputs to = {0};
  for (size_t i = 0; at != NULL && i < at->n_names; i++) add_option(run, &at->names[i], said, &to);
  for (size_t i = 0; i < n_names; i++) add_option(run, &names[i], said, &to);
  return to;
}

/* Of a command line: it is there, or it is not. */
static bool is_switch(const change *best) {
  const nxc_node *node = best->bound->node;
  return best->value != NULL && best->value->kind == NXC_BOOL && nxc_span_same(node->at, node->key_at);
}

static nxc_repair add(nxc_rule_run *run, const change *best) {
  static const char environment[] = "environment.";
  const nxc_node *root = run->binding->document->root, *section = nxc_rule_section(run, best->bound);
  const char *name = best->bound->row->name, *last = nxc_name_last(name),
             *text = shown(run->arena, best->value);
  if (strncmp(name, environment, sizeof environment - 1) == 0)
    return nxc_repair_export(run->arena, root, last, text);
  bool megatron = strcmp(run->binding->dialect->name, "megatron") == 0;
  bool alone = megatron && best->value->kind == NXC_BOOL;
  return section ? nxc_repair_add(run->arena, section, last, alone ? NULL : text) : (nxc_repair){0};
}

static nxc_repair repair_of(nxc_rule_run *run, const change *best) {
  const nxc_node *node = best->bound->node;
  const nxc_value *value = best->value;
  if (!best->bound->given) return add(run, best);
  if (value == NULL || is_switch(best)) return nxc_repair_remove(run->arena, node, false);
  return (value->kind == NXC_STRING ? nxc_repair_text : nxc_repair_value)(run->arena, node,
                                                                          shown(run->arena, value), false);
}

static nxc_remedy remedy_of(nxc_rule_run *run, const change *best) {
  bool out = best->value == NULL || (best->bound->given && is_switch(best));
  return (nxc_remedy){best->bound, out ? NULL : best->value, repair_of(run, best)};
}

nxc_remedy nxc_rule_remedy(nxc_rule_run *run, const nxc_rule_row *rule, const char *said) {
  if (run->binding == NULL || rule->require == NULL) return (nxc_remedy){0};
  search s = {.run = run,
              .rule = rule,
              .said = said ? said : "",
              .concerns = nxc_arena_array(run->arena, nxc_n_rules, sizeof *s.concerns)};
  const inputs of = inputs_of(run, rule, s.said);
  if (of.elsewhere) return (nxc_remedy){0};
  for (size_t i = 0; i < of.n_lacking; i++) try_adding(&s, of.lacking[i]);
  if (s.best.bound != NULL) return remedy_of(run, &s.best);
  s.names_some = of.named;
  bool lacks = of.n_lacking > 0 && !s.names_some; /* something has to be given, and nobody knows what */
  for (size_t i = 0; i < of.n_given && !lacks; i++) try_option(&s, of.given, of.n_given, i);
  return s.best.bound ? remedy_of(run, &s.best) : (nxc_remedy){0};
}
