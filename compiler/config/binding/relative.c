/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of codes that grew out of a system, and options that the system had once. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/dialect_words.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"

#include <string.h>

void nxc_binding_find_relative(nxc_binding *binding) {
  const nxc_node *root = binding->document->root;
  for (size_t i = 0; i < root->n_children && binding->relative == NULL; i++) {
    const char *key = root->children[i]->key;
    if (key != NULL) binding->relative = nxc_relative_find(binding->dialect->name, key);
  }
}

/* A number, or a word. */
static const nxc_value *value_of(nxc_arena *arena, const char *text) {
  const char *problem;
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  nxc_scalar_read(arena, text, strlen(text), value, &problem);
  return value;
}

/* The first, or the next behind `after`. NULL: nothing more that is known here. */
static const nxc_relative_meaning *meaning_of(const nxc_binding *binding, const nxc_node *node,
                                              const nxc_relative_meaning *after) {
  if (node->key == NULL || binding->relative == NULL) return NULL;
  const char *word = node->value.kind == NXC_STRING ? node->value.text : "";
  return nxc_relative_means(binding->relative, node->key, word, after);
}

static void take(nxc_binding *binding, const nxc_node *node, const nxc_relative_meaning *means) {
  const nxc_value *value = &node->value;
  const char *text = *means->value ? means->value : value->kind == NXC_STRING ? value->text : NULL;
  if (text != NULL) value = value_of(binding->arena, text); /* arguments are texts */
  const nxc_provenance from = {.kind = NXC_FROM_FILE, .at = node->at, .option = node->key};
  nxc_settings_set(binding->settings, nxc_setting_find(means->setting), value, &from,
                   nxc_sink_new(binding->arena));
}

/* What a setting cannot be is left alone: the code may have words of its own. */
void nxc_binding_take_relative(nxc_binding *binding) {
  const nxc_node *root = binding->document->root;
  for (size_t i = 0; i < root->n_children; i++) {
    const nxc_node *node = root->children[i];
    const nxc_relative_meaning *means = NULL;
    if (node->kind != NXC_NODE_SCALAR || node->failed) continue;
    while ((means = meaning_of(binding, node, means)) != NULL) take(binding, node, means);
  }
}

static const nxc_remark *remarks_of(nxc_binding *binding, const char *names, const char *counted,
                                    size_t *n_remarks) {
  nxc_remark *remarks = nxc_arena_array(binding->arena, 2, sizeof *remarks);
  remarks[0].text = nxc_arena_printf(binding->arena, "of its own: %s", names);
  remarks[1].text = nxc_arena_printf(binding->arena, "estimates count %s", counted);
  *n_remarks = *counted ? 2 : 1;
  return remarks;
}

void nxc_binding_report_relative(nxc_binding *binding) {
  const nxc_relative *relative = binding->relative;
  const nxc_node *root = binding->document->root, *first = NULL;
  const char *names = "", *counted = "";
  for (size_t i = 0; relative != NULL && i < root->n_children; i++) {
    const nxc_node *node = root->children[i];
    if (meaning_of(binding, node, NULL) != NULL)
      counted = nxc_arena_printf(binding->arena, "%s%s%s", counted, *counted ? ", " : "", node->key);
    if (node->key == NULL || nxc_option_find(binding->dialect, node->key) != NULL) continue;
    if (!nxc_relative_has(relative, node->key)) continue;
    names = nxc_arena_printf(binding->arena, "%s%s%s", names, first ? ", " : "", node->key);
    if (first == NULL || nxc_relative_find(binding->dialect->name, first->key) != relative) first = node;
  }
  if (first == NULL) return;
  size_t n_remarks;
  const nxc_remark *remarks = remarks_of(binding, names, counted, &n_remarks);
  const char *system = nxc_system_name(relative->system);
  nxc_severity severity = binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING;
  nxc_sink_report(binding->sink,
                  &(nxc_finding){.id = "NX1324",
                                 .severity = severity,
                                 .at = nxc_node_span(first),
                                 .fix = "have that code itself judge what is its own",
                                 .remarks = remarks,
                                 .n_remarks = n_remarks,
                                 .message = nxc_arena_printf(
                                     binding->arena,
                                     "this is for %s, which grew out of %s: what it has of its own is not "
                                     "known here, and the rest is judged as %s judges it",
                                     relative->name, system, system)});
}

/* "2023-09" */
static const char *month_of(nxc_arena *arena, const char *until) {
  static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};
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
