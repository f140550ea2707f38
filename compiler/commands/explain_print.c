/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/explain.h"
#include "compiler/expression/expression.h"
#include "compiler/render/screen.h"
#include "compiler/settings/catalogue.h"
#include "compiler/settings/facts.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 4 };

/* A paragraph of words. */
void nxc_explain_paragraph(const char *label, const char *text) {
  char indented[120];
  snprintf(indented, sizeof indented, "  %s", label);
  nxc_print_paragraph(stdout, INDENT, indented, text);
}

/* What the system decides itself, where no option of it says it. */
static void print_fixed(nxc_arena *arena, const nxc_dialect *dialect, const nxc_fixed_row *fixed,
                        bool always) {
  static const char *const words[] = {
      [NXC_FIXED] = "fixed", [NXC_ABSENT] = "no such thing", [NXC_UNTOLD] = "unknown"};
  const char *reason = fixed->kind == NXC_FIXED ? fixed->source : fixed->why;
  const char *text = nxc_arena_printf(arena, "%s in %s%s", words[fixed->kind], dialect->name,
                                      always ? "" : " where none of these is given");
  if (fixed->kind == NXC_FIXED) text = nxc_arena_printf(arena, "%s: %s", text, fixed->value);
  nxc_explain_paragraph("", reason ? nxc_arena_printf(arena, "%s (%s)", text, reason) : text);
}

static void print_facts(const nxc_facts *facts) {
  for (size_t i = 0; i < facts->n_items; i++) {
    const nxc_fact *fact = &facts->items[i];
    const char *joint = strcmp(fact->label, "because") == 0 ? " " : ": ";
    const char *label = *fact->label ? nxc_arena_printf(facts->arena, "%s%s", fact->label, joint) : "";
    nxc_explain_paragraph(label, fact->text);
  }
}

static bool mentions(nxc_arena *arena, const char *text, nxc_name_kind kind, const char *path) {
  const nxc_expression *expression = nxc_expression_of(arena, text);
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++) {
    if (expression->names[i].kind == kind && strcmp(expression->names[i].path, path) == 0) return true;
  }
  return false;
}

static void print_rules_of(nxc_arena *arena, const char *dialect, nxc_name_kind kind, const char *path) {
  const char *ids = "", *deriving = "";
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    if (kind == NXC_NAME_OPTION && (rule->dialect == NULL || strcmp(rule->dialect, dialect) != 0)) continue;
    bool target = kind == NXC_NAME_SETTING && rule->derives < NX_N_SETTINGS &&
                  strcmp(nxc_setting_rows[rule->derives].path, path) == 0;
    if (target)
      deriving =
          nxc_arena_printf(arena, "%s%s%s = %s", deriving, *deriving ? "; " : "", rule->id, rule->derive);
    bool used = mentions(arena, rule->when, kind, path) || mentions(arena, rule->require, kind, path) ||
                mentions(arena, rule->derive, kind, path);
    if (used) ids = nxc_arena_printf(arena, "%s%s%s", ids, *ids ? ", " : "", rule->id);
  }
  nxc_explain_paragraph("derived by: ", deriving);
  nxc_explain_paragraph("rules that read it: ", ids);
}

/* The options that set it, parted by commas. */
static const char *options_of(nxc_arena *arena, const nxc_dialect *dialect, nxc_setting_id id) {
  const char *names = "";
  for (size_t i = 0; i < dialect->n_options && strcmp(dialect->name, "nx") != 0; i++) {
    for (size_t k = 0; k < dialect->options[i].n_sets; k++) {
      if (dialect->options[i].sets[k].setting != id) continue;
      names = nxc_arena_printf(arena, "%s%s%s", names, *names ? ", " : "", dialect->options[i].name);
      break;
    }
  }
  return names;
}

static void print_systems(nxc_arena *arena, nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    const char *names = options_of(arena, dialect, id);
    const nxc_fixed_row *fixed = nxc_fixed_find(dialect, id);
    nxc_explain_paragraph(nxc_arena_printf(arena, "set in %s by: ", dialect->name), names);
    if (fixed != NULL) print_fixed(arena, dialect, fixed, *names == '\0');
  }
}

void nxc_explain_setting(nxc_arena *arena, nxc_setting_id id) {
  const char *path = nxc_setting_rows[id].path;
  const nxc_facts facts = nxc_setting_facts(arena, id);
  printf("%s: setting\n", path);
  print_facts(&facts);
  print_systems(arena, id);
  print_rules_of(arena, NULL, NXC_NAME_SETTING, path);
}

void nxc_explain_option(nxc_arena *arena, const nxc_dialect *dialect, const nxc_option_row *row) {
  printf("%s: option of %s\n", row->name, dialect->name);
  if (row->alias_of != NULL) {
    nxc_explain_paragraph("another name of: ", row->alias_of);
    nxc_explain_option(arena, dialect, nxc_option_find(dialect, row->alias_of));
    return;
  }
  const nxc_facts facts = nxc_option_facts(arena, row);
  print_facts(&facts);
  print_rules_of(arena, dialect->name, NXC_NAME_OPTION, row->name);
  nxc_explain_paragraph("source: ", row->source);
}

bool nxc_explain_searches(const nxc_explain_search *s, const nxc_dialect *dialect) {
  return s->only ? strcmp(s->only, dialect->name) == 0 : strcmp(dialect->name, "nx") != 0;
}

void nxc_explain_separate(nxc_explain_search *s) {
  if (s->n_found++ > 0) putchar('\n');
}
