/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu RECORDS: what the cpu backend promises besides numbers. Its kernels allocate nothing when they run
 * (oneDNN takes a few hundred bytes inside a product and gives them back before it returns), its workspace
 * stays below the ceiling or bind says why not, and a target that this machine lacks is refused.
 *
 * malloc and its kin are replaced here, to count. */
#include "schema/plan.h"
#include "tests/kernels/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *records_path;
static bool counting;
static long n_allocated, n_freed;

#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t n_bytes);
void *__libc_calloc(size_t n, size_t n_bytes);
void *__libc_realloc(void *block, size_t n_bytes);
void *__libc_memalign(size_t alignment, size_t n_bytes);
void __libc_free(void *block);

static void count(long *counter) {
  if (counting) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t n_bytes) {
  count(&n_allocated);
  return __libc_malloc(n_bytes);
}

void *calloc(size_t n, size_t n_bytes) {
  count(&n_allocated);
  return __libc_calloc(n, n_bytes);
}

void *realloc(void *block, size_t n_bytes) {
  if (!block) count(&n_allocated);
  return __libc_realloc(block, n_bytes);
}

void *aligned_alloc(size_t alignment, size_t n_bytes) {
  count(&n_allocated);
  return __libc_memalign(alignment, n_bytes);
}

int posix_memalign(void **block, size_t alignment, size_t n_bytes) {
  count(&n_allocated);
  *block = __libc_memalign(alignment, n_bytes);
  return *block ? 0 : 12;
}

void free(void *block) {
  if (block) count(&n_freed);
  __libc_free(block);
}
#endif

static void operator_runs_without_memory(test_bench *bench, const test_record *record,
                                         const record_operator *op, tensor *values) {
  tensor *args[NX_MAX_ARGS], results[NX_MAX_ARGS];
  test_layout layout = {0};
  test_operation operation;
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++) args[i] = &values[op->args[i]];
  if (operation_bind(&operation, bench, op, args, &layout) != BIND_DONE) return;
  for (uint32_t i = 0; i < op->n_out; i++) results[i] = tensor_copy(args[op->n_in + i]);
  assert_true(operation_run(&operation, args, results, &layout));
  n_allocated = n_freed = 0;
  counting = true;
  operation_repeat(&operation);
  counting = false;
  if (op->op != NX_OP_matmul && n_allocated) fail_msg("%s allocates %ld times", record->name, n_allocated);
  if (n_allocated != n_freed) fail_msg("%s keeps %ld allocations", record->name, n_allocated - n_freed);
  for (uint32_t i = 0; i < op->n_out; i++) free(results[i].data);
}

static void test_kernels_allocate_nothing(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip();
#endif
  record_list list;
  test_bench bench;
  assert_true(records_read(records_path, &list));
  assert_true(bench_open(&bench, &nxk_cpu, 64 << 20));
  for (uint32_t r = 0; r < list.n_records; r++) {
    const test_record *record = &list.records[r];
    for (int variant = VARIANT_F32; variant < N_VARIANTS && !record->bench; variant++) {
      tensor values[RECORD_MAX_VALUES];
      if (!record->variants[variant]) continue;
      for (uint32_t i = 0; i < record->n_values; i++)
        values[i] = tensor_new(&record->values[i], (test_variant)variant);
      for (uint32_t i = 0; i < record->n_operators; i++)
        operator_runs_without_memory(&bench, record, &record->operators[i], values);
      for (uint32_t i = 0; i < record->n_values; i++) free(values[i].data);
    }
  }
  bench_close(&bench);
  free(list.records);
}

static nxk_operator logits_product(void) {
  nxk_operator operator= {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3};
  operator.args[0] =(nxk_tensor){NX_bf16, 2, {512, 256, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  operator.args[1] =(nxk_tensor){NX_f32, 2, {256, 4096, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  operator.args[2] =(nxk_tensor){NX_bf16, 2, {512, 4096, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  return operator;
}

static void test_workspace_stays_below_its_ceiling(void **state) {
  (void)state;
  static const uint64_t ceilings[] = {1 << 20, 6 << 20, 32 << 20, 64 << 20};
  nxk_operator operator= logits_product();
  int n_bound = 0;
  for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
    nxk_device_options options = {
      .n_threads = 2, .target = NX_TARGET_CPU_AVX2, .workspace_bytes = ceilings[i]};
    nxk_device *device;
    nxk_kernel *kernel;
    nxk_fault fault;
    assert_true(nxk_cpu.open(&options, &device, &fault));
    bool bound = nxk_cpu.bind(device, &operator, & kernel, &fault);
    n_bound += bound;
    if (!bound) assert_non_null(strstr(fault.text, "run.workspace_bytes"));
    assert_true(nxk_cpu.workspace_bytes(device) <= ceilings[i]);
    nxk_cpu.close(device);
  }
  assert_in_range(n_bound, 1, 3);
}

static void test_unknown_target_is_refused(void **state) {
  (void)state;
  nxk_device_options options = {.n_threads = 1, .target = 99};
  nxk_device *device;
  nxk_fault fault;
  assert_false(nxk_cpu.open(&options, &device, &fault));
  assert_non_null(strstr(fault.text, "target 99"));
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: test_cpu RECORDS\n");
    return 2;
  }
  records_path = argv[1];
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kernels_allocate_nothing),
    cmocka_unit_test(test_workspace_stays_below_its_ceiling),
    cmocka_unit_test(test_unknown_target_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
