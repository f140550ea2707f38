/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/characters.h"

#include <string.h>

size_t nx_character_decode(const char *at, size_t n_left, uint32_t *code) {
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

size_t nx_character_next(const char *at, size_t n_left, bool *shown) {
  uint32_t code = 0;
  size_t n = nx_character_decode(at, n_left, &code);
  *shown = n > 0 && is_shown(code);
  return n > 0 ? n : 1;
}

void nx_characters_hide(char *text) {
  char *to = text;
  for (size_t n, n_left = strlen(text); n_left > 0; text += n, n_left -= n) {
    bool shown;
    n = nx_character_next(text, n_left, &shown);
    if (shown || *text == '\n') to = (char *)memmove(to, text, n) + n;
    else *to++ = '?';
  }
  *to = '\0';
}
