/* SPDX-License-Identifier: Apache-2.0 */
/* One operator, on ref unless said otherwise, on small tensors of a cmocka test. */
#ifndef NX_TESTS_REF_RUN_H
#define NX_TESTS_REF_RUN_H

#include "tests/kernels/operation.h"
#include "tests/unit/cmocka_all.h"

static inline tensor tensor_of(nx_dtype dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
  record_value value = {.dtype = dtype, .dims = {d0, d1, d2, d3}};
  while (value.n_dims < NX_MAX_DIMS && value.dims[value.n_dims] > 0) value.n_dims++;
  for (uint32_t dim = value.n_dims; dim < NX_MAX_DIMS; dim++) value.dims[dim] = 1;
  return tensor_new(&value, VARIANT_F64);
}

/* Runs one operator; outputs are written into their tensors. */
static inline void run_on(const nxk_backend *backend, nx_op op, uint32_t n_in, uint32_t n_out, tensor *args,
                          const nxk_attr *attrs) {
  record_operator row = {.op = op, .n_in = n_in, .n_out = n_out, .n_attrs = nx_op_n_attrs(nx_op_find(op))};
  tensor *operands[NX_MAX_ARGS];
  uint64_t n_bytes = 0;
  for (uint32_t index = 0; index < row.n_attrs; index++) row.attrs[index] = attrs[index];
  for (uint32_t index = 0; index < n_in + n_out; index++) {
    operands[index] = &args[index];
    n_bytes += args[index].n_bytes;
  }
  test_bench bench;
  test_operation operation;
  test_layout plain = {0};
  assert_true(bench_open(&bench, backend, n_bytes));
  assert_int_equal(operation_bind(&operation, &bench, &row, operands, &plain), BIND_DONE);
  assert_true(operation_run(&operation, operands, args + n_in, &plain));
  bench_close(&bench);
}

static inline void ref_run(nx_op op, uint32_t n_in, uint32_t n_out, tensor *args, const nxk_attr *attrs) {
  run_on(&nxk_ref, op, n_in, n_out, args, attrs);
}

static inline void tensors_free(tensor *tensors, int n_tensors) {
  for (int index = 0; index < n_tensors; index++) free(tensors[index].data);
}

static inline nxk_attr whole(int64_t value) {
  return (nxk_attr){.kind = NXK_INT, .integer = value};
}

static inline nxk_attr real(double value) {
  return (nxk_attr){.kind = NXK_REAL, .real = value};
}

#endif
