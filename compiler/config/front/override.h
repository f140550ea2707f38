/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides as Hydra takes them on a command line, behind the file: KEY=VALUE changes what is there,
 * +KEY=VALUE adds what is not, ++KEY=VALUE does either, ~KEY takes it out (~KEY=VALUE only where it has
 * this value).
 *
 * Values are not YAML: bare words are typed one by one (null, true, 3, 1e-4; yes stays text), 'a' and "a"
 * are text, [a,b] and {a:b} nest, a backslash takes a character as it is, and ${...} is resolved with the
 * file. What Hydra would refuse is an error here, at its place in the argument. */
#ifndef NXC_CONFIG_OVERRIDE_H
#define NXC_CONFIG_OVERRIDE_H

#include "compiler/document/document.h"

struct nxc_dialect; /* settings/catalogue.h */

/* Whether an argument has the form of an override. */
bool nxc_override_is(const char *argument);
/* Applies one to the tree. `dialect` knows keys that the file lacks, for advice; NULL: none does. */
bool nxc_override_apply(nxc_document *document, const char *argument, const struct nxc_dialect *dialect,
                        nxc_sink *sink);

#endif
