/* SPDX-License-Identifier: Apache-2.0 */
/* The operator, type and arena tables of ops.def, dtypes.def and arenas.def as enums and rows. */
#ifndef NX_OPS_H
#define NX_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nx_dtype {
#define DTYPE(number, name, bits, meaning) NX_##name = number,
#include "schema/dtypes.def"
#undef DTYPE
  NX_DTYPE_END
} nx_dtype;

typedef enum nx_arena_kind {
#define ARENA(number, name, meaning) NX_ARENA_##name = number,
#include "schema/arenas.def"
#undef ARENA
  NX_N_ARENAS
} nx_arena_kind;

typedef enum nx_op {
#define OP(number, name, min_in, max_in, min_out, max_out, kind, meaning) NX_OP_##name = number,
#define ATTR(op, index, name, type, meaning)
#include "schema/ops.def"
#undef OP
#undef ATTR
  NX_OP_END
} nx_op;

/* Attribute positions: NX_matmul_trans_a and so on. */
enum {
#define OP(number, name, min_in, max_in, min_out, max_out, kind, meaning)
#define ATTR(op, index, name, type, meaning) NX_##op##_##name = index,
#include "schema/ops.def"
#undef OP
#undef ATTR
};

typedef enum nx_op_kind { NX_COMPUTE, NX_COMM } nx_op_kind;
typedef enum nx_attr_type { NX_INT, NX_REAL } nx_attr_type;

enum { NX_MAX_DIMS = 4, NX_MAX_ARGS = 16, NX_MAX_ATTRS = 16 };

typedef struct nx_attr_row {
  const char *name;
  nx_attr_type type;
  const char *meaning;
} nx_attr_row;

typedef struct nx_op_row {
  nx_op op;
  const char *name;
  uint8_t min_in, max_in, min_out, max_out;
  nx_op_kind kind;
  const nx_attr_row *attrs; /* ends with a row without a name */
  const char *meaning;
} nx_op_row;

/* NULL where the number is not in the table. */
const nx_op_row *nx_op_find(uint32_t number);
const nx_op_row *nx_op_find_name(const char *name);
uint32_t nx_op_n_attrs(const nx_op_row *row);
/* 0 where the number is not in the table. */
uint32_t nx_dtype_bits(uint32_t number);
const char *nx_dtype_name(uint32_t number);
const char *nx_arena_name(uint32_t number);
const char *nx_arena_meaning(uint32_t number);

#endif
