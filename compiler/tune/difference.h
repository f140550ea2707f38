/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts as a unified difference, which patch(1) applies: three lines around each change. */
#ifndef NXC_TUNE_DIFFERENCE_H
#define NXC_TUNE_DIFFERENCE_H

#include "compiler/arena.h"

/* "" where they are the same. */
const char *nxc_difference(nxc_arena *arena, const char *name, const char *old, const char *changed);

#endif
