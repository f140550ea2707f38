/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/document_merge.h"

#include "compiler/document/document.h"
#include "compiler/document/nodes.h"

#include <string.h>

/* One source: of several a later one gives way. */
static bool merge_map(nxc_reader *reader, nxc_node *merged, nxc_node *from, const nxc_merges *merges) {
  nxc_arena *arena = reader->arena;
  for (size_t i = 0; from->kind == NXC_NODE_MAP && i < from->n_children; i++) {
    nxc_node *child = from->children[i];
    nxc_node *copy = nxc_node_copy(arena, child, merges->depth, merges->n_left);
    if (copy == NULL) {
      nxc_reader_error(reader, "NX1007", from->at, NULL,
                       "merge keys and aliases here make more than %d values", NXC_ALIAS_NODES_MAX);
      return false;
    }
    copy->copy_of = child;
    copy->merged = true;
    nxc_node_set_key(copy, &child->key_value, child->key, child->key_at);
    nxc_node *earlier = nxc_node_find_key(arena, merged, &copy->key_value);
    if (earlier) nxc_node_replace(arena, earlier, copy);
    else nxc_node_append(arena, merged, copy);
    copy->replaced = NULL;
  }
  return true;
}

static bool is_mergeable(const nxc_node *value) {
  if (value->kind != NXC_NODE_LIST) return value->kind == NXC_NODE_MAP;
  for (size_t i = 0; i < value->n_children; i++)
    if (value->children[i]->kind != NXC_NODE_MAP) return false;
  return true;
}

bool nxc_merges_apply(nxc_reader *reader, nxc_node *map, const nxc_merges *merges) {
  nxc_arena *arena = reader->arena;
  const nxc_node own = *map;
  bool good = true;
  map->children = NULL;
  map->n_children = 0;
  map->names = NULL;
  for (size_t i = 0; i < merges->n_values; i++) {
    nxc_node *value = merges->values[i];
    if (!is_mergeable(value)) {
      nxc_reader_error(reader, "NX1013", value->at, "write <<: *NAME, or leave it out",
                       "<< takes a map or a list of maps");
      continue;
    }
    if (value->kind == NXC_NODE_MAP) good = merge_map(reader, map, value, merges) && good;
    for (size_t k = value->kind == NXC_NODE_LIST ? value->n_children : 0; k-- > 0;)
      good = merge_map(reader, map, value->children[k], merges) && good;
  }
  for (size_t i = 0; i < own.n_children; i++) {
    nxc_node *child = own.children[i], *earlier = nxc_node_find_key(arena, map, &child->key_value);
    if (earlier) nxc_node_replace(arena, earlier, child);
    else nxc_node_append(arena, map, child);
  }
  return good;
}

void nxc_ordered_pairs(nxc_reader *reader, nxc_node *list) {
  nxc_arena *arena = reader->arena;
  for (size_t i = 0; i < list->n_children; i++) {
    nxc_node *map = list->children[i];
    if (map->kind != NXC_NODE_MAP || map->n_children != 1) {
      nxc_reader_error(reader, "NX1015", map->at, NULL, "an ordered map is a list of single pairs");
      continue;
    }
    nxc_node *value = map->children[0], *pair = nxc_node_new(arena, NXC_NODE_LIST, map->at);
    nxc_node *key = nxc_node_new(arena, NXC_NODE_SCALAR, value->key_at);
    key->value = value->key_value;
    key->raw = value->key;
    key->raw_bytes = strlen(value->key);
    nxc_node_append(arena, pair, key);
    nxc_node_append(arena, pair, value);
    value->key = NULL;
    value->key_at = (nxc_span){0};
    list->children[i] = pair;
    pair->parent = list;
    pair->index = i;
  }
}
