/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/charsmap.h"

#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

struct nxt_charsmap {
  uint32_t *units;
  size_t n_units;
  char *forms; /* texts, each with a NUL behind */
  size_t n_forms;
};

nxt_charsmap *nxt_charsmap_open(const char *bytes, size_t n_bytes) {
  uint32_t n_array;
  if (n_bytes < sizeof n_array) return NULL;
  memcpy(&n_array, bytes, sizeof n_array);
  bytes += sizeof n_array;
  n_bytes -= sizeof n_array;
  if (n_array > n_bytes || n_array < 4 || n_array % 4 != 0) return NULL;
  if (nxt_valid_bytes(bytes + n_array, n_bytes - n_array) < n_bytes - n_array) return NULL;
  nxt_charsmap *map = nxt_new(1, sizeof *map);
  map->n_units = n_array / 4;
  map->units = nxt_new(map->n_units, 4);
  memcpy(map->units, bytes, n_array);
  map->n_forms = n_bytes - n_array;
  map->forms = nxt_copy(bytes + n_array, map->n_forms);
  return map;
}

void nxt_charsmap_close(nxt_charsmap *map) {
  if (map == NULL) return;
  free(map->units);
  free(map->forms);
  free(map);
}

/* What a unit of the array says. */
static bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}

static uint32_t label_of(uint32_t unit) {
  return unit & (1u << 31 | 0xff);
}

static size_t offset_of(uint32_t unit) {
  return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

static bool take_form(const nxt_charsmap *map, size_t unit, const char **form, size_t *n_form) {
  size_t begin = map->units[unit] & ~(1u << 31);
  if (begin >= map->n_forms || (map->forms[begin] & 0xc0) == 0x80) return false;
  *form = map->forms + begin;
  *n_form = strnlen(*form, map->n_forms - begin);
  return true;
}

static size_t find(const nxt_charsmap *map, const char *at, const char *end, bool shortest, const char **form,
                   size_t *n_form) {
  size_t place = offset_of(map->units[0]), found = 0;
  for (const char *next = at; next < end && *next != '\0';) {
    place ^= (uint8_t)*next;
    if (place >= map->n_units || label_of(map->units[place]) != (uint8_t)*next) break;
    uint32_t unit = map->units[place];
    place ^= offset_of(unit);
    next++;
    if (place >= map->n_units) break;
    if (!has_leaf(unit) || !take_form(map, place, form, n_form)) continue;
    found = (size_t)(next - at);
    if (shortest) break;
  }
  return found;
}

size_t nxt_charsmap_shortest(const nxt_charsmap *map, const char *at, const char *end, const char **form,
                             size_t *n_form) {
  return find(map, at, end, true, form, n_form);
}

size_t nxt_charsmap_longest(const nxt_charsmap *map, const char *at, const char *end, const char **form,
                            size_t *n_form) {
  return find(map, at, end, false, form, n_form);
}
