/* SPDX-License-Identifier: Apache-2.0 */
/* A site's own policy: rules in the format of schema/rules, read from a file at run time.
 *
 * A row is what the catalogue's are, except that its id has a prefix of the site's own: capital letters other
 * than NX, then digits. Everything that the build demands of our own rules is demanded here, with the place
 * in the file. libcyaml fills the rows; our reader knows where they stand. */
#ifndef NXC_CONFIG_SITE_RULES_H
#define NXC_CONFIG_SITE_RULES_H

#include "compiler/config/rules/rules.h"

/* Appends the rules of one file. False (reported) when it cannot be read, or any of it is wrong; *unreadable
 * tells the first. */
bool nxc_site_rules_read(nxc_arena *arena, const char *path, nxc_sink *sink, nxc_site_rules *rules,
                         bool *unreadable);

#endif
