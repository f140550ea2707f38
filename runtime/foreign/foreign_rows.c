/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign/foreign_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t nxr_stack_split(const nxr_stack *s, uint64_t row, uint64_t *of_part) {
  uint64_t group = s->total / s->n_groups, at = row % group;
  *of_part = row / s->n;
  if (s->layout == TURNS) return (uint32_t)(row % s->n);
  for (uint32_t i = 0; i < s->n; i++) {
    uint64_t n = s->rows[i] / s->n_groups;
    if (at < n) {
      *of_part = row / group * n + at;
      return i;
    }
    at -= n;
  }
  return 0;
}

uint64_t nxr_stack_row(const nxr_stack *s, uint32_t part, uint64_t row) {
  uint64_t n = s->rows[part] / s->n_groups, before = 0;
  for (uint32_t i = 0; i < part; i++) before += s->rows[i] / s->n_groups;
  return row / n * (s->total / s->n_groups) + before + row % n;
}

bool nxr_stack_divides(const nxr_stack *s) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->rows[i] == 0 || s->rows[i] % s->n_groups != 0) return false;
  return s->n > 0;
}

const char *nxr_next_word(const char *list, char word[24]) {
  int n = 0;
  if (sscanf(list, " %23s%n", word, &n) != 1) return NULL;
  return list + n;
}

bool nxr_name_fits(const char *pattern, const char *name, uint64_t at[2]) {
  char *end;
  int n = 0;
  for (; *pattern != '\0'; pattern++) {
    if (*pattern == '*') return strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0;
    if (n < 2 && strncmp(pattern, "%d", 2) == 0) {
      at[n++] = strtoull(name, &end, 10);
      if (end == name) return false;
      name = end;
      pattern++;
    } else if (*pattern != *name++) return false;
  }
  return *name == '\0';
}

void nxr_name_print(const char *pattern, const uint64_t at[2], const char *kind, char name[NXR_PART_NAME]) {
  int numbers = 0;
  for (size_t n = 0; n + 1 < NXR_PART_NAME; pattern++) {
    size_t room = NXR_PART_NAME - n;
    int more = 1;
    name[n] = *pattern;
    if (*pattern == '\0') return;
    if (*pattern == '*') more = snprintf(name + n, room, "%s", kind);
    if (numbers < 2 && strncmp(pattern, "%d", 2) == 0) {
      more = snprintf(name + n, room, "%llu", (unsigned long long)at[numbers++]);
      pattern++;
    }
    n += (size_t)more < room ? (size_t)more : room - 1;
    name[n] = '\0';
  }
}
