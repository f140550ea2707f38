/* SPDX-License-Identifier: Apache-2.0 */
/* A composition as the tree of a file. */
#include "compiler/convert/compose.h"

#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <stdlib.h>
#include <string.h>

static nxc_node *node_of(nxc_arena *arena, const nxc_value *value) {
  bool is_list = value->kind == NXC_LIST, is_map = value->kind == NXC_MAP;
  nxc_node *node = nxc_node_new(arena,
                                is_map    ? NXC_NODE_MAP
                                : is_list ? NXC_NODE_LIST
                                          : NXC_NODE_SCALAR,
                                (nxc_span){0});
  if (!is_list && !is_map) {
    node->value = *value;
    return node;
  }
  for (size_t i = 0; i < value->n_items; i++) {
    nxc_node *child = node_of(arena, &value->items[is_map ? 2 * i + 1 : i]);
    const nxc_value *key = is_map ? &value->items[2 * i] : NULL;
    if (key != NULL) nxc_node_set_key(child, key, nxc_value_show(arena, key), (nxc_span){0});
    nxc_node_append(arena, node, child);
  }
  return node;
}

/* The map below `in` at this key, made where it is missing. */
static nxc_node *section_at(nxc_arena *arena, nxc_node *in, const char *name) {
  nxc_node *found = nxc_node_child(in, name);
  nxc_node *final = found ? nxc_node_final(found) : NULL;
  if (final != NULL && final->kind == NXC_NODE_MAP) return final;
  nxc_node *map = nxc_node_new(arena, NXC_NODE_MAP, (nxc_span){0});
  nxc_value key = nxc_string_value(name, strlen(name));
  nxc_node_set_key(map, &key, name, (nxc_span){0});
  if (found != NULL) nxc_node_replace(arena, found, map);
  else nxc_node_append(arena, in, map);
  return map;
}

void nxc_compose_put(nxc_arena *arena, nxc_node *root, const char *path, const nxc_value *value) {
  const char *dot;
  for (; (dot = strchr(path, '.')) != NULL; path = dot + 1)
    root = section_at(arena, root, nxc_arena_strndup(arena, path, (size_t)(dot - path)));
  nxc_node *old = nxc_node_child(root, path), *node = node_of(arena, value);
  nxc_value key = nxc_string_value(path, strlen(path));
  nxc_node_set_key(node, &key, path, (nxc_span){0});
  if (old != NULL) nxc_node_replace(arena, old, node);
  else nxc_node_append(arena, root, node);
}

static int compare_places(const void *a, const void *b) {
  size_t one = (*(const nxc_bound *const *)a)->row->place, other = (*(const nxc_bound *const *)b)->row->place;
  return (one > other) - (one < other);
}

static void put_given(nxc_arena *arena, const nxc_bound *bounds, size_t n_bounds, nxc_node *root) {
  const nxc_bound **given = nxc_arena_array(arena, n_bounds + 1, sizeof *given);
  size_t n_given = 0;
  for (size_t i = 0; i < n_bounds; i++)
    if (bounds[i].given) given[n_given++] = &bounds[i];
  qsort(given, n_given, sizeof *given, compare_places);
  for (size_t i = 0; i < n_given; i++) {
    const nxc_option_row *row = given[i]->row;
    bool section = row->domain.type == NXC_TYPE_MAP; /* its options follow */
    if (!section || nxc_node_lookup(root, row->name) == NULL)
      nxc_compose_put(arena, root, row->name, given[i]->value);
  }
}

void nxc_compose_into(nxc_binding *composition, nxc_node *root) {
  put_given(composition->arena, composition->options, composition->dialect->n_options, root);
}

void nxc_compose_model_into(nxc_binding *composition, nxc_node *root) {
  put_given(composition->arena, composition->model_options, composition->model_dialect->n_options, root);
}
