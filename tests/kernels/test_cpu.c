/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu RECORDS: what the cpu backend promises besides numbers. Its kernels allocate nothing when they run
 * (oneDNN takes a few hundred bytes inside a product and gives them back before it returns), its workspace
 * stays below the ceiling or bind says why not, and a target that this machine lacks is refused.
 *
 * malloc and its kin are replaced here, to count. */
#include "kernels/cpu/cpu.h"
#include "schema/plan.h"
#include "tests/kernels/operation.h"
#include "tests/unit/cmocka_all.h"

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
  puts("# not counted: the allocator is AddressSanitizer's");
  return;
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
  nxk_operator operator = {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3};
  operator.args[0] = (nxk_tensor){NX_bf16, 2, {512, 256, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  operator.args[1] = (nxk_tensor){NX_f32, 2, {256, 4096, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  operator.args[2] = (nxk_tensor){NX_bf16, 2, {512, 4096, 1, 1}, NX_ARENA_scratch, 0, UINT32_MAX};
  return operator;
}

static void test_workspace_stays_below_its_ceiling(void **state) {
  (void)state;
  static const uint64_t ceilings[] = {1 << 20, 6 << 20, 32 << 20, 64 << 20};
  nxk_operator operator = logits_product();
  int n_bound = 0;
  for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
    nxk_device_options options = {
      .n_threads = 2, .target = NX_TARGET_CPU_AVX2, .workspace_bytes = ceilings[i]};
    nxk_device *device;
    nxk_kernel *kernel;
    nxk_fault fault;
    assert_true(nxk_cpu.open(&options, &device, &fault));
    bool bound = nxk_cpu.bind(device, &operator, &kernel, &fault);
    n_bound += bound;
    if (!bound) assert_non_null(strstr(fault.text, "run.workspace_bytes"));
    assert_true(nxk_cpu.workspace_bytes(device) <= ceilings[i]);
    nxk_cpu.close(device);
  }
  assert_in_range(n_bound, 1, 3);
}

/* Products that are made of several blocks: N or K is split for packing, or all three dimensions for
 * widening. */
typedef struct large_product {
  int64_t m, n, k;
  nx_dtype type, c_type;
  bool trans_a, trans_b, accumulate, bias;
} large_product;

static double pattern(int64_t i, uint32_t salt) {
  uint32_t bits = (uint32_t)i * 2654435761U + salt * 40503U;
  return (double)(int)(bits >> 20 & 127) / 64 - 1;
}

static void pattern_write(void *block, nx_dtype type, int64_t n, uint32_t salt) {
  for (int64_t i = 0; i < n; i++) {
    float value = (float)pattern(i, salt);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == NX_f32) ((float *)block)[i] = value;
    else ((uint16_t *)block)[i] = (uint16_t)(bits >> 16); /* exact: the pattern has 8 bits */
  }
}

static double number_at(const void *block, nx_dtype type, int64_t i) {
  float value = 0;
  if (type == NX_f32) return (double)((const float *)block)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)block)[i] << 16;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

/* Compares some elements, the corners among them, with sums in fp64. */
static void large_check(const large_product *p, const void *c) {
  for (int64_t sample = 0; sample < 400; sample++) {
    int64_t i = sample < 4 ? sample / 2 * (p->m - 1) : sample * 7919 % p->m;
    int64_t j = sample < 4 ? sample % 2 * (p->n - 1) : sample * 104729 % p->n;
    double sum = (p->accumulate ? pattern(i * p->n + j, 3) : 0) + (p->bias ? pattern(j, 4) : 0);
    for (int64_t k = 0; k < p->k; k++)
      sum += pattern(p->trans_a ? k * p->m + i : i * p->k + k, 1) *
             pattern(p->trans_b ? j * p->k + k : k * p->n + j, 2);
    double got = number_at(c, p->c_type, i * p->n + j), size = sum < 0 ? -sum : sum;
    double error = got < sum ? sum - got : got - sum;
    if (!(error <= (p->c_type == NX_bf16 ? 0.004 * size : 0) + 1e-3))
      fail_msg("%lld x %lld x %lld: [%lld,%lld] is %g, not %g", (long long)p->m, (long long)p->n,
               (long long)p->k, (long long)i, (long long)j, got, sum);
  }
}

static void large_run(nxk_device *device, char *arena, const large_product *p) {
  int64_t sizes[4] = {p->m * p->k, p->k * p->n, p->n, p->m * p->n};
  nx_dtype types[4] = {p->type, p->type, p->type, p->c_type};
  nxk_operator operator = {.op = NX_OP_matmul, .n_in = p->bias ? 3 : 2, .n_out = 1, .n_attrs = 3};
  nxk_tensor tensors[4] = {{.dims = {p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, 1, 1}},
                           {.dims = {p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, 1, 1}},
                           {.dims = {p->n, 1, 1, 1}},
                           {.dims = {p->m, p->n, 1, 1}}};
  uint64_t at = 0;
  for (uint32_t i = 0; i < 4; i++) {
    tensors[i].dtype = types[i];
    tensors[i].n_dims = i == 2 ? 1 : 2;
    tensors[i].arena = NX_ARENA_scratch;
    tensors[i].offset = at;
    tensors[i].shift_constant = UINT32_MAX;
    static const uint32_t salts[4] = {1, 2, 4, 3};
    pattern_write(arena + at, types[i], sizes[i], salts[i]);
    at += ((uint64_t)sizes[i] * 4 + 63) / 64 * 64;
  }
  uint32_t n_args = 0;
  for (uint32_t i = 0; i < 4; i++)
    if (i != 2 || p->bias) operator.args[n_args++] = tensors[i];
  operator.attrs[NX_matmul_trans_a].integer = p->trans_a;
  operator.attrs[NX_matmul_trans_b].integer = p->trans_b;
  operator.attrs[NX_matmul_accumulate].integer = p->accumulate;
  nxk_kernel *kernel;
  nxk_fault fault;
  nxk_frame frame = {.base = {[NX_ARENA_scratch] = arena}};
  assert_true(nxk_cpu.bind(device, &operator, &kernel, &fault));
  nxk_cpu.enqueue(device, kernel, &frame);
  large_check(p, arena + tensors[3].offset);
}

static void test_products_of_several_blocks(void **state) {
  (void)state;
  static const large_product products[] = {
    {512, 520, 8300, NX_f32, NX_f32, false, false, false, true},
    {512, 520, 8300, NX_f32, NX_f32, true, false, true, false},
    {512, 17000, 520, NX_f32, NX_f32, false, false, true, true},
    {512, 1032, 16500, NX_bf16, NX_bf16, false, false, true, true},
    {512, 1032, 8300, NX_bf16, NX_f32, true, false, true, false},
    {1040, 2064, 2100, NX_bf16, NX_bf16, false, true, false, true},
    {1040, 2064, 2100, NX_bf16, NX_f32, false, true, true, true},
    {1037, 530, 3000, NX_f32, NX_f32, false, false, true, true},
    {1027, 1000, 2304, NX_bf16, NX_bf16, false, true, false, false},
    {1037, 530, 2101, NX_bf16, NX_f32, true, false, true, false},
  };
  test_bench bench;
  assert_true(bench_open(&bench, &nxk_cpu, 128 << 20));
  nxk_device_options options = {.n_threads = 2, .target = NX_TARGET_CPU_AVX2};
  nxk_device *avx2;
  nxk_fault fault;
  assert_true(nxk_cpu.open(&options, &avx2, &fault));
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    large_run(bench.device, bench.arena, &products[i]);
    large_run(avx2, bench.arena, &products[i]);
  }
  nxk_cpu.close(avx2);
  bench_close(&bench);
}

/* Where huge pages can be: products lost up to 4 % elsewhere. */
static void test_blocks_begin_at_huge_pages(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1200 << 10, 1900 << 10, 3 << 20, 5400 << 10, 2 << 20};
  test_bench bench;
  assert_true(bench_open(&bench, &nxk_cpu, 1 << 20));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    cpu_block *block = cpu_block_new(bench.device, sizes[i]);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % (2 << 20), 0);
  }
  bench_close(&bench);
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
    cmocka_unit_test(test_products_of_several_blocks),
    cmocka_unit_test(test_blocks_begin_at_huge_pages),
    cmocka_unit_test(test_unknown_target_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
