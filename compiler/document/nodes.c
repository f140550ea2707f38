/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/names.h"
#include "compiler/document/nodes.h"

#include <math.h>
#include <string.h>

enum { MANY_CHILDREN = 12 };

nxc_node *nxc_node_new(nxc_arena *arena, nxc_node_kind kind, nxc_span at) {
  nxc_node *node = nxc_arena_alloc(arena, sizeof *node);
  *node = (nxc_node){.kind = kind, .at = at, .value = {.kind = NXC_NULL}};
  return node;
}

typedef struct identity {
  const char *bytes;
  size_t n_bytes;
} identity;

/* 0xFF stands in no UTF-8 text, so marked identities and strings never meet. */
static identity key_identity(nxc_arena *arena, const nxc_value *key) {
  if (key->kind == NXC_STRING) return (identity){key->text, key->n_bytes};
  const char *text;
  if (key->kind == NXC_BYTES) {
    char *bytes = nxc_arena_alloc(arena, key->n_bytes + 2);
    memcpy(bytes, "\xFF!", 2);
    memcpy(bytes + 2, key->text, key->n_bytes);
    return (identity){bytes, key->n_bytes + 2};
  }
  if (key->kind == NXC_BOOL) text = key->boolean ? "1" : "0";
  else if (key->kind == NXC_FLOAT && key->number == trunc(key->number) && fabs(key->number) < 9e15)
    text = nxc_arena_printf(arena, "%.0f", key->number + 0.0);
  else text = nxc_value_show(arena, key);
  text = nxc_arena_printf(arena, "\xFF%s", text);
  return (identity){text, strlen(text)};
}

static void enter_name(nxc_arena *arena, nxc_node *map, nxc_node *child) {
  identity key = key_identity(arena, &child->key_value);
  *nxc_names_slot(map->names, key.bytes, key.n_bytes) = child;
}

void nxc_node_append(nxc_arena *arena, nxc_node *parent, nxc_node *child) {
  parent->children = nxc_arena_grow(arena, parent->children, parent->n_children, sizeof *parent->children);
  child->parent = parent;
  child->index = parent->n_children;
  parent->children[parent->n_children++] = child;
  if (parent->kind != NXC_NODE_MAP) return;
  if (parent->names == NULL && parent->n_children > MANY_CHILDREN) {
    parent->names = nxc_names_new(arena);
    for (size_t i = 0; i + 1 < parent->n_children; i++) enter_name(arena, parent, parent->children[i]);
  }
  if (parent->names) enter_name(arena, parent, child);
}

void nxc_node_replace(nxc_arena *arena, nxc_node *old, nxc_node *child) {
  nxc_node *parent = old->parent;
  child->key = old->key;
  child->key_value = old->key_value;
  if (child->key_at.source == NULL) child->key_at = old->key_at;
  child->parent = parent;
  child->index = old->index;
  child->replaced = old;
  parent->children[old->index] = child;
  if (parent->names) enter_name(arena, parent, child);
}

nxc_node *nxc_node_child_n(const nxc_node *map, const char *key, size_t n_bytes) {
  if (map->kind != NXC_NODE_MAP) return NULL;
  if (map->names) return nxc_names_find(map->names, key, n_bytes);
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_value *own = &map->children[i]->key_value;
    if (own->kind == NXC_STRING && own->n_bytes == n_bytes && memcmp(own->text, key, n_bytes) == 0)
      return map->children[i];
  }
  return NULL;
}

nxc_node *nxc_node_find_key(nxc_arena *arena, const nxc_node *map, const nxc_value *key) {
  if (key->kind == NXC_STRING) return nxc_node_child_n(map, key->text, key->n_bytes);
  identity wanted = key_identity(arena, key);
  if (map->names) return nxc_names_find(map->names, wanted.bytes, wanted.n_bytes);
  for (size_t i = 0; i < map->n_children; i++) {
    identity own = key_identity(arena, &map->children[i]->key_value);
    if (own.n_bytes == wanted.n_bytes && memcmp(own.bytes, wanted.bytes, own.n_bytes) == 0)
      return map->children[i];
  }
  return NULL;
}

void nxc_node_remove(nxc_arena *arena, nxc_node *child) {
  nxc_node *parent = child->parent, **children = parent->children;
  size_t n_children = parent->n_children;
  parent->children = NULL;
  parent->n_children = 0;
  parent->names = NULL;
  for (size_t i = 0; i < n_children; i++)
    if (children[i] != child) nxc_node_append(arena, parent, children[i]);
}

void nxc_node_set_key(nxc_node *child, const nxc_value *key, const char *text, nxc_span at) {
  child->key_value = *key;
  child->key = text;
  child->key_at = at;
}

nxc_node *nxc_node_copy(nxc_arena *arena, const nxc_node *node, size_t depth, size_t *n_left) {
  if (*n_left == 0 || depth > NXC_DOCUMENT_DEPTH_MAX) return NULL;
  --*n_left;
  nxc_node *copy = nxc_node_new(arena, node->kind, node->at);
  copy->style = node->style;
  copy->value = node->value;
  copy->raw = node->raw;
  copy->raw_bytes = node->raw_bytes;
  for (size_t i = 0; i < node->n_children; i++) {
    const nxc_node *child = node->children[i];
    nxc_node *child_copy = nxc_node_copy(arena, child, depth + 1, n_left);
    if (child_copy == NULL) return NULL;
    nxc_node_set_key(child_copy, &child->key_value, child->key, child->key_at);
    nxc_node_append(arena, copy, child_copy);
  }
  return copy;
}
