/* SPDX-License-Identifier: Apache-2.0 */
/* Files of xorl's server: the options of a training without their sections, and some of the server's own. */
#include "compiler/config/front/xorl/front_xorl.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/nodes.h"
#include "compiler/document/repair.h"
#include "compiler/settings/catalogue.h"
#include "compiler/settings/programs.h"

#include <string.h>

static bool begins_line(const nxc_source *text, const char *key) {
  for (uint32_t line = 1; line <= text->n_lines; line++) {
    size_t n_line;
    const char *bytes = nxc_source_line(text, line, &n_line);
    if (n_line >= strlen(key) && strncmp(bytes, key, strlen(key)) == 0) return true;
  }
  return false;
}

static bool is_server(const nxc_source *text) {
  return begins_line(text, "model_path:") && !begins_line(text, "model:") && !begins_line(text, "train:");
}

static bool is_export(const nxc_source *text) {
  return begins_line(text, "input_dir:") && begins_line(text, "output_dir:") && begins_line(text, "fmt:");
}

bool nxc_xorl_claims(const nxc_source *text) {
  return is_server(text) || is_export(text);
}

/* SECTION.KEY of a training, which the server's key stands for. NULL: it is the server's own. */
static const nxc_option_row *shared_option(const nxc_dialect *dialect, const char *key) {
  for (size_t i = 0; i < dialect->n_options; i++) {
    const char *name = dialect->options[i].name, *dot = strchr(name, '.');
    if (dot != NULL && strcmp(dot + 1, key) == 0) return &dialect->options[i];
  }
  return NULL;
}

static void report_unknown(nxc_document *document, const nxc_node *node, nxc_sink *sink) {
  const char **names;
  size_t n_names = nxc_program_row_names(document->arena, document->program, &names);
  nxc_near near = nxc_near_find(node->key, names, n_names);
  nxc_report_repair(sink, "NX1301", NXC_SEVERITY_ERROR, nxc_node_span(node),
                    nxc_did_you_mean(document->arena, "", near.name),
                    nxc_repair_misspelt_key(document->arena, node, near),
                    "unknown key %s; xorl's server refuses it", node->key);
}

static nxc_node *section_of(nxc_arena *arena, nxc_node *root, const char *option, nxc_span at) {
  const char *name = nxc_arena_strndup(arena, option, strcspn(option, "."));
  nxc_node *map = nxc_node_child(root, name);
  if (map != NULL) return map;
  nxc_value key = {.kind = NXC_STRING, .text = name, .n_bytes = strlen(name)};
  map = nxc_node_new(arena, NXC_NODE_MAP, at);
  nxc_node_set_key(map, &key, name, at);
  nxc_node_append(arena, root, map);
  return map;
}

void nxc_xorl_take_server(nxc_document *document, const nxc_source *text, nxc_sink *sink) {
  const nxc_dialect *dialect = nxc_dialect_find("xorl");
  nxc_node *root = document->root, *nested;
  document->idle = is_export(text);
  if (!document->idle && !is_server(text)) return;
  document->open = document->idle;
  document->program_name = document->idle ? "xorl.cli.export" : "xorl.server.launcher";
  document->program_at = root->at;
  document->program = nxc_program_row_find(document->idle ? "xorl/cli/FILE" : "xorl/server/FILE");
  nested = nxc_node_new(document->arena, NXC_NODE_MAP, root->at);
  document->root = nested;
  for (size_t i = 0; i < root->n_children && !document->idle; i++) {
    nxc_node *node = root->children[i];
    const nxc_option_row *row = shared_option(dialect, node->key);
    if (!nxc_program_row_has(document->program, node->key)) report_unknown(document, node, sink);
    else if (row != NULL)
      nxc_node_append(document->arena, section_of(document->arena, nested, row->name, node->key_at), node);
  }
}
