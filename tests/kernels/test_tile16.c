/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX products of tile16.h and product_tiles.h by emulated instructions, so that tiles, strides and
 * layouts are tested on any machine. Small whole numbers make every product and sum exact. */
#include "tests/kernels/emulated_tiles.h"

#define CPU_AMX
#define CPU_SUFFIX amx
#include "kernels/cpu/product.c"
#include "tests/tap.h"
#include "tests/unit/cmocka_all.h"

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

static uint16_t *drawn_matrix(int64_t n) {
  uint16_t *x = calloc((size_t)n, sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = bf16_of(drawn());
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
  bool narrow = form.c_type == NX_bf16;
  int64_t m = form.m, n = form.n, k = form.k, c_size = narrow ? 2 : 4;
  form.type = NX_bf16;
  form.a_stride = ((form.trans_a ? m : k) + 3) / 2 * 2;
  form.b_stride = ((form.trans_b ? k : n) + 5) / 2 * 2;
  form.c_stride = n + n_beside;
  uint16_t *a = drawn_matrix((form.trans_a ? k : m) * form.a_stride),
           *b = drawn_matrix((form.trans_b ? n : k) * form.b_stride), *bias = drawn_matrix(n);
  char *c = aligned_alloc(64, (size_t)cpu_align((uint64_t)(m * form.c_stride * c_size)));
  for (int64_t i = 0; i < m * form.c_stride; i++)
    if (narrow) ((uint16_t *)(void *)c)[i] = bf16_of(5);
    else ((float *)(void *)c)[i] = 5;
  struct nxk_device device = {.n_threads = n_threads};
  assert_true(cpu_products_amx.knows(&form));
  char *scratch = aligned_alloc(64, cpu_products_amx.scratch_bytes(&device, &form));
  cpu_products_amx.run(&device, &form, &(cpu_product_operands){a, b, bias, c}, scratch);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < form.c_stride; j++) {
      float sum = j >= n || form.accumulate ? 5 : 0;
      for (int64_t p = 0; p < k && j < n; p++)
        sum += wide(form.trans_a ? a[p * form.a_stride + i] : a[i * form.a_stride + p]) *
               wide(form.trans_b ? b[j * form.b_stride + p] : b[p * form.b_stride + j]);
      if (form.bias_type && j < n) sum += wide(bias[j]);
      int64_t at = i * form.c_stride + j;
      float is = narrow ? wide(((uint16_t *)(void *)c)[at]) : ((float *)(void *)c)[at];
      if (is != (narrow ? rounded(sum) : sum))
        fail_msg("%lld x %lld x %lld: [%lld,%lld] is %g, not %g", (long long)m, (long long)n, (long long)k,
                 (long long)i, (long long)j, (double)is, (double)sum);
    }
  free(a);
  free(b);
  free(bias);
  free(c);
  free(scratch);
}

static void test_forms_are_exact(void **state) {
  (void)state;
  for (int i = 0; i < 16; i++)
    check_form((cpu_gemm_form){.m = 70,
                               .n = 45,
                               .k = 131,
                               .trans_a = i & 1,
                               .trans_b = i & 2,
                               .accumulate = i & 4,
                               .c_type = i & 8 ? NX_bf16 : NX_f32,
                               .bias_type = i & 4 ? 0 : NX_bf16},
               3, 1);
  for (int i = 0; i < 4; i++) /* several blocks of k, one of rows and a part of the next */
    check_form((cpu_gemm_form){.m = 262,
                               .n = 33,
                               .k = 2100,
                               .trans_b = true,
                               .accumulate = i & 1,
                               .c_type = i & 2 ? NX_bf16 : NX_f32,
                               .bias_type = NX_bf16},
               3, 1);
  assert_false(tiles_ready);
}

static void test_what_goes_past_the_caches_is_exact(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    cpu_gemm_form form = {.m = 530, .n = 1010, .k = 70, .c_stride = 1024, .c_type = i & 1 ? NX_bf16 : NX_f32};
    form.accumulate = i & 2;
    assert_int_equal(streams(&form, NULL), !form.accumulate);
    check_form(form, form.c_stride - form.n, 1);
  }
}

static void test_parts_of_threads_are_exact(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) {
    cpu_gemm_form form = {.m = 290, .n = 75, .k = 2101, .trans_a = i & 1, .c_type = i & 2 ? NX_bf16 : NX_f32};
    form.type = NX_bf16;
    check_form(form, 3, i & 4 ? 6 : 2); /* six divide rows and columns */
  }
}

/* As many columns as there is room for sums that are kept. */
static void test_kept_sums_have_room(void **state) {
  (void)state;
  for (int64_t k = 2; k < 10000; k += 2) {
    cpu_gemm_form form = {
        .m = 2048, .n = 100000, .k = k, .c_type = NX_bf16, .type = NX_bf16, .trans_b = true};
    cpu_product_room room = room_of(&form, form.n);
    uint64_t n_columns = (uint64_t)block_columns(&form), words = (uint64_t)block_words(&form);
    assert_true(!keeps_sums(&form) || room.sum_bytes >= 4 * n_columns * PASS_M);
    assert_true(room.b_bytes >= 4 * n_columns * words && room.a_bytes >= 4 * A_ROWS * words);
  }
}

int main(void) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw"))
    return tap_skip_all("the rest of tile16.h is compiled for AVX-512");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products_are_exact), cmocka_unit_test(test_forms_are_exact),
      cmocka_unit_test(test_what_goes_past_the_caches_is_exact),
      cmocka_unit_test(test_parts_of_threads_are_exact), cmocka_unit_test(test_kept_sums_have_room)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
