/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of codes that grew out of a system, and options that the system had once. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/dialect_words.h"
#include "compiler/document/repair.h"

void nxc_binding_find_relative(nxc_binding *binding) {
  const nxc_node *root = binding->document->root;
  for (size_t i = 0; i < root->n_children && binding->relative == NULL; i++) {
    const char *key = root->children[i]->key;
    if (key != NULL) binding->relative = nxc_relative_find(binding->dialect->name, key);
  }
}

void nxc_binding_report_relative(nxc_binding *binding) {
  const nxc_relative *relative = binding->relative;
  const nxc_node *root = binding->document->root, *first = NULL;
  const char *names = "";
  for (size_t i = 0; relative != NULL && i < root->n_children; i++) {
    const nxc_node *node = root->children[i];
    if (node->key == NULL || nxc_option_find(binding->dialect, node->key) != NULL) continue;
    if (!nxc_relative_has(relative, node->key)) continue;
    names = nxc_arena_printf(binding->arena, "%s%s%s", names, first ? ", " : "", node->key);
    if (first == NULL || nxc_relative_find(binding->dialect->name, first->key) != relative) first = node;
  }
  if (first == NULL) return;
  const nxc_remark remark = {{0}, nxc_arena_printf(binding->arena, "of its own: %s", names)};
  const char *system = nxc_system_name(relative->system);
  nxc_severity severity = binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING;
  nxc_sink_report(binding->sink,
                  &(nxc_finding){.id = "NX1324",
                                 .severity = severity,
                                 .at = nxc_node_span(first),
                                 .remarks = &remark,
                                 .n_remarks = 1,
                                 .message = nxc_arena_printf(
                                     binding->arena,
                                     "this is for %s, which grew out of %s: what it has of its own is not "
                                     "known here, and the rest is judged as %s judges it",
                                     relative->name, system, system)});
}

/* "2023-09" */
static const char *month_of(nxc_arena *arena, const char *until) {
  static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July",
                                       "August", "September", "October", "November", "December"};
  int month = (until[5] - '0') * 10 + until[6] - '0';
  return nxc_arena_printf(arena, "%s %.4s", months[month - 1], until);
}

bool nxc_binding_report_past(nxc_binding *binding, const nxc_node *node, const char *name, bool open) {
  const nxc_past_option *past = nxc_past_option_find(binding->dialect->name, name);
  if (past == NULL) return false;
  bool gone = past->now[0] == '\0';
  nxc_repair repair = gone ? nxc_repair_remove(binding->arena, node, false)
                           : nxc_binding_rename(binding, node, name, past->now, false);
  const char *fix = gone ? "leave it out" : nxc_arena_printf(binding->arena, "write %s", past->now);
  nxc_severity severity = open ? NXC_SEVERITY_WARNING : NXC_SEVERITY_ERROR;
  nxc_report_repair(binding->sink, open ? "NX1302" : "NX1301", severity, nxc_node_span(node), fix, repair,
                    "unknown key %s; %s had it until %s", name, nxc_system_name(past->system),
                    month_of(binding->arena, past->until));
  return true;
}
