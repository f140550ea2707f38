/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/characters.h"

#include <string.h>

enum { SHOWN_BYTES_MAX = 2000 };

size_t nxc_character_decode(const char *at, size_t n_left, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *bytes = (const unsigned char *)at;
  size_t n = bytes[0] < 0x80   ? 1
             : bytes[0] < 0xC2 ? 0
             : bytes[0] < 0xE0 ? 2
             : bytes[0] < 0xF0 ? 3
             : bytes[0] < 0xF5 ? 4
                               : 0;
  if (n == 0 || n > n_left) return 0;
  *code = n == 1 ? bytes[0] : bytes[0] & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((bytes[i] & 0xC0) != 0x80) return 0;
    *code = *code << 6 | (bytes[i] & 0x3F);
  }
  bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
  return *code >= least[n] && *code <= 0x10FFFF && !surrogate ? n : 0;
}

static bool is_shown(uint32_t code) {
  if (code < 0xA0) return code >= ' ' && code < 0x7F;
  bool direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                   (code >= 0x2066 && code <= 0x2069);
  bool line_break = code == 0x2028 || code == 0x2029;
  return !direction && !line_break && code != 0xFEFF;
}

size_t nxc_character_next(const char *at, size_t n_left, bool *shown) {
  uint32_t code = 0;
  size_t n = nxc_character_decode(at, n_left, &code);
  *shown = n > 0 && is_shown(code);
  return n > 0 ? n : 1;
}

const char *nxc_characters_shown(nxc_arena *arena, const char *text) {
  if (text == NULL) return NULL;
  size_t n_bytes = strlen(text), n_plain = 0;
  while (n_plain < n_bytes && text[n_plain] >= ' ' && text[n_plain] < 0x7F) n_plain++;
  if (n_plain == n_bytes && n_bytes <= SHOWN_BYTES_MAX) return nxc_arena_strndup(arena, text, n_bytes);
  char *copy = nxc_arena_alloc(arena, (n_bytes < SHOWN_BYTES_MAX ? n_bytes : SHOWN_BYTES_MAX) + sizeof "..."),
       *to = copy;
  for (size_t i = 0, n; i < n_bytes; i += n) {
    bool shown;
    n = nxc_character_next(text + i, n_bytes - i, &shown);
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
    n = nxc_character_next(text, n_left, &shown);
    if (shown) fwrite(text, 1, n, out);
    else fputc('?', out);
  }
}
