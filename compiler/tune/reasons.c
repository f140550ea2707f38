/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/reasons.h"

#include "compiler/expression/expression.h"

#include <stdlib.h>
#include <string.h>

enum { ALIKE = 2 }; /* layouts that a rule refuses before it is believed to refuse what is like them */

typedef unsigned knobs; /* a bit of each */

/* Values of some knobs that rules refuse, one each way of saying them. */
typedef struct refused {
  nxc_refusal by;
  nxc_choice choice;
  knobs hangs_on;
  size_t reason, n_seen, since; /* the list in which it was believed */
} refused;

struct nxc_reasons {
  nxc_arena *arena;
  const nxc_space *space;
  const nxc_compiled *compiled;
  knobs *of_setting, *of_option; /* which knobs change it; NULL: not looked at yet */
  refused *refused;
  nxc_reason *list;
  size_t n_refused, n_list, lists;
};

nxc_reasons *nxc_reasons_new(nxc_arena *arena, const nxc_space *space, const nxc_compiled *compiled) {
  nxc_reasons *r = nxc_arena_alloc(arena, sizeof *r);
  *r = (nxc_reasons){.arena = arena, .space = space, .compiled = compiled};
  return r;
}

/* ---- what hangs on which knobs ---- */

static knobs of_names(const nxc_reasons *r, const char *text) {
  const nxc_expression *expression = nxc_expression_of(r->arena, text);
  const nxc_dialect *dialect = r->compiled->dialect;
  knobs all = 0;
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++) {
    const nxc_name *name = &expression->names[i];
    const nxc_option_row *row =
        name->kind == NXC_NAME_OPTION ? nxc_option_find(dialect, name->path) : NULL;
    nxc_setting_id id = name->kind == NXC_NAME_SETTING ? nxc_setting_find(name->path) : NX_N_SETTINGS;
    if (row != NULL) all |= r->of_option[row - dialect->options];
    if (id < NX_N_SETTINGS) all |= r->of_setting[id];
  }
  return all;
}

/* Settings that a knob gives another value itself, and options that are written anew for it. */
static void find_changed(nxc_reasons *r) {
  for (int knob = 0; knob < NXC_N_KNOBS; knob++)
    for (size_t place = 1; place < r->space->n_values[knob]; place++) {
      bool changed[NX_N_SETTINGS] = {false};
      nxc_choice choice = {{0}};
      choice.at[knob] = (uint16_t)place;
      nxc_choice_set(r->space, &choice, nxc_settings_copy(r->arena, r->compiled->settings), changed);
      for (size_t id = 0; id < NX_N_SETTINGS; id++)
        if (changed[id]) r->of_setting[id] |= 1U << knob;
    }
}

static bool join(knobs *to, knobs more) {
  bool grows = (*to | more) != *to;
  *to |= more;
  return grows;
}

static bool follow_options(nxc_reasons *r) {
  const nxc_dialect *dialect = r->compiled->dialect;
  bool grows = false;
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    knobs *own = &r->of_option[i];
    grows |= join(own, of_names(r, row->from));
    for (size_t k = 0; k < row->n_sets; k++) {
      grows |= join(own, r->of_setting[row->sets[k].setting]);
      grows |= join(&r->of_setting[row->sets[k].setting], *own | of_names(r, row->sets[k].expression));
    }
  }
  return grows;
}

static bool follow_rules(nxc_reasons *r) {
  bool grows = false;
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool applies = rule->dialect == NULL || strcmp(rule->dialect, r->compiled->dialect->name) == 0;
    if (rule->derive == NULL || !applies) continue;
    grows |= join(&r->of_setting[rule->derives], of_names(r, rule->when) | of_names(r, rule->derive));
  }
  return grows;
}

static knobs hangs_on(nxc_reasons *r, const nxc_rule_row *rule) {
  if (r->of_setting == NULL) {
    r->of_setting = nxc_arena_array(r->arena, NX_N_SETTINGS, sizeof *r->of_setting);
    r->of_option = nxc_arena_array(r->arena, r->compiled->dialect->n_options, sizeof *r->of_option);
    find_changed(r);
    for (bool grows = true; grows;) {
      grows = follow_options(r);
      grows = follow_rules(r) || grows;
    }
  }
  return of_names(r, rule->when) | of_names(r, rule->require);
}

static knobs all_hang_on(nxc_reasons *r, const nxc_refusal *refusal) {
  knobs all = 0;
  for (size_t i = 0; i < refusal->n_rules; i++) all |= hangs_on(r, refusal->rules[i]);
  return all;
}

/* ---- reasons ---- */

/* Those without an id are told apart by what they say. */
static size_t reason_of(nxc_reasons *r, const nxc_refusal *refusal) {
  for (size_t i = 0; i < r->n_list; i++) {
    const nxc_reason *one = &r->list[i];
    bool named = one->id != NULL && refusal->id != NULL;
    if (named ? strcmp(one->id, refusal->id) == 0 : strcmp(one->message, refusal->message) == 0) return i;
  }
  r->list = nxc_arena_grow(r->arena, r->list, r->n_list, sizeof *r->list);
  r->list[r->n_list] = (nxc_reason){.message = nxc_arena_strdup(r->arena, refusal->message)};
  if (refusal->id != NULL) r->list[r->n_list].id = nxc_arena_strdup(r->arena, refusal->id);
  if (refusal->remedy != NULL) r->list[r->n_list].remedy = nxc_arena_strdup(r->arena, refusal->remedy);
  return r->n_list++;
}

static bool has_rules(const nxc_refusal *a, const nxc_refusal *b) {
  return a->n_rules == b->n_rules && memcmp(a->rules, b->rules, a->n_rules * sizeof *a->rules) == 0;
}

static bool is_like(const refused *known, const nxc_choice *choice) {
  for (int knob = 0; knob < NXC_N_KNOBS; knob++)
    if ((known->hangs_on >> knob & 1) != 0 && known->choice.at[knob] != choice->at[knob]) return false;
  return true;
}

void nxc_reasons_add(nxc_reasons *r, const nxc_choice *choice, const nxc_refusal *refusal) {
  size_t reason = reason_of(r, refusal);
  r->list[reason].n_layouts++;
  if (refusal->n_rules == 0) return;
  for (size_t i = 0; i < r->n_refused; i++)
    if (has_rules(&r->refused[i].by, refusal) && is_like(&r->refused[i], choice)) {
      if (++r->refused[i].n_seen == ALIKE) r->refused[i].since = r->lists;
      return;
    }
  r->refused = nxc_arena_grow(r->arena, r->refused, r->n_refused, sizeof *r->refused);
  r->refused[r->n_refused++] = (refused){*refusal, *choice, all_hang_on(r, refusal), reason, 1, 0};
}

/* What an earlier list has left out for a reason was counted then. */
bool nxc_reasons_refuse(nxc_reasons *r, const nxc_choice *choice) {
  const refused *oldest = NULL;
  for (size_t i = 0; i < r->n_refused; i++) {
    const refused *one = &r->refused[i];
    if (one->n_seen < ALIKE || !is_like(one, choice)) continue;
    if (oldest == NULL || one->since < oldest->since) oldest = one;
  }
  if (oldest != NULL && oldest->since + 1 >= r->lists) r->list[oldest->reason].n_layouts++;
  return oldest != NULL;
}

void nxc_reasons_list_again(nxc_reasons *r) {
  r->lists++;
}

static int compare_reasons(const void *a, const void *b) {
  size_t x = ((const nxc_reason *)a)->n_layouts, y = ((const nxc_reason *)b)->n_layouts;
  return (x < y) - (x > y);
}

size_t nxc_reasons_list(nxc_reasons *r, const nxc_reason **list) {
  if (r->n_list > 1) qsort(r->list, r->n_list, sizeof *r->list, compare_reasons);
  *list = r->list;
  return r->n_list;
}
