/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX products of tile16.h and product_tiles.h by emulated instructions, so that tiles, strides and
 * layouts are tested on any machine. Small whole numbers make every product and sum exact. */
#include "tests/kernels/emulated_tiles.h"

#define CPU_AMX
#define CPU_SUFFIX amx
#include "kernels/cpu/product.c"
#include "tests/tap.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

static int drawn(void) {
  static uint32_t state = 1;
  state = state * 1664525U + 1013904223U;
  return (int)(state >> 24 & 15) - 7;
}

static uint16_t bf16_of(int value) {
  float exact = (float)value;
  uint32_t bits;
  memcpy(&bits, &exact, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static float wide(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Fills a and b as whole numbers and in the layouts of tile16.h, multiplies both ways, and compares; k in as
 * many pieces. */
static void check_product(int64_t m, int64_t n, int64_t k, int64_t slack, bool accumulate, int64_t n_pieces) {
  int64_t a_row = k / 2 + slack, b_row = n + slack, c_row = n + 2 * slack;
  int *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(k * n), sizeof *b);
  uint16_t *a_words = calloc((size_t)(m * a_row), 4), *b_words = calloc((size_t)(k / 2 * b_row), 4);
  float *c = calloc((size_t)(m * c_row), sizeof *c);
  for (int64_t i = 0; i < m * k; i++) a_words[i / k * a_row * 2 + i % k] = bf16_of(a[i] = drawn());
  for (int64_t i = 0; i < k * n; i++)
    b_words[(i / n / 2 * b_row + i % n) * 2 + i / n % 2] = bf16_of(b[i] = drawn());
  for (int64_t i = 0; i < m * c_row; i++) c[i] = 5;
  tile16_begin();
  int64_t k2 = k / 2 / (n_pieces ? n_pieces : 1);
  tile16_multiply((tile16_product){m, n, k2, (const uint32_t *)(const void *)a_words, a_row,
                                   (const uint32_t *)(const void *)b_words, b_row, c, c_row, accumulate,
                                   n_pieces, k2, k2 * b_row});
  tile16_end();
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < c_row; j++) {
      int sum = accumulate || j >= n ? 5 : 0;
      for (int64_t p = 0; p < k && j < n; p++) sum += a[i * k + p] * b[p * n + j];
      assert_true(c[i * c_row + j] == (float)sum);
    }
  free(a);
  free(b);
  free(a_words);
  free(b_words);
  free(c);
}

static void test_products_are_exact(void **state) {
  (void)state;
  check_product(64, 64, 64, 0, false, 0);
  check_product(64, 64, 64, 0, true, 0);
  check_product(64, 96, 128, 3, false, 0);
  check_product(64, 96, 128, 3, false, 4);
  check_product(128, 64, 64, 16, true, 1);
  check_product(128, 64, 64, 16, true, 2);
  check_product(32, 32, 32, 1, true, 0);
  assert_false(tiles_ready);
}

/* Numbers of a type at `data`, 64-byte aligned. */
typedef struct numbers {
  nx_dtype type;
  void *data;
} numbers;

static numbers numbers_new(nx_dtype type, int64_t n) {
  return (numbers){type, aligned_alloc(64, (size_t)cpu_align((uint64_t)n * 4))};
}

static float number(numbers x, int64_t i) {
  return x.type == NX_bf16 ? wide(((uint16_t *)x.data)[i]) : ((float *)x.data)[i];
}

static void number_set(numbers x, int64_t i, int value) {
  if (x.type == NX_bf16) ((uint16_t *)x.data)[i] = bf16_of(value);
  else ((float *)x.data)[i] = (float)value;
}

/* `times` makes them wider than a bf16, which fp32 may be. */
static numbers drawn_numbers(nx_dtype type, int64_t n, int times) {
  numbers x = numbers_new(type, n);
  for (int64_t i = 0; i < n; i++) number_set(x, i, (type == NX_bf16 ? 1 : times) * drawn());
  return x;
}

/* To the nearest bf16, of two the even one. */
static float rounded(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return wide((uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
}

/* A product of rows and columns that other ones lie around: these stay as they are. */
static void check_form(cpu_gemm_form form, int64_t n_beside, uint32_t n_threads) {
  int64_t m = form.m, n = form.n, k = form.k;
  form.a_stride = ((form.trans_a ? m : k) + 3) / 2 * 2;
  form.b_stride = ((form.trans_b ? k : n) + 5) / 2 * 2;
  form.c_stride = n + n_beside;
  numbers a = drawn_numbers(form.type, (form.trans_a ? k : m) * form.a_stride, form.accumulate ? 61 : 1),
          b = drawn_numbers(form.type, (form.trans_b ? n : k) * form.b_stride, form.accumulate ? 1 : 67),
          bias = drawn_numbers(NX_bf16, n, 1), c = numbers_new(form.c_type, m * form.c_stride);
  for (int64_t i = 0; i < m * form.c_stride; i++) number_set(c, i, 5);
  struct nxk_device device = {.n_threads = n_threads};
  assert_true(cpu_products_amx.knows(&form));
  char *scratch = aligned_alloc(64, cpu_products_amx.scratch_bytes(&device, &form));
  cpu_products_amx.run(&device, &form, &(cpu_product_operands){a.data, b.data, bias.data, c.data}, scratch);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < form.c_stride; j++) {
      float sum = j >= n || form.accumulate ? 5 : 0;
      for (int64_t p = 0; p < k && j < n; p++)
        sum += number(a, form.trans_a ? p * form.a_stride + i : i * form.a_stride + p) *
               number(b, form.trans_b ? j * form.b_stride + p : p * form.b_stride + j);
      if (form.bias_type && j < n) sum += number(bias, j);
      float is = number(c, i * form.c_stride + j);
      if (is != (c.type == NX_bf16 ? rounded(sum) : sum))
        fail_msg("%lld x %lld x %lld: [%lld,%lld] is %g, not %g", (long long)m, (long long)n, (long long)k,
                 (long long)i, (long long)j, (double)is, (double)sum);
    }
  free(a.data);
  free(b.data);
  free(bias.data);
  free(c.data);
  free(scratch);
}

static void test_forms_are_exact(void **state) {
  (void)state;
  for (int i = 0; i < 32; i++)
    check_form((cpu_gemm_form){.m = 70,
                               .n = 45,
                               .k = 131,
                               .type = i & 16 ? NX_f32 : NX_bf16,
                               .trans_a = i & 1,
                               .trans_b = i & 2,
                               .accumulate = i & 4,
                               .c_type = i & 8 ? NX_bf16 : NX_f32,
                               .bias_type = i & 4 ? 0 : NX_bf16},
               3, 1);
  for (int i = 0; i < 6; i++) /* several blocks of k, one of rows and a part of the next */
    check_form((cpu_gemm_form){.m = 262,
                               .n = 33,
                               .k = 2100,
                               .type = i & 4 ? NX_f32 : NX_bf16,
                               .trans_b = true,
                               .accumulate = i & 1,
                               .c_type = i & 2 ? NX_bf16 : NX_f32,
                               .bias_type = NX_bf16},
               3, 1);
  assert_false(tiles_ready);
}

static void test_what_goes_past_the_caches_is_exact(void **state) {
  (void)state;
  for (int i = 0; i < 5; i++) {
    cpu_gemm_form form = {.m = 530, .n = 1010, .k = 70, .c_stride = 1024, .c_type = i & 1 ? NX_bf16 : NX_f32};
    form.accumulate = i & 2;
    form.type = i & 4 ? NX_f32 : NX_bf16;
    assert_int_equal(streams(&form, NULL), !form.accumulate);
    check_form(form, form.c_stride - form.n, 1);
  }
}

static void test_parts_of_threads_are_exact(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    cpu_gemm_form form = {.m = 290, .n = 75, .k = 2101, .trans_a = i & 1, .c_type = i & 2 ? NX_bf16 : NX_f32};
    form.type = i & 8 ? NX_f32 : NX_bf16;
    check_form(form, 3, i & 4 ? 6 : 2); /* six divide rows and columns */
  }
}

/* As many columns as there is room for sums that are kept. */
static void test_kept_sums_have_room(void **state) {
  (void)state;
  for (int64_t k = 2; k < 10000; k += 2) {
    cpu_gemm_form form = {
        .m = 2048, .n = 100000, .k = k, .c_type = NX_bf16, .type = k & 4 ? NX_f32 : NX_bf16, .trans_b = true};
    cpu_product_room room = room_of(&form, form.n);
    uint64_t n_columns = (uint64_t)block_columns(&form),
             words = (uint64_t)(block_words(&form) * words_of(&form)->n_kept);
    assert_true(!keeps_sums(&form) || room.sum_bytes >= 4 * n_columns * PASS_M);
    assert_true(room.b_bytes >= 4 * n_columns * words && room.a_bytes >= 4 * A_ROWS * words);
  }
}

static float drawn_real(void) {
  return ldexpf((float)(drawn() * 16 + drawn()) + (float)(drawn() * 4096 + drawn()) * 0x1p-17F, drawn());
}

/* As good as fp32: of the parts' products none is left out that a sum would notice. */
static void test_fp32_is_as_good_as_its_format(void **state) {
  (void)state;
  enum { M = 64, N = 64, K = 64 };
  static float a[M * K] __attribute__((aligned(64))), b[K * N] __attribute__((aligned(64))),
      c[M * N] __attribute__((aligned(64)));
  for (int i = 0; i < M * K; i++) a[i] = drawn_real();
  for (int i = 0; i < K * N; i++) b[i] = drawn_real();
  cpu_gemm_form form = {.m = M, .n = N, .k = K, .a_stride = K, .b_stride = N, .c_stride = N};
  form.type = form.c_type = NX_f32;
  struct nxk_device device = {.n_threads = 1};
  char *scratch = aligned_alloc(64, cpu_products_amx.scratch_bytes(&device, &form));
  cpu_products_amx.run(&device, &form, &(cpu_product_operands){a, b, NULL, c}, scratch);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0, size = 0;
      for (int p = 0; p < K; p++) {
        double product = (double)a[i * K + p] * (double)b[p * N + j];
        sum += product;
        size += fabs(product);
      }
      assert_true(fabs((double)c[i * N + j] - sum) <= 0x1p-21 * size);
    }
  free(scratch);
}

/* The three parts of 24 bits, and what has no parts. */
static void test_numbers_are_split_exactly(void **state) {
  (void)state;
  float x[LANES] = {1.5F,       0,        0x1.FFFFFEp0F, -0x1.FFFFFEp90F, 0x1.010101p-80F, 0x1.FEFEFEp0F,
                    -0x1.8p-9F, INFINITY, NAN,           0x1.00FFFFp3F,   -0x1.80807Fp5F,  3};
  const uint32_t all_ones = 0x7FFFFFFF;
  memcpy(&x[15], &all_ones, sizeof all_ones);
  uint32_t words[SPLIT][LANES] __attribute__((aligned(64)));
  split_pair(_mm512_loadu_ps(x), _mm512_loadu_ps(x), words[0], LANES);
  for (int i = 0; i < LANES; i++) {
    float low = 0, high = 0;
    for (int part = 0; part < SPLIT; part++) {
      low += wide((uint16_t)words[part][i]);
      high += wide((uint16_t)(words[part][i] >> 16));
    }
    assert_true(isfinite(x[i]) ? low == x[i] && high == x[i] : isnan(low) && isnan(high));
  }
}

int main(void) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw"))
    return tap_skip_all("the rest of tile16.h is compiled for AVX-512");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_are_exact),
                                     cmocka_unit_test(test_forms_are_exact),
                                     cmocka_unit_test(test_what_goes_past_the_caches_is_exact),
                                     cmocka_unit_test(test_parts_of_threads_are_exact),
                                     cmocka_unit_test(test_kept_sums_have_room),
                                     cmocka_unit_test(test_fp32_is_as_good_as_its_format),
                                     cmocka_unit_test(test_numbers_are_split_exactly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
