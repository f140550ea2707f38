/* SPDX-License-Identifier: Apache-2.0 */
/* What a word that is unknown was meant to be. */
#ifndef NXC_NEAREST_H
#define NXC_NEAREST_H

#include "compiler/diagnostics/edit.h"

/* The nearest of some names by edit distance. It is certain where the word is so near to it, and to no other,
 * that nothing else can be meant: at most two slips, and no digit differs. */
typedef struct nxc_near {
  const char *name; /* NULL: none is near enough to be meant */
  bool certain;
} nxc_near;

nxc_near nxc_near_find(const char *word, const char *const *names, size_t n_names);
/* Whether one is the other with one letter changed, added, left out or swapped with its neighbour. */
bool nxc_one_slip(const char *one, const char *other);
/* The name alone. */
const char *nxc_nearest(const char *word, const char *const *names, size_t n_names);

/* The remedy that asks for it, the prefix before the name; NULL without a name. */
const char *nxc_did_you_mean(nxc_arena *arena, const char *prefix, const char *name);
/* The repair of the word inside the span (nxc_repair_word), safe where it is certain; none without a name. */
nxc_repair nxc_repair_misspelt(nxc_arena *arena, nxc_span at, const char *word, nxc_near near);

#endif
