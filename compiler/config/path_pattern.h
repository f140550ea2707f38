/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, as .nxcfg.yaml and .gitignore write them.
 *
 * Without a slash a pattern is about the name alone; * stops at slashes, ** stands for any folders, none
 * included. */
#ifndef NXC_CONFIG_PATH_PATTERN_H
#define NXC_CONFIG_PATH_PATTERN_H

#include "compiler/arena.h"

#include <stdbool.h>

/* `path` is relative to the folder that the pattern belongs to. */
bool nxc_path_matches(nxc_arena *arena, const char *pattern, const char *path);

/* The patterns of a folder's .gitignore, and of those above it. */
typedef struct nxc_ignore nxc_ignore;

/* Those that are in force in a folder (an absolute path that ends in /), `above` being those of the folder
 * above. */
const nxc_ignore *nxc_ignore_read(nxc_arena *arena, const nxc_ignore *above, const char *folder);
/* Those of a folder within a repository: from its top down. NULL: there are none. */
const nxc_ignore *nxc_ignore_above(nxc_arena *arena, const char *folder);
/* Whether git leaves the path out; the last pattern that matches decides. */
bool nxc_ignore_has(nxc_arena *arena, const nxc_ignore *ignore, const char *path, bool is_folder);

#endif
