/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic rounding to bf16: the mean over all draws is the number, and the draws are even. */
#include "schema/stochastic.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void the_mean_of_all_draws_is_the_number(void **state) {
  (void)state;
  static const float numbers[] = {1.001F, -0.7310586F, 3.1415927F, 1.0e-30F, -6.55e4F, 1.9999999F, 0.1F};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    double sum = 0;
    for (uint32_t word = 0; word < 65536; word++)
      sum += nx_bf16_to_float(nx_bf16_stochastic(bits_of(numbers[i]), word));
    assert_true(fabs(sum / 65536 - numbers[i]) <= 1e-12 * fabs((double)numbers[i]));
  }
}

static void what_bf16_has_stays(void **state) {
  (void)state;
  for (uint32_t half = 0; half < 65536; half++) {
    uint32_t bits = half << 16;
    assert_int_equal(nx_bf16_stochastic(bits, 0xFFFF), nx_bf16_from_bits(bits));
    assert_int_equal(nx_bf16_stochastic(bits, 0), nx_bf16_from_bits(bits));
  }
  assert_true(isnan(nx_bf16_to_float(nx_bf16_stochastic(0x7F800001, 0xFFFF))));
}

/* Numbers next to each other, a third of the way between two of bf16. */
static void draws_are_even(void **state) {
  (void)state;
  enum { N = 30000 };
  for (uint32_t what = 0; what < 2; what++) {
    uint32_t n_up = 0, n_as_before = 0;
    for (uint32_t i = 0; i < N; i++) {
      uint32_t bits = bits_of(0.5F) + (i << 16) % (1 << 23) + 21845 + i % 3;
      uint16_t now = nx_bf16_stochastic(bits, nx_stochastic_word(7, 1 + i / 128, what, bits, 0));
      uint16_t next = nx_bf16_stochastic(bits, nx_stochastic_word(7, 2 + i / 128, what, bits, 0));
      n_up += now != bits >> 16;
      n_as_before += now == next;
    }
    assert_true(fabs(n_up - N / 3.0) < 5 * sqrt(N * 2.0 / 9));
    assert_true(fabs(n_as_before - N * 5.0 / 9) < 5 * sqrt(N * 20.0 / 81));
  }
}

/* One number at one step, a third of the way, for gradients next to each other. */
static void equal_numbers_have_draws_of_their_own(void **state) {
  (void)state;
  enum { N = 30000 };
  uint32_t n_up = 0, bits = bits_of(0.5F) + 21845;
  for (uint32_t i = 0; i < N; i++)
    n_up += nx_bf16_stochastic(bits, nx_stochastic_word(7, 1, 0, bits, bits_of(1e-3F) + i)) != bits >> 16;
  assert_true(fabs(n_up - N / 3.0) < 5 * sqrt(N * 2.0 / 9));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_mean_of_all_draws_is_the_number),
      cmocka_unit_test(what_bf16_has_stays),
      cmocka_unit_test(draws_are_even),
      cmocka_unit_test(equal_numbers_have_draws_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
