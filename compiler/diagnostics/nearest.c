/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/diagnostics.h"

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 96 };

static int folded(char c) {
  return c == '-' ? '_' : tolower((unsigned char)c);
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Damerau's edit distance (optimal string alignment), without regard to case, with - as _. */
static size_t distance(const char *a, const char *b) {
  size_t n_a = strlen(a), n_b = strlen(b);
  if (n_a > WORD_MAX || n_b > WORD_MAX) return SIZE_MAX;
  size_t rows[3][WORD_MAX + 1];
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= n_b; j++) last[j] = j;
  for (size_t i = 1; i <= n_a; i++) {
    now[0] = i;
    for (size_t j = 1; j <= n_b; j++) {
      size_t replaced = last[j - 1] + (folded(a[i - 1]) != folded(b[j - 1]));
      now[j] = smaller(replaced, smaller(last[j], now[j - 1]) + 1);
      bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) now[j] = smaller(now[j], before[j - 2] + 1);
    }
    size_t *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[n_b];
}

const char *nxc_nearest(const char *word, const char *const *names, size_t n_names) {
  size_t n_word = strlen(word);
  size_t limit = n_word <= 3 ? 1 : n_word <= 6 ? 2 : n_word / 3 < 4 ? n_word / 3 : 4;
  const char *nearest = NULL;
  for (size_t i = 0; i < n_names; i++) {
    size_t n_name = strlen(names[i]);
    if ((n_name > n_word ? n_name - n_word : n_word - n_name) > limit) continue;
    size_t edits = distance(word, names[i]);
    if (edits > limit || (nearest != NULL && edits == limit)) continue;
    nearest = names[i];
    limit = edits;
  }
  return nearest;
}
