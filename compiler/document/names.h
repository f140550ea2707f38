/* SPDX-License-Identifier: Apache-2.0 */
/* A table from byte strings to pointers, for maps with many keys, anchors and environment variables.
 *
 * Keys are not copied and must outlive the table; both live in an arena. Nothing is removed. */
#ifndef NXC_CONFIG_NAMES_H
#define NXC_CONFIG_NAMES_H

#include "compiler/arena.h"

typedef struct nxc_names nxc_names;

nxc_names *nxc_names_new(nxc_arena *arena);
/* The place of the key's pointer, NULL inside when the key is new. Valid until the next call. */
void **nxc_names_slot(nxc_names *names, const char *key, size_t n_bytes);
void *nxc_names_find(const nxc_names *names, const char *key, size_t n_bytes);

#endif
