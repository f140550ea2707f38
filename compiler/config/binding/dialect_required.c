/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are required and not given: those of a section that is missing as a whole are one finding. */
#include "compiler/config/binding/dialect.h"

#include "compiler/document/repair.h"

#include <string.h>

typedef struct lack {
  const char *section;    /* the outermost section that is missing as a whole; "" when only the option is */
  const nxc_node *inside; /* the innermost map that is there */
  const char *names;
  const char *doc; /* what the option says, where it is one */
} lack;

/* Splits a missing option's path at the first step that the document lacks. */
static lack find_lack(nxc_binding *binding, const char *name) {
  lack found = {.section = "", .inside = binding->document->root, .names = name};
  const char *dot = name;
  while ((dot = strchr(dot, '.')) != NULL) {
    const char *section = nxc_arena_strndup(binding->arena, name, (size_t)(dot - name));
    const nxc_node *node = nxc_node_lookup(binding->document->root, section);
    if (node == NULL) {
      found.section = section;
      return found;
    }
    found.inside = node;
    dot++;
  }
  return found;
}

bool nxc_binding_has_elsewhere(const nxc_binding *binding, const char *name) {
  for (size_t i = 0; i < binding->n_unknown; i++)
    if (strcmp(nxc_name_last(binding->unknown[i].name), nxc_name_last(name)) == 0) return true;
  return false;
}

const char *nxc_binding_usual(const nxc_binding *binding, const nxc_option_row *row) {
  const nxc_value *value = nxc_option_default(row, binding->version);
  const nxc_expression *from = nxc_expression_of(binding->arena, row->from);
  const char *error;
  if ((value == NULL || value->kind == NXC_NULL) && from != NULL && from->n_names == 0)
    value = nxc_expression_evaluate(binding->arena, from, &(nxc_scope){0}, &error);
  bool telling = value != NULL && (value->kind == NXC_STRING || value->kind == NXC_INT ||
                                   (value->kind == NXC_BOOL && row->domain.type == NXC_TYPE_BOOL));
  if (!telling) return NULL;
  if (value->kind != NXC_STRING) return nxc_value_show(binding->arena, value);
  return nxc_arena_printf(binding->arena, "\"%s\"", value->text);
}

static void report_lack(nxc_binding *binding, const lack *found) {
  nxc_arena *arena = binding->arena;
  nxc_span at = {.source = binding->origin.first, .line = 1, .column = 1, .length = 1};
  if (found->inside->key != NULL) at = nxc_node_span(found->inside);
  bool whole = *found->section != '\0';
  const char *message = nxc_arena_printf(
      arena, whole ? "the section %s is missing; it must give %s" : "%s%s is required and not given",
      found->section, found->names);
  const nxc_remark remark = {{0}, found->doc};
  const nxc_option_row *row = whole ? NULL : nxc_option_find(binding->dialect, found->names);
  const char *usual = row ? nxc_binding_usual(binding, row) : NULL;
  nxc_repair repair = {0};
  if (usual != NULL && binding->document->complete && !nxc_binding_has_elsewhere(binding, found->names))
    repair = nxc_repair_add(arena, found->inside, nxc_name_last(found->names), usual);
  nxc_sink_report(binding->sink,
                  &(nxc_finding){.id = "NX1307",
                                 .repair = repair,
                                 .severity = NXC_SEVERITY_ERROR,
                                 .message = message,
                                 .at = at,
                                 .fix = nxc_arena_printf(arena, "add %s%s", whole ? "the section " : "",
                                                         whole ? found->section : found->names),
                                 .remarks = &remark,
                                 .n_remarks = !whole && found->doc != NULL});
}

/* A null that says no more than leaving the option out. */
static bool is_void(const nxc_bound *bound) {
  const nxc_value *initial = bound->row->initial;
  return bound->given && bound->value != NULL && bound->value->kind == NXC_NULL && initial != NULL &&
         initial->kind == NXC_NULL;
}

static void report_void(nxc_binding *binding, nxc_bound *bound) {
  const nxc_remark remark = {{0}, bound->row->doc};
  const char *name = bound->row->name;
  nxc_finding finding = {
      .id = "NX1306",
      .severity = NXC_SEVERITY_ERROR,
      .message = nxc_arena_printf(binding->arena, "%s is required, and null is no value", name),
      .at = bound->at,
      .fix = "give it a value",
      .remarks = &remark,
      .n_remarks = remark.text != NULL};
  nxc_sink_report(binding->sink, &finding);
}

bool nxc_option_is_demanded(nxc_arena *arena, const nxc_option_row *row, bool whole_sections) {
  const char *dot = strrchr(row->name, '.');
  if (row->required == NULL || dot == NULL) return false;
  size_t n_section = (size_t)(dot - row->name);
  if (row->name[n_section - 1] == ']') return strcmp(row->required, "true") == 0;
  const char *section = nxc_arena_strndup(arena, row->name, n_section);
  const char *given = nxc_arena_printf(arena, "given(@%s) and @%s != null", section, section);
  return whole_sections && strcmp(row->required, given) == 0;
}

/* Whether it may be given elsewhere. */
static bool may_lack(const nxc_binding *binding, const nxc_option_row *row) {
  return binding->partial && !nxc_option_is_demanded(binding->arena, row, binding->whole_sections);
}

/* Whether the code that the document is for does not require it beside a word that is given. */
static bool is_freed(const nxc_binding *binding, const char *name) {
  for (size_t i = 0; binding->relative != NULL && i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    const nxc_value *value = bound->node ? nxc_node_value(binding->arena, bound->node) : NULL;
    if (value != NULL && value->kind == NXC_STRING &&
        nxc_relative_frees(binding->relative, bound->row->name, value->text, name))
      return true;
  }
  return false;
}

void nxc_binding_check_required(nxc_binding *binding) {
  lack *lacks = NULL;
  size_t n_lacks = 0;
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    nxc_bound *bound = &binding->options[i];
    bool nothing = is_void(bound);
    if ((bound->given && !nothing) || bound->inactive || bound->row->required == NULL) continue;
    if (strstr(bound->row->name, "[].") != NULL) continue; /* each entry is judged by itself */
    if (may_lack(binding, bound->row)) continue;
    if (!nxc_binding_is_true(binding, bound, bound->row->required)) continue;
    if (is_freed(binding, bound->row->name)) continue;
    if (nothing) report_void(binding, bound);
    bound->lacks = true;
    bound->value = NULL;
    if (nothing) continue;
    nxc_sink_withdraw(binding->sink, "NX1202", bound->row->name);
    lack found = find_lack(binding, bound->row->name);
    found.doc = bound->row->doc;
    size_t same = 0;
    while (same < n_lacks && (*found.section == '\0' || strcmp(lacks[same].section, found.section) != 0))
      same++;
    if (same < n_lacks) {
      lacks[same].names = nxc_arena_printf(binding->arena, "%s, %s", lacks[same].names, found.names);
      continue;
    }
    lacks = nxc_arena_grow(binding->arena, lacks, n_lacks, sizeof *lacks);
    lacks[n_lacks++] = found;
  }
  for (size_t i = 0; i < n_lacks; i++) report_lack(binding, &lacks[i]);
}
