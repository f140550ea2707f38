/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 96 };

static char folded(char c) {
  if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Damerau's edit distance (optimal string alignment), without regard to case, with - as _; any number above
 * `limit` where it is above that. Only cells at most `limit` from the diagonal can matter. */
static size_t distance(const char *a, const char *b, size_t limit) {
  size_t n_a = strlen(a), n_b = strlen(b), far = limit + 1, least_before = 0;
  if (n_a > WORD_MAX || n_b > WORD_MAX) return far;
  size_t rows[3][WORD_MAX + 2];
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= n_b; j++) last[j] = j;
  for (size_t i = 1; i <= n_a; i++) {
    size_t from = i > limit ? i - limit : 1, to = smaller(n_b, i + limit);
    size_t least = now[from - 1] = from == 1 ? i : far;
    for (size_t j = from; j <= to; j++) {
      size_t replaced = last[j - 1] + (folded(a[i - 1]) != folded(b[j - 1]));
      now[j] = smaller(replaced, smaller(last[j], now[j - 1]) + 1);
      bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) now[j] = smaller(now[j], before[j - 2] + 1);
      least = smaller(least, now[j]);
    }
    now[to + 1] = far;
    if (least > limit && least_before > limit) return far;
    least_before = least;
    size_t *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[n_b];
}

bool nxc_one_slip(const char *one, const char *other) {
  return distance(one, other, 1) <= 1;
}

static bool is_joint(char c) {
  return c == '_' || c == '-' || c == '.' || c == '\0';
}

static size_t part_length(const char *text) {
  size_t n = 0;
  while (!is_joint(text[n])) n++;
  return n;
}

/* Whether two names of as many parts have one that is quite another: eval_batch_size and train_batch_size. */
static bool has_other_part(const char *a, const char *b) {
  bool other = false;
  for (;;) {
    char part[2][WORD_MAX + 1];
    size_t n_a = part_length(a), n_b = part_length(b), longer = n_a > n_b ? n_a : n_b;
    if (longer > WORD_MAX) return false;
    snprintf(part[0], sizeof part[0], "%.*s", (int)n_a, a);
    snprintf(part[1], sizeof part[1], "%.*s", (int)n_b, b);
    size_t limit = longer < 4 ? longer : (longer + 1) / 2;
    other = other || distance(part[0], part[1], limit) > limit;
    if ((a[n_a] == '\0') != (b[n_b] == '\0')) return false;
    if (a[n_a] == '\0') return other;
    a += n_a + 1;
    b += n_b + 1;
  }
}

static size_t common_length(const char *a, const char *b) {
  size_t n = 0;
  while (a[n] != '\0' && folded(a[n]) == folded(b[n])) n++;
  return n;
}

/* No digit differs: which of numbered names is meant nobody knows. */
static bool same_digits(const char *a, const char *b) {
  static const char digits[] = "0123456789";
  for (;; a++, b++) {
    a += strcspn(a, digits);
    b += strcspn(b, digits);
    if (*a != *b) return false;
    if (*a == '\0') return true;
  }
}

/* Of several that are as near the one that begins as the word does, for longest. A word of few letters is
 * near to too many others. */
nxc_near nxc_near_find(const char *word, const char *const *names, size_t n_names) {
  enum { SHORT = 4, LONG = 6 };
  size_t n_word = strlen(word);
  size_t limit = n_word <= 3 ? 1 : n_word <= 6 ? 2 : n_word / 3 < 4 ? n_word / 3 : 4;
  const char *nearest = NULL;
  bool alone = false;
  for (size_t i = 0; i < n_names; i++) {
    size_t n_name = strlen(names[i]);
    if ((n_name > n_word ? n_name - n_word : n_word - n_name) > limit) continue;
    size_t n_edits = distance(word, names[i], limit);
    if (n_edits > limit || has_other_part(word, names[i])) continue;
    if (nearest != NULL && n_edits == limit) {
      alone = alone && strcmp(nearest, names[i]) == 0;
      if (common_length(word, names[i]) > common_length(word, nearest)) nearest = names[i];
      continue;
    }
    nearest = names[i];
    limit = n_edits;
    alone = true;
  }
  size_t slips = n_word >= LONG ? 2 : n_word >= SHORT ? 1 : 0;
  return (nxc_near){nearest, alone && limit <= slips && same_digits(word, nearest)};
}

const char *nxc_nearest(const char *word, const char *const *names, size_t n_names) {
  return nxc_near_find(word, names, n_names).name;
}

const char *nxc_did_you_mean(nxc_arena *arena, const char *prefix, const char *name) {
  return name ? nxc_arena_printf(arena, "did you mean %s%s?", prefix, name) : NULL;
}

nxc_repair nxc_repair_misspelt(nxc_arena *arena, nxc_span at, const char *word, nxc_near near) {
  return near.name ? nxc_repair_word(arena, at, word, near.name, near.certain) : (nxc_repair){0};
}
