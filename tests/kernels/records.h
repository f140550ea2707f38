/* SPDX-License-Identifier: Apache-2.0 */
/* The records of operators.txt in memory. Everything is indices into the record's values and operators. */
#ifndef TESTS_KERNELS_RECORDS_H
#define TESTS_KERNELS_RECORDS_H

#include "kernels/backend.h"

#include <stdbool.h>
#include <stdint.h>

enum { RECORD_MAX_VALUES = 40, RECORD_MAX_OPERATORS = 6, RECORD_MAX_PAIRS = 6, RECORD_MAX_LIST = 32 };

/* What `a` stands for: the type of most operands. */
typedef enum test_variant { VARIANT_F64, VARIANT_F32, VARIANT_BF16, VARIANT_F16, N_VARIANTS } test_variant;

typedef enum fill_kind {
  FILL_OUTPUT,
  FILL_NORMAL,
  FILL_UNIFORM,
  FILL_INT,
  FILL_COUNT,
  FILL_VALUE,
  FILL_LIST,
  FILL_PLACES,
  FILL_STARTS
} fill_kind;

typedef struct record_value {
  char name[16];
  char type; /* 'a', 's', or 0: dtype */
  nx_dtype dtype;
  uint32_t n_dims;
  int64_t dims[NX_MAX_DIMS];
  fill_kind fill;
  double low, high; /* or standard deviation, or value, in low */
  double length;    /* of documents */
  bool added_to;    /* an output that keeps what it held */
  uint32_t n_listed, n_expected;
  double listed[RECORD_MAX_LIST], expected[RECORD_MAX_LIST];
} record_value;

typedef struct record_operator {
  nx_op op;
  uint32_t n_in, n_out, n_attrs;
  uint32_t args[NX_MAX_ARGS]; /* values: inputs, then outputs */
  nxk_attr attrs[NX_MAX_ATTRS];
} record_operator;

typedef struct record_pair {
  uint32_t value, gradient;
} record_pair;

typedef struct record_bound {
  double norm, max; /* 0: the default */
} record_bound;

typedef struct test_record {
  char name[64];
  bool bench;
  bool variants[N_VARIANTS];
  uint32_t n_values, n_operators, n_outputs, n_inputs;
  record_value values[RECORD_MAX_VALUES];
  record_operator operators[RECORD_MAX_OPERATORS];
  record_pair outputs[RECORD_MAX_PAIRS], inputs[RECORD_MAX_PAIRS]; /* of `gradient` */
  record_bound bounds[NX_DTYPE_END];                               /* by type of the output */
} test_record;

typedef struct record_list {
  test_record *records;
  uint32_t n_records;
} record_list;

/* False after saying on standard error what is wrong, with file and line. free(list->records) afterwards. */
bool records_read(const char *path, record_list *list);
nx_dtype record_dtype(const record_value *value, test_variant variant);
const char *variant_name(test_variant variant);

#endif
