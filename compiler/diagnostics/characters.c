/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/characters.h"

#include "schema/characters.h"

#include <string.h>

enum { SHOWN_BYTES_MAX = 2000 };

const char *nxc_characters_shown(nxc_arena *arena, const char *text) {
  if (text == NULL) return NULL;
  size_t n_bytes = strlen(text), n_plain = 0;
  while (n_plain < n_bytes && text[n_plain] >= ' ' && text[n_plain] < 0x7F) n_plain++;
  if (n_plain == n_bytes && n_bytes <= SHOWN_BYTES_MAX) return nxc_arena_strndup(arena, text, n_bytes);
  char *copy = nxc_arena_alloc(arena, (n_bytes < SHOWN_BYTES_MAX ? n_bytes : SHOWN_BYTES_MAX) + sizeof "..."),
       *to = copy;
  for (size_t i = 0, n; i < n_bytes; i += n) {
    bool shown;
    n = nx_character_next(text + i, n_bytes - i, &shown);
    if (i + n > SHOWN_BYTES_MAX) {
      memcpy(to, "...", sizeof "...");
      break;
    }
    if (shown) to = (char *)memcpy(to, text + i, n) + n;
    else *to++ = text[i] == '\n' ? ' ' : '?';
  }
  return copy;
}

void nxc_characters_print(const char *text, FILE *out) {
  for (size_t n, n_left = strlen(text); n_left > 0; text += n, n_left -= n) {
    bool shown;
    n = nx_character_next(text, n_left, &shown);
    if (shown) fwrite(text, 1, n, out);
    else fputc('?', out);
  }
}
