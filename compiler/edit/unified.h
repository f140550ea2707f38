/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts as a unified diff, as patch(1) and git apply read it.
 *
 * What names a secret is not shown, so a patch of such a line cannot be applied. */
#ifndef NXC_EDIT_UNIFIED_H
#define NXC_EDIT_UNIFIED_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* False, and nothing is printed, where they are the same. */
bool nxc_unified_print(nxc_arena *arena, const char *name, const char *old_text, size_t n_old,
                       const char *new_text, size_t n_new, bool colour, FILE *out);

#endif
