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
  const nxc_value key = nxc_string_value("deepspeed_config", strlen("deepspeed_config"));
  nxc_node_replace(to->arena, path, json->root);
  nxc_node_set_key(json->root, &key, key.text, path->key_at);
}
