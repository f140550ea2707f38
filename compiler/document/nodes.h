/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of the document tree, shared by the reader, the layers and the resolver.
 *
 * A key's identity is its bytes for a string and a marked canonical text for everything else; as in Python,
 * 1, 1.0 and true are one key. Children of a map have distinct identities. */
#ifndef NXC_CONFIG_NODES_H
#define NXC_CONFIG_NODES_H

#include "compiler/document/document.h"

nxc_node *nxc_node_new(nxc_arena *arena, nxc_node_kind kind, nxc_span at);
/* Appends and sets parent and index; a map's child must have its key fields set. */
void nxc_node_append(nxc_arena *arena, nxc_node *parent, nxc_node *child);
/* Puts `child` where `old` stands in its parent; the key stays old's, and child->replaced becomes old. */
void nxc_node_replace(nxc_arena *arena, nxc_node *old, nxc_node *child);
/* The child with the same key identity, or NULL. */
nxc_node *nxc_node_find_key(nxc_arena *arena, const nxc_node *map, const nxc_value *key);
/* One step down by text: a map's key, or a list's index written in plain decimal. NULL when absent. */
nxc_node *nxc_node_item(const nxc_node *from, const char *step, size_t n_bytes);
/* Takes a child out of its map. It keeps its own fields. */
void nxc_node_remove(nxc_arena *arena, nxc_node *child);
void nxc_node_set_key(nxc_node *child, const nxc_value *key, const char *text, nxc_span at);
/* Deep copy; *n_left is lowered by the nodes made. NULL when it would fall below 0 or `depth` (the copy's own
 * depth in the tree) pass NXC_DOCUMENT_DEPTH_MAX. */
nxc_node *nxc_node_copy(nxc_arena *arena, const nxc_node *node, size_t depth, size_t *n_left);

#endif
