/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of its system a configuration is for.
 *
 * A dialect's front lists its versions, the newest first. The newest that knows every key and every word of a
 * document is the one meant, unless the user names another. Where several know them all, what the document
 * does not give may be another value in each: the verdict names those options. */
#ifndef NXC_CONFIG_VERSION_H
#define NXC_CONFIG_VERSION_H

#include "compiler/config/binding/dialect.h"

/* What a version does not know of a document: keys that are options of others alone, and words of others
 * alone. */
typedef struct nxc_version_search {
  const char *version;
  const nxc_node *first; /* of them; NULL: none */
  size_t n_unknown;
} nxc_version_search;

/* For each of `versions` (which end with NULL, as the result does). */
const nxc_version_search *nxc_versions_search(nxc_arena *arena, const nxc_dialect *dialect,
                                              const char *const *versions, const nxc_document *document);
/* The newest that knows most of the document, all of it if any does; or the oldest that does. */
const char *nxc_version_choose(const nxc_version_search *found, bool old);
/* By what this version was chosen: the path of a key that the next newer one does not know, or, of the
 * newest, the next older one. NULL: it knows them all. */
const char *nxc_version_evidence(nxc_arena *arena, const nxc_version_search *found, const char *version);
/* Options that set something and stand at a default that is another in a version which knows the document as
 * well: "a, b". NULL: none. */
const char *nxc_version_doubts(const nxc_binding *binding, const nxc_version_search *found);

#endif
