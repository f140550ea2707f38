/* SPDX-License-Identifier: Apache-2.0 */
/* What must not be shown, and what is shown instead. */
#include "compiler/document/redaction.h"
#include "compiler/config/interpolation/interpolate.h"
#include "compiler/diagnostics/secret.h"


static bool is_secret_text(const nxc_node *node) {
  const nxc_node *final = nxc_node_final(node);
  return final->kind == NXC_NODE_SCALAR && final->value.kind == NXC_STRING &&
         nxc_text_is_secret(final->value.text, final->value.n_bytes);
}

bool nxc_node_is_secret(const nxc_node *node) {
  if (node->environment || is_secret_text(node)) return true;
  if (node->derivation && (node->derivation->from_environment || node->derivation->from_secret)) return true;
  for (; node; node = node->parent)
    if (node->key && nxc_key_is_secret(node->key)) return true;
  return false;
}

static nxc_value redact_inside(nxc_arena *arena, const nxc_node *node, const nxc_value *value, bool secret) {
  secret = secret || node->environment || is_secret_text(node) ||
           (node->key && nxc_key_is_secret(node->key)) ||
           (node->derivation && (node->derivation->from_environment || node->derivation->from_secret));
  const nxc_node *final = nxc_node_final(node);
  if (final->kind == NXC_NODE_SCALAR) {
    bool nothing = value->kind == NXC_NULL || value->kind == NXC_MISSING;
    return secret && !nothing ? nxc_redacted(arena, value) : *value;
  }
  bool is_map = value->kind == NXC_MAP;
  nxc_value *items = nxc_arena_array(arena, value->n_items * (is_map ? 2 : 1), sizeof *items);
  for (size_t i = 0; i < value->n_items; i++) {
    size_t at = is_map ? 2 * i + 1 : i;
    if (is_map) items[2 * i] = value->items[2 * i];
    items[at] = redact_inside(arena, final->children[i], &value->items[at], secret);
  }
  return (nxc_value){.kind = value->kind, .items = items, .n_items = value->n_items};
}

const nxc_value *nxc_node_public_value(nxc_arena *arena, const nxc_node *node) {
  const nxc_value *value = nxc_node_value(arena, node);
  if (value == NULL) return NULL;
  bool secret = false;
  for (const nxc_node *up = node->parent; up; up = up->parent)
    secret = secret || (up->key && nxc_key_is_secret(up->key));
  nxc_value *shown = nxc_arena_alloc(arena, sizeof *shown);
  *shown = redact_inside(arena, node, value, secret);
  return shown;
}
