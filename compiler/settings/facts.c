/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/facts.h"

#include <string.h>

static void add(nxc_facts *facts, const char *label, const char *text) {
  if (text == NULL || *text == '\0') return;
  facts->items = nxc_arena_grow(facts->arena, facts->items, facts->n_items, sizeof *facts->items);
  facts->items[facts->n_items++] = (nxc_fact){label, text};
}

static const char *show_default(nxc_arena *arena, const nxc_value *value) {
  if (value->kind == NXC_NULL) return "none";
  return value->kind == NXC_STRING && *value->text == '\0' ? "the empty text" : nxc_value_show(arena, value);
}

static void add_domain(nxc_facts *facts, const nxc_domain *domain, const char *unit) {
  nxc_arena *arena = facts->arena;
  const char *text = nxc_type_name(domain->type);
  for (size_t i = 0; i < domain->n_values; i++)
    text = nxc_arena_printf(arena, "%s%s%s", i ? text : "", i ? ", " : "one of: ", domain->values[i]);
  if (domain->nullable) text = nxc_arena_printf(arena, "%s, or null", text);
  if (domain->min)
    text = nxc_arena_printf(arena, "%s, at least %s", text, nxc_value_show(arena, domain->min));
  if (domain->max) text = nxc_arena_printf(arena, "%s, at most %s", text, nxc_value_show(arena, domain->max));
  if (domain->above)
    text = nxc_arena_printf(arena, "%s, greater than %s", text, nxc_value_show(arena, domain->above));
  if (unit) text = nxc_arena_printf(arena, "%s (%s)", text, unit);
  add(facts, "takes", text);
}

/* "exponential; 1-sqrt in 0.11" */
static void add_default(nxc_facts *facts, const nxc_option_row *row) {
  nxc_arena *arena = facts->arena;
  const char *text = row->initial ? show_default(arena, row->initial) : "";
  for (size_t i = 0; i < row->n_defaults_in; i++) {
    const nxc_versioned *other = &row->defaults_in[i];
    text = nxc_arena_printf(arena, "%s%s%s in %s", text, *text ? "; " : "", show_default(arena, other->value),
                            nxc_versions_show(arena, other->versions, other->n_versions));
  }
  add(facts, "default", text);
}

static void add_versions(nxc_facts *facts, const nxc_option_row *row) {
  const char *words = "";
  add(facts, "in versions", nxc_versions_show(facts->arena, row->versions, row->n_versions));
  add(facts, "in the others", row->became);
  for (size_t i = 0; i < row->n_words_in; i++) {
    const nxc_versioned *kept = &row->words_in[i];
    words = nxc_arena_printf(facts->arena, "%s%s%s in %s", words, i ? "; " : "", kept->value->text,
                             nxc_versions_show(facts->arena, kept->versions, kept->n_versions));
  }
  add(facts, "only", words);
}

static void add_status(nxc_facts *facts, const nxc_option_row *row) {
  static const char *const statuses[] = {[NXC_EXECUTED] = "executed",
                                         [NXC_CHECKED] = "checked, otherwise ignored by nxrun",
                                         [NXC_REFUSED] = "refused by nxrun"};
  bool why_refused = row->refused_when != NULL && row->status == NXC_EXECUTED;
  const char *status = statuses[row->status];
  if (row->why && !why_refused) status = nxc_arena_printf(facts->arena, "%s: %s", status, row->why);
  add(facts, "status", status);
  add(facts, "not by nxrun where", row->refused_when);
  if (why_refused) add(facts, "because", row->why);
  add(facts, "use instead", row->instead);
}

nxc_facts nxc_option_facts(nxc_arena *arena, const nxc_option_row *row) {
  nxc_facts facts = {.arena = arena};
  add(&facts, "", row->doc);
  add_domain(&facts, &row->domain, NULL);
  add_default(&facts, row);
  if (row->required) add(&facts, "required", strcmp(row->required, "true") ? row->required : "always");
  add(&facts, "read where", row->read_when);
  add_versions(&facts, row);
  add_status(&facts, row);
  for (size_t i = 0; i < row->n_sets; i++) {
    const char *path = nxc_setting_rows[row->sets[i].setting].path;
    add(&facts, "sets", nxc_arena_printf(arena, "%s = %s", path, row->sets[i].expression));
  }
  bool written = row->from == NULL || strcmp(row->from, "unknown") != 0;
  if (row->from != NULL) add(&facts, "convert writes", written ? row->from : "it never");
  for (size_t i = 0; i < row->n_exports; i++)
    add(&facts, "exports",
        nxc_arena_printf(arena, "%s = %s", row->exports[i].name, row->exports[i].expression));
  if (row->changes != NXC_CHANGES_SETTINGS)
    add(&facts, "another value", nxc_changes_name(row->changes));
  return facts;
}

nxc_facts nxc_setting_facts(nxc_arena *arena, nxc_setting_id id) {
  const nxc_setting_row *row = &nxc_setting_rows[id];
  nxc_facts facts = {.arena = arena};
  add(&facts, "", row->doc);
  add_domain(&facts, &row->domain, row->unit);
  if (row->initial) add(&facts, "default", show_default(arena, row->initial));
  add(&facts, "means something where", row->read_when);
  add(&facts, "executed", row->runs);
  add(&facts, "not by nxrun where", row->refused_when);
  if (row->refused_when) add(&facts, "because", row->why);
  if (row->refused_when) add(&facts, "use instead", row->instead);
  if (row->needed) add(&facts, "", "A plan cannot be made without it.");
  if (!row->meaning) add(&facts, "", "It does not count for plan_id.");
  add(&facts, "another value between runs", nxc_changes_name(row->changes));
  return facts;
}
