/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/ops.h"

#include <float.h>
#include <string.h>

/* How ops.def says the type of an attribute. */
#define NX_ATTR_INT(min, max) .type = NX_INT, .least = min, .greatest = max
#define NX_ATTR_CONSTANT(min, max) NX_ATTR_INT(min, max), .may_vary = true
#define NX_ATTR_FLAG NX_ATTR_INT(0, 1)
#define NX_ATTR_ENUM(names) .type = NX_INT, .values = names
#define NX_ATTR_REAL(min, max) .type = NX_REAL, .lowest = min, .highest = max
#define BELOW_ONE 0x1.fffffffffffffp-1
#define MOST_STEPS (INT64_C(1) << 48)

/* One list of all attributes, an operator's behind one another; where an operator begins is an empty row,
 * which ends those of the one before it. */
enum {
#define OP(number, name, class, signature, meaning) START_##name,
#define ATTR(op, index, attribute, kind, text) PLACE_##op##_##attribute,
#include "schema/ops.def"
  PLACES_END
};

#define ATTR(op, index, attribute, kind, text) \
  _Static_assert(PLACE_##op##_##attribute == START_##op + 1 + index, "attributes of " #op " are in order");
#include "schema/ops.def"

static const nx_attr_row attrs[PLACES_END + 1] = {
#define ATTR(op, index, attribute, kind, text) \
  [PLACE_##op##_##attribute] = {.name = #attribute, .meaning = text, NX_ATTR_##kind},
#include "schema/ops.def"
};

static const nx_op_row rows[NX_OP_END] = {
#define OP(number, name, class, signature, meaning) \
  [number] = {NX_OP_##name, #name, NX_##class, signature, &attrs[START_##name + 1], meaning},
#include "schema/ops.def"
};

typedef struct dtype_row {
  const char *name;
  uint32_t bits;
} dtype_row;

static const dtype_row dtypes[NX_DTYPE_END] = {
#define DTYPE(number, name, bits, meaning) [number] = {#name, bits},
#include "schema/dtypes.def"
#undef DTYPE
};

typedef struct arena_row {
  const char *name;
  const char *meaning;
} arena_row;

static const arena_row arenas[NX_N_ARENAS] = {
#define ARENA(number, name, meaning) [number] = {#name, meaning},
#include "schema/arenas.def"
#undef ARENA
};

const nx_op_row *nx_op_find(uint32_t number) {
  return number < NX_OP_END && rows[number].name ? &rows[number] : NULL;
}

const nx_op_row *nx_op_find_name(const char *name) {
  for (uint32_t number = 0; number < NX_OP_END; number++)
    if (rows[number].name && strcmp(rows[number].name, name) == 0) return &rows[number];
  return NULL;
}

uint32_t nx_op_n_attrs(const nx_op_row *row) {
  uint32_t n_attrs = 0;
  while (row->attrs[n_attrs].name) n_attrs++;
  return n_attrs;
}

uint32_t nx_op_find_attr(const nx_op_row *row, const char *name, size_t n_chars) {
  for (uint32_t index = 0; row->attrs[index].name; index++)
    if (strncmp(row->attrs[index].name, name, n_chars) == 0 && row->attrs[index].name[n_chars] == '\0')
      return index;
  return NX_MAX_ATTRS;
}

uint32_t nx_op_accumulate(const nx_op_row *row) {
  return nx_op_find_attr(row, "accumulate", strlen("accumulate"));
}

uint32_t nx_dtype_bits(uint32_t number) {
  return number < NX_DTYPE_END ? dtypes[number].bits : 0;
}

const char *nx_dtype_name(uint32_t number) {
  return number < NX_DTYPE_END && dtypes[number].name ? dtypes[number].name : "?";
}

const char *nx_arena_name(uint32_t number) {
  return number < NX_N_ARENAS ? arenas[number].name : "?";
}

const char *nx_arena_meaning(uint32_t number) {
  return number < NX_N_ARENAS ? arenas[number].meaning : "?";
}
