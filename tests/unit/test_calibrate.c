/* SPDX-License-Identifier: Apache-2.0 */
/* What several passes of measurements say together. */
#include "runtime/calibrate/calibrate.h"
#include "tests/unit/cmocka_all.h"

enum { N = 3 };

/* Every number is `number` times what it is on a quiet machine. */
static nxr_measured pass_of(double number) {
  nxr_measured m = {.operator_s = 3e-7 * number,
                    .memory = {.size = {1e3, 1e6}, .rate = {4e10 * number, 8e10 * number}, .n = 2},
                    .inside = {.latency_s = 1e-7 * number, .taken = -1},
                    .between = {.latency_s = 1e-5 * number, .taken = 0.1 * number}};
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++)
    m.products[type] = (nxr_curve){.size = {1e5, 1e9}, .rate = {1e11 * number, 2e11 * number}, .n = 2};
  m.operators[0] = (nxr_rates){
      .of = {{.op = NX_OP_gated, .curve = {.size = {1e6}, .rate = {3e10 * number}, .n = 1}}}, .n = 1};
  m.between.bandwidth = (nxr_curve){.size = {1e6}, .rate = {1e9 * number}, .n = 1};
  return m;
}

static void one_disturbed_pass_does_not_count(void **state) {
  (void)state;
  const double disturbed[] = {0.3, 4};
  for (int i = 0; i < 2; i++)
    for (int at = 0; at < N; at++) {
      nxr_measured passes[N] = {pass_of(1), pass_of(1), pass_of(1)}, quiet = passes[0];
      passes[at] = pass_of(disturbed[i]);
      nxr_measured m = nxr_measured_median(passes, N);
      assert_memory_equal(&m, &quiet, sizeof m);
    }
}

static void each_number_has_its_own_median(void **state) {
  (void)state;
  nxr_measured passes[N] = {pass_of(1), pass_of(2), pass_of(3)};
  passes[0].products[1].rate[1] = 9e11;
  passes[2].between.taken = 0.15;
  nxr_measured m = nxr_measured_median(passes, N);
  assert_true(m.products[0].rate[1] == 4e11);
  assert_true(m.products[1].rate[1] == 6e11);
  assert_true(m.between.taken == 0.15);
  assert_true(m.memory.size[1] == 1e6);
}

static void points_that_a_pass_lacks_are_none(void **state) {
  (void)state;
  nxr_measured passes[N] = {pass_of(1), pass_of(1), pass_of(1)};
  passes[2].products[0].n = 1, passes[2].products[0].rate[1] = 0;
  nxr_measured m = nxr_measured_median(passes, N);
  assert_int_equal(m.products[0].n, 1);
  assert_int_equal(m.products[1].n, 2);
  assert_true(nxr_measured_swing(passes, N) == 1);
}

static void a_larger_product_is_no_slower(void **state) {
  (void)state;
  nxr_measured pass = pass_of(1);
  pass.products[0].rate[1] = 0.9 * pass.products[0].rate[0];
  nxr_measured m = nxr_measured_median(&pass, 1);
  assert_true(m.products[0].rate[1] == m.products[0].rate[0]);
  assert_true(m.products[1].rate[1] == pass.products[1].rate[1]);
}

static void the_largest_swing_is_told(void **state) {
  (void)state;
  nxr_measured passes[N] = {pass_of(1), pass_of(1), pass_of(1)};
  assert_true(nxr_measured_swing(passes, N) == 1);
  passes[1].products[0].rate[0] /= 2;
  passes[2].products[1].rate[1] /= 4;
  assert_true(nxr_measured_swing(passes, N) == 4);
  assert_true(nxr_measured_swing(passes, 1) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_disturbed_pass_does_not_count),
                                     cmocka_unit_test(each_number_has_its_own_median),
                                     cmocka_unit_test(points_that_a_pass_lacks_are_none),
                                     cmocka_unit_test(a_larger_product_is_no_slower),
                                     cmocka_unit_test(the_largest_swing_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
