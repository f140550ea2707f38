/* SPDX-License-Identifier: Apache-2.0 */
/* Users' texts as they may be shown (schema/characters.h). */
#ifndef NXC_CHARACTERS_H
#define NXC_CHARACTERS_H

#include "compiler/arena.h"

#include <stdio.h>

/* A copy of a text that may be shown, in one line and of bounded length. NULL for NULL. */
const char *nxc_characters_shown(nxc_arena *arena, const char *text);
/* Prints a text, of any length, as it may be shown. */
void nxc_characters_print(const char *text, FILE *out);

#endif
