/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/base64.h"

#include "tokenizer/memory.h"

static int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool nxt_base64(const char *text, size_t n_chars, nxt_text *bytes) {
  while (n_chars > 0 && text[n_chars - 1] == '=') n_chars--;
  if (n_chars == 0 || n_chars % 4 == 1) return false;
  char *to = nxt_text_reserve(bytes, n_chars / 4 * 3 + 3);
  uint32_t bits = 0;
  unsigned n_bits = 0;
  for (size_t i = 0; i < n_chars; i++) {
    int digit = digit_of(text[i]);
    if (digit < 0) return false;
    bits = bits << 6 | (uint32_t)digit;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    *to++ = (char)(bits >> n_bits);
    bytes->n++;
  }
  return true;
}
