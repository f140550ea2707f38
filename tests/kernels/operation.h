/* SPDX-License-Identifier: Apache-2.0 */
/* One operator on one backend, with guard bytes around every operand.
 *
 * A bench has one device and one arena, large enough for any operator of a record. An operation is a bound
 * kernel and the places of its operands in the arena; it copies operands from host tensors, runs, and copies
 * outputs back. A layout says where operands lie: shifted by frame constants or not, and which output shares
 * an input's place. */
#ifndef TESTS_KERNELS_OPERATION_H
#define TESTS_KERNELS_OPERATION_H

#include "tests/kernels/records.h"

typedef struct tensor {
  nx_dtype dtype;
  uint32_t n_dims;
  int64_t dims[NX_MAX_DIMS];
  int64_t n_elements;
  uint64_t n_bytes;
  void *data; /* owned */
} tensor;

typedef struct test_bench {
  const nxk_backend *backend;
  nxk_device *device;
  char *arena;
  uint64_t n_bytes;
} test_bench;

typedef struct test_layout {
  bool moved;       /* another frame base, offsets and integer attributes by constants */
  uint32_t out, in; /* output `out` lies where input `in` does, if aliased */
  bool aliased;
} test_layout;

typedef struct test_operation {
  test_bench *bench;
  nxk_kernel *kernel;
  nxk_operator operator;
  nxk_frame frame;
  int64_t constants[NX_MAX_ATTRS + NX_MAX_ARGS];
  uint64_t places[NX_MAX_ARGS]; /* from the start of the arena */
  uint64_t n_used;              /* bytes of the arena, guards included */
} test_operation;

typedef enum bind_result { BIND_DONE, BIND_DECLINED, BIND_FAILED } bind_result;

tensor tensor_new(const record_value *value, test_variant variant);
tensor tensor_copy(const tensor *from);
double tensor_get(const tensor *x, int64_t i);
void tensor_set(const tensor *x, int64_t i, double value);

/* Room for one operator whose operands take n_bytes together. */
bool bench_open(test_bench *bench, const nxk_backend *backend, uint64_t n_bytes);
void bench_close(test_bench *bench);

/* `args`: a tensor per operand of `op`; equal pointers are one operand in place. */
bind_result operation_bind(test_operation *operation, test_bench *bench, const record_operator *op,
                           tensor *const *args, const test_layout *layout);
/* Copies the operands in, runs, checks guards and inputs, and copies outputs into `results`, one per output.
 * Says on standard error what was overwritten. */
bool operation_run(test_operation *operation, tensor *const *args, tensor *results,
                   const test_layout *layout);
/* Only runs, on what the last operation_run left there. */
void operation_repeat(test_operation *operation);

#endif
