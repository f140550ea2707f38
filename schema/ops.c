/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/ops.h"

#include <string.h>

static const nx_attr_row attrs[NX_OP_END][NX_MAX_ATTRS + 1] = {
#define OP(number, name, min_in, max_in, min_out, max_out, kind, meaning)
#define ATTR(op, index, name, type, meaning) [NX_OP_##op][index] = {#name, NX_##type, meaning},
#include "schema/ops.def"
#undef OP
#undef ATTR
};

static const nx_op_row rows[NX_OP_END] = {
#define OP(number, name, min_in, max_in, min_out, max_out, kind, meaning) \
  [number] = {NX_OP_##name, #name, min_in, max_in, min_out, max_out, NX_##kind, attrs[number], meaning},
#define ATTR(op, index, name, type, meaning)
#include "schema/ops.def"
#undef OP
#undef ATTR
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
