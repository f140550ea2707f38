/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/text.h"

size_t nxj_code_point_bytes(const char *text, size_t n_bytes) {
  unsigned char first = (unsigned char)text[0];
  size_t n = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (n > n_bytes) return 1;
  for (size_t i = 1; i < n; i++)
    if (((unsigned char)text[i] & 0xc0) != 0x80) return 1;
  return n;
}

size_t nxj_code_points(const char *text, size_t n_bytes) {
  size_t n = 0;
  for (size_t at = 0; at < n_bytes; at += nxj_code_point_bytes(text + at, n_bytes - at)) n++;
  return n;
}
