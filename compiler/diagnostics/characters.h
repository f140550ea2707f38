/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of users' texts: UTF-8, and which of them may be shown.
 *
 * A terminal obeys control characters (C0, DEL, C1), and marks that turn the direction of writing make a text
 * look like another: findings show '?' in place of them, and of bytes that are no UTF-8. */
#ifndef NXC_CHARACTERS_H
#define NXC_CHARACTERS_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the well-formed character at `at`; 0 where there is none. *code receives it. */
size_t nxc_character_decode(const char *at, size_t n_left, uint32_t *code);
/* Bytes of the character at `at`, 1 of a broken one; *shown: it may be shown as it is. */
size_t nxc_character_next(const char *at, size_t n_left, bool *shown);
/* A copy of a text that may be shown, in one line and of bounded length. NULL for NULL. */
const char *nxc_characters_shown(nxc_arena *arena, const char *text);
/* Prints a text, of any length, as it may be shown. */
void nxc_characters_print(const char *text, FILE *out);

#endif
