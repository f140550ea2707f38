/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of schema/dynamic8.h, the same bits without a search: the first bits of a magnitude say which values
 * can be the nearest, and no such interval holds more than one middle of two of them. */
#ifndef CPU_DYNAMIC8_H
#define CPU_DYNAMIC8_H

#include "schema/dynamic8.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
  DYNAMIC8_SHIFT = 16,      /* seven bits of the mantissa are left */
  DYNAMIC8_FIRST = 0x3380,  /* 2^-24: what is less is nearest to 0 */
  DYNAMIC8_LAST = 0x3F80,   /* 1 */
  DYNAMIC8_VALUES = 256
};

typedef struct dynamic8_map {
  int n; /* values from 0 on */
  float next[DYNAMIC8_VALUES];      /* the least magnitude that is nearer to the value behind this one */
  float stored[2][DYNAMIC8_VALUES]; /* what a value stands for, of numbers from 0 on and below */
  uint8_t nearest[DYNAMIC8_LAST - DYNAMIC8_FIRST + 1]; /* to the least number of an interval */
} dynamic8_map;

/* Of two values that are equally near the one of the even code is taken. Codes of a signed number have 0 in
 * their middle, and -1 is none of them; what is below 0 stays there. */
static inline void dynamic8_map_make(dynamic8_map *map, bool is_signed) {
  const float *values = is_signed ? nx_dynamic8_signed + 127 : nx_dynamic8_unsigned;
  int value = 0, up = is_signed ? 0 : 1;
  map->n = is_signed ? 129 : 256;
  for (int i = 0; i < map->n; i++) {
    float middle = i + 1 < map->n ? (values[i] + values[i + 1]) * 0.5F : INFINITY;
    int below = !is_signed ? 0 : i == 0 ? 1 : i == map->n - 1 ? i - 1 : i;
    map->next[i] = (i & 1) == up ? middle : nextafterf(middle, INFINITY);
    map->stored[0][i] = values[i];
    map->stored[1][i] = is_signed ? -values[below] : 0;
  }
  for (uint32_t i = 0; i <= DYNAMIC8_LAST - DYNAMIC8_FIRST; i++) {
    uint32_t bits = (DYNAMIC8_FIRST + i) << DYNAMIC8_SHIFT;
    float least;
    memcpy(&least, &bits, sizeof least);
    while (least >= map->next[value]) value++;
    map->nearest[i] = (uint8_t)value;
  }
  map->nearest[0] = 0;
}

/* At most NX_DYNAMIC8_BLOCK numbers, none of them of greater magnitude than `most`. */
static inline void dynamic8_round(const dynamic8_map *map, float *restrict x, int64_t n, float most) {
  float scaled[NX_DYNAMIC8_BLOCK];
  uint32_t first[NX_DYNAMIC8_BLOCK], below[NX_DYNAMIC8_BLOCK], none = 0;
#pragma omp simd reduction(| : none)
  for (int64_t i = 0; i < n; i++) {
    float share = x[i] / most, magnitude = __builtin_fabsf(share);
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    none |= !(magnitude <= 1);
    below[i] = x[i] < 0;
    bits >>= DYNAMIC8_SHIFT;
    first[i] = (bits > DYNAMIC8_FIRST ? bits : DYNAMIC8_FIRST) - DYNAMIC8_FIRST;
    scaled[i] = magnitude;
  }
  for (int64_t i = 0; i < n && !none; i++) {
    uint32_t value = map->nearest[first[i]];
    value += scaled[i] >= map->next[value];
    x[i] = map->stored[below[i]][value] * most;
  }
  for (int64_t i = 0; i < n && none; i++) /* one is no number, or all are 0 */
    x[i] = nx_dynamic8_stored(map->n < DYNAMIC8_VALUES, x[i], most);
}

#endif
