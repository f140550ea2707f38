/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens are drawn as often as they are likely, from no more than are asked for, and the same ones again. */
#include "runtime/generate/draw.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

enum { N = 4, N_DRAWN = 40000 };

static void count(const nxr_drawing *drawing, const double *logits, double shares[N]) {
  uint32_t order[N];
  for (int i = 0; i < N; i++) shares[i] = 0;
  for (uint64_t index = 0; index < N_DRAWN; index++)
    shares[nxr_draw(drawing, logits, N, index, order)] += 1.0 / N_DRAWN;
}

static void tokens_come_as_often_as_they_are_likely(void **state) {
  (void)state;
  const double logits[N] = {log(0.1), log(0.4), log(0.2), log(0.3)};
  static const struct {
    nxr_drawing drawing;
    double shares[N];
  } cases[] = {{{1, 1, 5}, {0.1, 0.4, 0.2, 0.3}},
               {{0.5, 1, 6}, {1 / 30.0, 16 / 30.0, 4 / 30.0, 9 / 30.0}},
               {{1, 0.69, 7}, {0, 4 / 7.0, 0, 3 / 7.0}},
               {{1, 0.71, 8}, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0}},
               {{1, 0, 9}, {0, 1, 0, 0}},
               {{0, 1, 10}, {0, 1, 0, 0}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double shares[N];
    count(&cases[i].drawing, logits, shares);
    for (int token = 0; token < N; token++)
      assert_true(fabs(shares[token] - cases[i].shares[token]) < (cases[i].shares[token] > 0 ? 0.01 : 1e-12));
  }
}

static void of_equal_tokens_the_first_is_taken(void **state) {
  (void)state;
  uint32_t order[N];
  const nxr_drawing greedy = {0, 1, 0};
  assert_int_equal(nxr_draw(&greedy, (const double[N]){1, 3, 3, 3}, N, 0, order), 1);
}

static void a_seed_draws_the_same_again(void **state) {
  (void)state;
  uint32_t order[N], n_other = 0;
  const double logits[N] = {0};
  const nxr_drawing one = {1, 1, 3}, other = {1, 1, UINT64_C(1) << 40};
  for (uint64_t i = 0; i < 100; i++) {
    uint32_t token = nxr_draw(&one, logits, N, i, order);
    assert_int_equal(token, nxr_draw(&one, logits, N, i, order));
    n_other += token != nxr_draw(&other, logits, N, i, order);
  }
  assert_in_range(n_other, 50, 95);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_come_as_often_as_they_are_likely),
      cmocka_unit_test(of_equal_tokens_the_first_is_taken),
      cmocka_unit_test(a_seed_draws_the_same_again),
  };
  return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
