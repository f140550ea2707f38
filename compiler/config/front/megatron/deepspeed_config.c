/* SPDX-License-Identifier: Apache-2.0 */
/* The file of deepspeed_config, where the script writes it or it lies there: its keys stand below the option,
 * in place of the path. */
#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <string.h>

/* What nothing here tells. */
static void doubt(nxc_node *node) {
  for (size_t i = 0; i < node->n_children; i++) doubt(node->children[i]);
  if (node->kind == NXC_NODE_SCALAR && node->raw != NULL && memchr(node->raw, '$', node->raw_bytes) != NULL)
    node->failed = true;
}

static nxc_node *path_of(nxc_arguments *to) {
  nxc_node *node = nxc_node_child(to->map, "deepspeed_config");
  if (node == NULL) node = nxc_node_child(to->map, "deepspeed-config");
  return node != NULL && node->kind == NXC_NODE_SCALAR && node->raw != NULL ? node : NULL;
}

void nxc_megatron_read_deepspeed(nxc_arguments *to, nxc_script *script) {
  nxc_node *path = path_of(to);
  const nxc_source *text = path ? nxc_script_file(script, path->raw) : NULL;
  if (text == NULL || memchr(text->text, '{', text->n_bytes) == NULL) return;
  const nxc_reading reading = {.omegaconf = true};
  nxc_document *json = nxc_document_read(to->arena, text, &reading, to->sink);
  if (json->root->kind != NXC_NODE_MAP) return;
  doubt(json->root);
  nxc_node *named = nxc_node_new(to->arena, NXC_NODE_SCALAR, path->at); /* for who writes it again */
  named->raw = path->raw;
  named->raw_bytes = path->raw_bytes;
  named->value = nxc_string_value(path->raw, path->raw_bytes);
  const nxc_value name = nxc_string_value("path", strlen("path"));
  nxc_node_set_key(named, &name, name.text, path->at);
  nxc_node_append(to->arena, json->root, named);
  const nxc_value key = nxc_string_value("deepspeed_config", strlen("deepspeed_config"));
  nxc_node_replace(to->arena, path, json->root);
  nxc_node_set_key(json->root, &key, key.text, path->key_at);
}

bool nxc_megatron_set_deepspeed(nxc_arguments *to, const char *assignment) {
  static const char name[] = "deepspeed_config";
  nxc_node *file = nxc_node_child(to->map, name);
  size_t n = sizeof name - 1;
  if (file == NULL || file->kind != NXC_NODE_MAP || strncmp(assignment, name, n) != 0 || assignment[n] != '.')
    return false;
  nxc_document json = {.arena = to->arena, .root = file};
  const nxc_reading reading = {.omegaconf = true};
  nxc_document_set(&json, assignment + n + 1, "--set", &reading, to->sink);
  return true;
}
