/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of vec.h and lanes.h against the C library in fp64, over all magnitudes: the errors that
 * these state; what rounds in vectors or by tables, against schema/. */
#define CPU_SUFFIX test
#include "kernels/cpu/dynamic8.h"
#include "kernels/cpu/lanes.h"
#include "schema/bf16.h"
#include "tests/tap.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

enum { STRIDE = 1021 /* between the bit patterns that are tried */ };

static double ulps(float value, double exact) {
  float near = fabsf((float)exact);
  return fabs((double)value - exact) / ((double)nextafterf(near, INFINITY) - (double)near);
}

/* The largest error over the finite numbers between low and high; infinity where one gives no number. */
static double worst(float (*function)(float), double (*exact)(double), float low, float high) {
  double largest = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
    float x = vec_float((uint32_t)bits);
    if (!(x >= low && x <= high) || fabsf(x) < 1e-30F) continue;
    double error = ulps(function(x), exact((double)x));
    if (isnan(error)) return INFINITY;
    if (error > largest) largest = error;
  }
  return largest;
}

/* The first of a vector's elements; the others are others. */
static float first_lane(lanes x) {
  float room[LANES];
  lanes_write(room, NX_f32, 0, x);
  return room[0];
}

static lanes first_of(float x) {
  float room[LANES] = {x, 1, NAN};
  return lanes_read(room, NX_f32, 0);
}

static float first_erf(float x) {
  return first_lane(lanes_erf(first_of(x)));
}

static float first_exp(float x) {
  return first_lane(lanes_exp(first_of(x)));
}

static float first_exp2(float x) {
  return first_lane(lanes_exp2(first_of(x)));
}

static void test_exp(void **state) {
  (void)state;
  assert_true(worst(first_exp, exp, -87.3F, 88.72F) < 1.5);
  assert_true(worst(first_exp2, exp2, -126.0F, 127.99F) < 1.5);
  assert_true(first_exp2(0) == 1 && first_exp(0) == 1);
  assert_true(first_exp(-INFINITY) == 0 && first_exp2(-INFINITY) == 0 && first_exp2(-200) == 0);
  assert_true(first_exp(INFINITY) == INFINITY && first_exp(89) == INFINITY);
  assert_true(first_exp2(INFINITY) == INFINITY && first_exp2(128) == INFINITY);
  assert_true(isnan(first_exp(NAN)) && isnan(first_exp2(NAN)));
}

/* However far beyond, as -1e30 is, which stands for minus infinity in masks. */
static void test_exp_beyond(void **state) {
  (void)state;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
    float x = vec_float((uint32_t)bits);
    if (x > 89) assert_true(first_exp(x) == INFINITY);
    if (x >= 128) assert_true(first_exp2(x) == INFINITY);
    if (x < -104) assert_true(first_exp(x) == 0);
    if (x < -150) assert_true(first_exp2(x) == 0);
  }
}

static void test_erf(void **state) {
  (void)state;
  assert_true(worst(first_erf, erf, -INFINITY, INFINITY) < 1.1);
  assert_true(isnan(first_erf(NAN)));
}

static float first_tanh(float x) {
  return first_lane(lanes_tanh(first_of(x)));
}

static void test_tanh(void **state) {
  (void)state;
  assert_true(worst(first_tanh, tanh, -INFINITY, INFINITY) < 3);
  assert_true(isnan(first_tanh(NAN)));
}

static float one_log(float x) {
  return vec_log(x);
}

static void test_log(void **state) {
  (void)state;
  assert_true(worst(one_log, log, 0, INFINITY) < 1);
  assert_true(vec_log(0) == -INFINITY && vec_log(INFINITY) == INFINITY);
  assert_true(isnan(vec_log(-1)) && isnan(vec_log(NAN)));
}

static float one_cbrt(float x) {
  return vec_cbrt(x);
}

static void test_cbrt(void **state) {
  (void)state;
  assert_true(worst(one_cbrt, cbrt, 0, 3e38F) < 2.1);
  assert_true(vec_cbrt(0) == 0 && vec_cbrt(INFINITY) == INFINITY && isnan(vec_cbrt(NAN)));
}

static void test_f16_is_the_schemas(void **state) {
  (void)state;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
    float x = vec_float((uint32_t)bits), stored = nx_f16_to_float(nx_f16_from_float(x)),
          own = vec_round_f16(x);
    assert_true(isnan(x) ? isnan(own) : vec_bits(own) == vec_bits(stored));
  }
}

static void test_bf16_is_the_schemas(void **state) {
  (void)state;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE)
    assert_int_equal(vec_to_bf16(vec_float((uint32_t)bits)), nx_bf16_from_bits((uint32_t)bits));
}

/* Whole vectors, and what is left behind them. */
static void test_rows_of_halves_are_the_schemas(void **state) {
  (void)state;
  enum { N = 37 };
  float x[N];
  uint16_t y[N];
  for (uint64_t bits = 0; bits + N * (uint64_t)STRIDE <= UINT32_MAX; bits += N * (uint64_t)STRIDE) {
    for (uint32_t i = 0; i < N; i++) x[i] = vec_float((uint32_t)bits + i * STRIDE);
    vec_narrow(y, x, N);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(y[i], nx_bf16_from_bits((uint32_t)bits + i * STRIDE));
    vec_narrow_f16(y, x, N);
    for (uint32_t i = 0; i < N; i++) assert_true(isnan(x[i]) || y[i] == nx_f16_from_float(x[i]));
    vec_widen_f16(x, y, N);
    for (uint32_t i = 0; i < N; i++) assert_true(isnan(x[i]) || x[i] == nx_f16_to_float(y[i]));
  }
}

static void test_random_words_are_the_schemas(void **state) {
  (void)state;
  uint32_t words[4 * 150];
  vec_philox(words, 150, UINT64_C(0x0123456789ABCDEF), 77, 4294967200U, 5, 6, 7);
  for (uint32_t i = 0; i < 150; i++) {
    nx_philox drawn = nx_philox_draw(UINT64_C(0x0123456789ABCDEF), 77, 4294967200U + i, 5, 6, 7);
    assert_memory_equal(words + 4 * i, drawn.word, sizeof drawn.word);
  }
}

/* Every pattern of a block whose greatest magnitude is `most`, and what is no number. */
static void test_dynamic8_is_the_schemas(void **state) {
  (void)state;
  static const float all_most[] = {1, 0.75F, 3e-20F, 0, NAN};
  dynamic8_map map;
  for (int i = 0; i < 10; i++) {
    float most = all_most[i / 2];
    dynamic8_map_make(&map, i % 2);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
      float x = vec_float((uint32_t)bits), own = x;
      if (fabsf(x) > most) continue;
      dynamic8_round(&map, &own, 1, most);
      float stored = nx_dynamic8_stored(i % 2, x, most);
      assert_true(isnan(stored) ? isnan(own) : own == stored);
    }
    for (int value = 1; value + 1 < map.n; value++) { /* what two values are equally near to */
      int code = value + (i % 2 ? 127 : 0);
      float middle = (nx_dynamic8_value(i % 2, code) + nx_dynamic8_value(i % 2, code + 1)) * 0.5F;
      float x = middle * (i == 1 ? -1 : 1), own = x;
      if (most != 1) continue;
      dynamic8_round(&map, &own, 1, most);
      assert_true(own == nx_dynamic8_stored(i % 2, x, most));
    }
  }
}

/* One that is none leaves the others of its block as they would be. */
static void test_dynamic8_blocks(void **state) {
  (void)state;
  dynamic8_map map;
  for (int i = 0; i < 4; i++) {
    float x[NX_DYNAMIC8_BLOCK], own[NX_DYNAMIC8_BLOCK];
    dynamic8_map_make(&map, i % 2);
    for (int j = 0; j < NX_DYNAMIC8_BLOCK; j++) own[j] = x[j] = (float)(j - (i % 2 ? 128 : 0)) / 256;
    if (i >= 2) own[7] = x[7] = NAN;
    dynamic8_round(&map, own, NX_DYNAMIC8_BLOCK, 1);
    for (int j = 0; j < NX_DYNAMIC8_BLOCK; j++) {
      float stored = nx_dynamic8_stored(i % 2, x[j], 1);
      assert_true(isnan(stored) ? isnan(own[j]) : own[j] == stored);
    }
  }
}

int main(void) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return tap_skip_all("compiled for AVX2");
#ifdef __AVX512BF16__
  if (!__builtin_cpu_supports("avx512bf16")) return tap_skip_all("compiled for AVX512_BF16");
#endif
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exp),
      cmocka_unit_test(test_exp_beyond),
      cmocka_unit_test(test_erf),
      cmocka_unit_test(test_tanh),
      cmocka_unit_test(test_log),
      cmocka_unit_test(test_cbrt),
      cmocka_unit_test(test_f16_is_the_schemas),
      cmocka_unit_test(test_bf16_is_the_schemas),
      cmocka_unit_test(test_rows_of_halves_are_the_schemas),
      cmocka_unit_test(test_random_words_are_the_schemas),
      cmocka_unit_test(test_dynamic8_is_the_schemas),
      cmocka_unit_test(test_dynamic8_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
