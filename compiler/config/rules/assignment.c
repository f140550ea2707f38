/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/rules/assignment.h"

#include "compiler/document/document.h"
#include "compiler/config/rules/rules.h"

static const nxc_value *parse_text(nxc_arena *arena, const char *path, const char *text, nxc_sink *sink,
                                   nxc_span *at) {
  static const nxc_reading reading = {0};
  static const char origin[] = "command line";
  const nxc_source *source = nxc_source_new(arena, origin, "", 0);
  nxc_document *document = nxc_document_read(arena, source, &reading, sink);
  const char *assignment = nxc_arena_printf(arena, "%s=%s", path, text);
  if (!nxc_document_set(document, assignment, origin, &reading, sink)) return NULL;
  const nxc_node *node = nxc_node_lookup(document->root, path);
  if (node == NULL) return NULL;
  *at = node->at;
  return nxc_node_value(arena, node);
}

bool nxc_settings_set_text(nxc_settings *settings, const char *path, const char *text, nxc_sink *sink) {
  nxc_setting_id id = nxc_setting_find(path);
  if (id == NX_N_SETTINGS) {
    nxc_report(sink, "NX1312", NXC_SEVERITY_ERROR, (nxc_span){0},
               "write one of nx-settings(5), such as mesh.tensor", "there is no setting %s", path);
    return false;
  }
  nxc_provenance from = {.kind = NXC_FROM_CLI, .option = nxc_setting_path(id)};
  const nxc_value *value = parse_text(nxc_settings_arena(settings), path, text, sink, &from.at);
  return value != NULL && nxc_settings_set(settings, id, value, &from, sink);
}

bool nxc_settings_assume(nxc_settings *settings, nxc_setting_id id, const char *text, const char *why,
                         nxc_sink *sink) {
  nxc_provenance from = {.kind = NXC_FROM_ASSUMED, .origin = why};
  nxc_span at;
  const nxc_value *value = parse_text(nxc_settings_arena(settings), nxc_setting_path(id), text, sink, &at);
  return value != NULL && nxc_settings_set(settings, id, value, &from, sink);
}

bool nxc_settings_derive(nxc_settings *settings, nxc_sink *sink) {
  nxc_rule_run run = {.arena = nxc_settings_arena(settings), .settings = settings, .sink = sink};
  return nxc_rules_derive(&run);
}
