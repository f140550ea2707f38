/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of texts that come from elsewhere: UTF-8, and which of them may be shown.
 *
 * A terminal obeys control characters (C0, DEL, C1), and marks that turn the direction of writing make a text
 * look like another: messages show '?' in place of them, and of bytes that are no UTF-8. */
#ifndef NX_CHARACTERS_H
#define NX_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at `at`; 0 where there is none. *code receives it. */
size_t nx_character_decode(const char *at, size_t n_left, uint32_t *code);
/* Bytes of the character at `at`, 1 of a broken one; *shown: it may be shown as it is. */
size_t nx_character_next(const char *at, size_t n_left, bool *shown);
/* Makes a text one that may be shown; the ends of lines stay. */
void nx_characters_hide(char *text);

#endif
