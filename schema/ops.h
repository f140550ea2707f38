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
#define OP(number, name, class, signature, meaning) NX_OP_##name = number,
#include "schema/ops.def"
  NX_OP_END = 256 /* above all numbers, whatever their order */
} nx_op;

/* Attribute positions: NX_matmul_trans_a and so on. */
enum {
#define ATTR(op, index, name, type, meaning) NX_##op##_##name = index,
#include "schema/ops.def"
};

/* Attribute `function` of activation and gated, in the order of their names in ops.def. */
typedef enum nx_activation {
  NX_ACTIVATION_GELU,
  NX_ACTIVATION_GELU_TANH,
  NX_ACTIVATION_RELU,
  NX_ACTIVATION_SQUARED_RELU,
  NX_ACTIVATION_SILU,
  NX_ACTIVATION_QUICK_GELU,
  NX_ACTIVATION_MISH,
  NX_ACTIVATION_SOFTSIGN,
  NX_ACTIVATION_SIGMOID,
  NX_ACTIVATION_IDENTITY
} nx_activation;

typedef enum nx_op_class {
  NX_PRODUCT,
  NX_ATTENTION,
  NX_ACTIVATION,
  NX_POINTWISE,
  NX_REDUCTION,
  NX_LAYOUT, /* moves numbers, and computes little */
  NX_OPTIMIZER,
  NX_COLLECTIVE
} nx_op_class;

typedef enum nx_attr_type { NX_INT, NX_REAL } nx_attr_type;

enum { NX_MAX_DIMS = 4, NX_MAX_ARGS = 16, NX_MAX_ATTRS = 17 };

typedef struct nx_attr_row {
  const char *name, *meaning;
  nx_attr_type type;
  bool may_vary;            /* may be behind a constant */
  int64_t least, greatest;  /* NX_INT */
  double lowest, highest;   /* NX_REAL */
  const char *values;       /* of an enumeration: names from 0, separated by blanks; else NULL */
} nx_attr_row;

typedef struct nx_op_row {
  nx_op op;
  const char *name;
  nx_op_class class;
  const char *signature;
  const nx_attr_row *attrs; /* ends with a row without a name */
  const char *meaning;
} nx_op_row;

typedef enum nx_added { NX_ADDED_NEVER, NX_ADDED_ON_REQUEST /* `accumulate` */, NX_ADDED_ALWAYS } nx_added;

/* An operand of a signature, as ops.def says it. */
typedef struct nx_operand_row {
  char type;
  const char *dims; /* n_chars of the signature */
  uint32_t n_chars;
  bool may_end;      /* this one and all behind it on its side may be left out */
  nx_added added;    /* outputs */
  uint32_t shares;   /* bit i: may have the bytes of input i */
  bool in_place;     /* and must */
} nx_operand_row;

typedef struct nx_signature {
  uint32_t n_in, n_out;                /* with all that may be left out */
  uint32_t min_in, min_out;
  nx_operand_row operands[NX_MAX_ARGS]; /* inputs, then outputs */
  const char *relations;
} nx_signature;

/* NULL where the number is not in the table. */
const nx_op_row *nx_op_find(uint32_t number);
const nx_op_row *nx_op_find_name(const char *name);
uint32_t nx_op_n_attrs(const nx_op_row *row);
/* NX_MAX_ATTRS where the row has none of that name; `n_chars` of it count. */
uint32_t nx_op_find_attr(const nx_op_row *row, const char *name, size_t n_chars);
/* That of the attribute `accumulate`. */
uint32_t nx_op_accumulate(const nx_op_row *row);
static inline bool nx_op_is_collective(const nx_op_row *row) {
  return row->class == NX_COLLECTIVE;
}

nx_signature nx_op_signature(const nx_op_row *row);
/* Whether an operator may have so many operands. */
bool nx_signature_admits(const nx_signature *signature, uint32_t n_in, uint32_t n_out);
static inline const nx_operand_row *nx_signature_output(const nx_signature *signature, uint32_t index) {
  return &signature->operands[signature->n_in + index];
}
/* 0 where the number is not in the table. */
uint32_t nx_dtype_bits(uint32_t number);
const char *nx_dtype_name(uint32_t number);
/* Whether weights and activations may have it. */
static inline bool nx_dtype_is_real(uint32_t number) {
  return number == NX_f32 || number == NX_bf16 || number == NX_f16;
}
const char *nx_arena_name(uint32_t number);
const char *nx_arena_meaning(uint32_t number);

#endif
