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
  const float *values; /* ascending from 0 on */
  int n, up; /* how many; of two that are equally near the greater is taken behind an even (0), odd (1) one */
  float middle[DYNAMIC8_VALUES]; /* of a value and the next */
  uint8_t nearest[DYNAMIC8_LAST - DYNAMIC8_FIRST + 1]; /* to the least number of an interval */
} dynamic8_map;

static inline int dynamic8_step(const dynamic8_map *map, int value, float size) {
  return size > map->middle[value] || (size == map->middle[value] && (value & 1) == map->up);
}

/* Codes of a signed number have 0 in their middle, and -1 is none of them. */
static inline void dynamic8_map_make(dynamic8_map *map, bool is_signed) {
  int value = 0;
  map->values = is_signed ? nx_dynamic8_signed + 127 : nx_dynamic8_unsigned;
  map->n = is_signed ? 129 : 256;
  map->up = is_signed ? 0 : 1;
  for (int i = 0; i + 1 < map->n; i++) map->middle[i] = (map->values[i] + map->values[i + 1]) * 0.5F;
  map->middle[map->n - 1] = INFINITY;
  for (uint32_t i = 0; i <= DYNAMIC8_LAST - DYNAMIC8_FIRST; i++) {
    uint32_t bits = (DYNAMIC8_FIRST + i) << DYNAMIC8_SHIFT;
    float least;
    memcpy(&least, &bits, sizeof least);
    while (dynamic8_step(map, value, least)) value++;
    map->nearest[i] = (uint8_t)value;
  }
  map->nearest[0] = 0;
}

/* Of a magnitude that is at most 1. */
static inline int dynamic8_nearest(const dynamic8_map *map, float size) {
  uint32_t bits;
  memcpy(&bits, &size, sizeof bits);
  bits >>= DYNAMIC8_SHIFT;
  int value = map->nearest[(bits > DYNAMIC8_FIRST ? bits : DYNAMIC8_FIRST) - DYNAMIC8_FIRST];
  return value + ((size > map->middle[value]) | ((size == map->middle[value]) & ((value & 1) == map->up)));
}

/* At most NX_DYNAMIC8_BLOCK numbers, none of them of greater magnitude than `most`. */
static inline void dynamic8_round(const dynamic8_map *map, float *restrict x, int64_t n, float most) {
  float scaled[NX_DYNAMIC8_BLOCK];
  bool is_signed = map->n < DYNAMIC8_VALUES;
  for (int64_t i = 0; i < n; i++) scaled[i] = x[i] / most;
  for (int64_t i = 0; i < n; i++) {
    float size = !is_signed && scaled[i] < 0 ? 0 : __builtin_fabsf(scaled[i]);
    if (!(size <= 1)) { /* no number, or one of a block of zeros */
      x[i] = nx_dynamic8_stored(is_signed, x[i], most);
      continue;
    }
    int value = dynamic8_nearest(map, size), below = is_signed & (x[i] < 0);
    value += below & (value == 0);           /* what is below 0 stays there */
    value -= below & (value == map->n - 1); /* -1 */
    x[i] = __builtin_copysignf(map->values[value], value ? x[i] : 0) * most;
  }
}

#endif
