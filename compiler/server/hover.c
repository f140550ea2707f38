/* SPDX-License-Identifier: Apache-2.0 */
/* What stands under the cursor: an option's meaning, type and default, the value that it has here, the
 * settings that it makes with their history; of an interpolation the value that it reads. */
#include "compiler/commands/why.h"
#include "compiler/render/render.h"
#include "compiler/server/answers.h"
#include "compiler/settings/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *value_of(const nxc_analysis *analysis, const nxc_node *node) {
  nxc_arena *arena = analysis->judged.arena;
  const nxc_node *final = nxc_node_final(node);
  if (nxc_node_is_secret(node)) return "(not shown)";
  if (node->failed || final->kind != NXC_NODE_SCALAR) return NULL;
  const nxc_value *value = nxc_node_public_value(arena, node);
  return value ? nxc_value_show(arena, value) : NULL;
}

/* Texts between ``` are shown as they are. */
static void print_block(FILE *out, const char *text, size_t n_bytes) {
  fputs("\n```\n", out);
  fwrite(text, 1, n_bytes, out);
  fputs("```\n", out);
}

static void print_history(const nxc_analysis *analysis, const char *path, FILE *out) {
  const char *nearest;
  char *text = NULL;
  size_t n_bytes = 0;
  const nxc_why *why = nxc_why_find(analysis->judged.arena, &analysis->judged.compiled, path, &nearest);
  FILE *memory = why ? open_memstream(&text, &n_bytes) : NULL;
  if (memory == NULL) return;
  nxc_why_print(why, memory);
  fclose(memory);
  print_block(out, text, n_bytes);
  free(text);
}

static void print_option(const nxc_analysis *analysis, const nxc_bound *bound, FILE *out) {
  const nxc_option_row *row = bound->row;
  const nxc_facts facts = nxc_option_facts(analysis->judged.arena, row);
  fprintf(out, "**%s**, an option of %s\n\n", row->name, analysis->judged.compiled.dialect->name);
  for (size_t i = 0; i < facts.n_items; i++) {
    const nxc_fact *fact = &facts.items[i];
    if (*fact->label) fprintf(out, "- %s: %s\n", fact->label, fact->text);
    else fprintf(out, "%s\n\n", fact->text);
  }
  if (row->n_sets == 0) print_history(analysis, row->name, out);
  for (size_t i = 0; i < row->n_sets; i++)
    print_history(analysis, nxc_setting_path(row->sets[i].setting), out);
}

static void print_node(const nxc_analysis *analysis, const nxc_node *node, FILE *out) {
  const char *value = value_of(analysis, node);
  fprintf(out, "**%s**", nxc_node_path(analysis->judged.arena, node));
  if (value != NULL) fprintf(out, " is `%s`", value);
  nxc_span at = nxc_node_span(node);
  if (at.source != NULL) fprintf(out, ", line %u", at.line);
  fputc('\n', out);
}

static json_t *hover(const nxc_analysis *analysis, nxc_span at, char *text) {
  json_t *result = json_pack("{s:{s:s, s:o}, s:o}", "contents", "kind", "markdown", "value",
                             nxc_json_text(text), "range", nxc_analysis_range(analysis, at));
  free(text);
  return result;
}

json_t *nxc_answer_hover(const nxc_analysis *analysis, const json_t *params) {
  size_t offset = nxc_answer_offset(analysis, params), n_bytes = 0;
  bool on_key;
  const nxc_mention *mention = nxc_analysis_mention(analysis, offset);
  const nxc_node *node = nxc_analysis_node(analysis, offset, &on_key);
  if (mention == NULL && node == NULL) return NULL;
  char *text = NULL;
  FILE *out = open_memstream(&text, &n_bytes);
  if (out == NULL) return NULL;
  const nxc_bound *bound = mention == NULL ? nxc_analysis_option(analysis, node) : NULL;
  if (mention != NULL) print_node(analysis, mention->named, out);
  else if (bound != NULL) print_option(analysis, bound, out);
  else print_node(analysis, node, out);
  fclose(out);
  nxc_span at = mention ? mention->at : on_key ? node->key_at : node->at;
  return hover(analysis, at, text);
}

/* -- hints ----------------------------------------------------------------------------------------------- */

static void add_hints(const nxc_analysis *analysis, const nxc_node *node, json_t *list) {
  for (size_t i = 0; i < node->n_children; i++) add_hints(analysis, node->children[i], list);
  if (node->derivation == NULL || node->failed || !nxc_analysis_has(analysis, node->at)) return;
  const char *value = nxc_node_is_secret(node) ? NULL : value_of(analysis, node);
  if (value == NULL) return;
  json_t *range = nxc_analysis_range(analysis, node->at);
  json_array_append_new(
      list,
      json_pack("{s:O, s:o, s:b}", "position", json_object_get(range, "end"), "label",
                nxc_json_text(nxc_arena_printf(analysis->judged.arena, "= %s", value)), "paddingLeft", 1));
  json_decref(range);
}

json_t *nxc_answer_hints(const nxc_analysis *analysis, const json_t *params) {
  (void)params; /* an editor shows those that it needs */
  json_t *list = json_array();
  if (analysis->judged.compiled.document != NULL)
    add_hints(analysis, analysis->judged.compiled.document->root, list);
  return list;
}
