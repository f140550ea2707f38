/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/lacks.h"
#include "compiler/config/rules/rule_inputs.h"

#include "compiler/document/repair.h"

#include <string.h>

enum { LACKS_MAX = 16 };

static const char *text_of(nxc_arena *arena, const nxc_value *value) {
  if (value->kind == NXC_STRING) return nxc_arena_printf(arena, "'%s'", value->text);
  return value->kind == NXC_BOOL ? (value->boolean ? "True" : "False") : nxc_value_show(arena, value);
}

static nxc_repair add(nxc_rule_run *run, const nxc_bound *bound) {
  const nxc_node *section = nxc_rule_section(run, bound);
  const char *last = nxc_name_last(bound->row->name), *error;
  const nxc_expression *from = nxc_rule_parse(run, bound->row->from);
  const nxc_value *value = from ? nxc_rule_evaluate(run, from, &error) : NULL;
  bool known = value != NULL && bound->row->domain.type != NXC_TYPE_MAP && value->kind != NXC_LIST;
  if (section == NULL || !known) return (nxc_repair){0};
  return nxc_repair_add(run->arena, section, last, text_of(run->arena, value));
}

/* Lines that come to the same place are one edit. */
static bool take(nxc_arena *arena, const nxc_repair *one, nxc_edit *edits, size_t *n) {
  if (one->n_edits != 1) return false;
  for (size_t i = 0; i < *n; i++)
    if (edits[i].begin == one->edits->begin && edits[i].source == one->edits->source) {
      edits[i].text = nxc_arena_printf(arena, "%s%s", edits[i].text, one->edits->text);
      return true;
    }
  edits[(*n)++] = *one->edits;
  return true;
}

nxc_repair nxc_rule_repair_lacks(nxc_rule_run *run, const nxc_rule_row *rule) {
  if (run->binding == NULL || !run->binding->document->complete || rule->require == NULL ||
      strstr(rule->require, "lacking(") == NULL)
    return (nxc_repair){0};
  const nxc_expression *demand = nxc_rule_parse(run, rule->require);
  nxc_edit edits[LACKS_MAX];
  size_t n_edits = 0;
  for (size_t i = 0; i < demand->n_names; i++) {
    const nxc_bound *bound = nxc_rule_bound(run, &demand->names[i]);
    if (bound == NULL || bound->given || !demand->names[i].only_asked) continue;
    if (nxc_binding_has_elsewhere(run->binding, bound->row->name)) return (nxc_repair){0};
    const nxc_repair one = add(run, bound);
    if (n_edits == LACKS_MAX || !take(run->arena, &one, edits, &n_edits)) return (nxc_repair){0};
  }
  return nxc_repair_copy(run->arena, &(nxc_repair){edits, n_edits, false});
}
