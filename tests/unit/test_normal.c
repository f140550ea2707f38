/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights' random numbers: right, and the same bits everywhere. Expected values are those of Python's
 * statistics.NormalDist().inv_cdf((word + 0.5) / 2**32). */
#include "schema/normal.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static void test_quantiles(void **state) {
  (void)state;
  static const struct {
    uint32_t word;
    double z;
  } cases[] = {
      {0, -6.337957754553788},         {1, -6.166429517819749},          {1000, -5.039851125968711},
      {123456789, -1.899573995506065}, {268435456, -1.5341205434059566}, {322122547, -1.4395314704450153},
      {2147483648, 2.9180993729e-10},  {3221225473, 0.6744897512951117}, {3758096384, 1.1503493809415333},
      {4294967280, 5.78577796547104},  {4294967295, 6.337957754553788}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(fabs(nx_normal(cases[i].word) - cases[i].z) <= 1e-9 * fabs(cases[i].z));
}

static void test_odd(void **state) {
  (void)state;
  for (uint64_t word = 0; word < UINT64_C(1) << 31; word += 9176401)
    assert_true(nx_normal((uint32_t)word) == -nx_normal(~(uint32_t)word));
}

static void test_rising(void **state) {
  (void)state;
  double last = -7;
  for (uint64_t word = 0; word < UINT64_C(1) << 32; word += 4194301) {
    double z = nx_normal((uint32_t)word);
    assert_true(z > last);
    last = z;
  }
}

/* The bits themselves: another compiler, flag or libm that changed them would change every training. */
static void test_bits(void **state) {
  (void)state;
  uint64_t hash = 0;
  for (uint32_t column4 = 0; column4 < 4096; column4++) {
    nx_philox bits = nx_normal_bits(1234, 7, 3, column4);
    for (int i = 0; i < 4; i++) {
      double z = nx_normal(bits.word[i]);
      uint64_t word;
      memcpy(&word, &z, sizeof word);
      hash = (hash ^ word) * UINT64_C(0x100000001B3);
    }
  }
  assert_int_equal(hash, UINT64_C(0x9e36cda720312e57));
}

/* Many at a time are the same bits as one by one. */
static void test_many(void **state) {
  (void)state;
  uint32_t words[NX_NORMALS] = {0,         UINT32_MAX, 322122546,  322122547,
                                322122548, 3972844747, 3972844748, 3972844749};
  double z[NX_NORMALS];
  for (int i = 8; i < NX_NORMALS; i++) words[i] = words[i - 1] * 1664525 + 1013904223;
  for (int n = 1; n <= NX_NORMALS; n += 51) {
    nx_normals(words, n, z);
    for (int i = 0; i < n; i++) assert_true(z[i] == nx_normal(words[i]));
  }
}

static void test_moments(void **state) {
  (void)state;
  double sums[5] = {0};
  const uint32_t n = 400000;
  for (uint32_t i = 0; i < n / 4; i++) {
    nx_philox bits = nx_normal_bits(99, 5, i / 64, i % 64);
    for (int word = 0; word < 4; word++) {
      double z = nx_normal(bits.word[word]), power = 1;
      for (int k = 0; k < 5; k++) sums[k] += power, power *= z;
    }
  }
  assert_true(fabs(sums[1] / n) < 0.01);
  assert_true(fabs(sums[2] / n - 1) < 0.01);
  assert_true(fabs(sums[3] / n) < 0.03);
  assert_true(fabs(sums[4] / n - 3) < 0.06);
}

static void test_uniform(void **state) {
  (void)state;
  double sum = 0, squares = 0;
  const uint32_t n = 4096;
  for (uint32_t i = 0; i < n; i++) {
    double x = nx_uniform(i * (UINT32_MAX / n));
    sum += x;
    squares += x * x;
  }
  assert_true(fabs(sum / n) < 1e-3 && fabs(squares / n - 1) < 1e-3);
  assert_true(nx_uniform(0) > -sqrt(3) && nx_uniform(UINT32_MAX) < sqrt(3));
  assert_true(nx_uniform(0) < -1.732 && nx_uniform(UINT32_MAX) > 1.732);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_quantiles), cmocka_unit_test(test_odd),  cmocka_unit_test(test_rising),
      cmocka_unit_test(test_bits),      cmocka_unit_test(test_many), cmocka_unit_test(test_moments),
      cmocka_unit_test(test_uniform),
  };
  return cmocka_run_group_tests_name("normal", tests, NULL, NULL);
}
