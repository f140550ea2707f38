/* SPDX-License-Identifier: Apache-2.0 */
/* What YAML has beyond trees: merge keys (<<), and ordered maps that are lists of pairs. */
#ifndef NXC_DOCUMENT_MERGE_H
#define NXC_DOCUMENT_MERGE_H

#include "compiler/document/reader.h"

/* Of one map: the values of its <<. */
typedef struct nxc_merges {
  nxc_node *const *values;
  size_t n_values, depth; /* of what is copied */
  size_t *n_left;         /* nodes that may still be copied */
} nxc_merges;

/* Puts what is merged before the map's own pairs, of which each wins. False when it is too much: reported,
 * and reading ends. */
bool nxc_merges_apply(nxc_reader *reader, nxc_node *map, const nxc_merges *merges);
/* !!omap and !!pairs: every map of the list becomes the list [key, value]. */
void nxc_ordered_pairs(nxc_reader *reader, nxc_node *list);

#endif
