/* SPDX-License-Identifier: Apache-2.0 */
/* What values that do not fit were meant to be. */
#include "compiler/settings/meant.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

static nxc_arena *arena;

static int set_up(void **state) {
  (void)state;
  arena = nxc_arena_new();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  nxc_arena_free(arena);
  return 0;
}

static const nxc_value one = {.kind = NXC_INT, .integer = 1}, most = {.kind = NXC_FLOAT, .number = 0.5};
static const nxc_domain whole = {.type = NXC_TYPE_INT, .min = &one};
static const nxc_domain share = {.type = NXC_TYPE_FLOAT, .max = &most};

/* "32", or "32?" where something else may be meant. */
static void expect(const nxc_domain *domain, const char *text, const char *meant) {
  nxc_meant found = nxc_number_meant(arena, domain, text);
  char shown[64];
  snprintf(shown, sizeof shown, "%s%s", found.text ? found.text : "nothing", found.certain ? "" : "?");
  assert_string_equal(shown, meant);
}

static void numbers_are_found(void **state) {
  (void)state;
  expect(&whole, "1024", "1024");
  expect(&whole, "1,024", "1024");
  expect(&whole, "1_024.0", "1024");
  expect(&whole, "1e3", "1000");
  expect(&whole, "'16", "16");
  expect(&whole, "1024 // tokens", "1024?");
  expect(&whole, "32GB", "32?");
  expect(&whole, "4 tokens", "4?");
  expect(&whole, "4k", "4096?");
  expect(&whole, "2M", "2000000?");
  expect(&whole, "2048*2", "4096?");
  expect(&whole, "8 x 4", "32?");
  expect(&whole, "12.5", "12?");
  expect(&whole, "~7", "7?");
  expect(&share, "10%", "0.1?");
  expect(&share, "0.1k", "0.1?"); /* a thousand times that is out of bounds */
}

static void bounds_hold(void **state) {
  (void)state;
  expect(&whole, "-32", "32?");
  expect(&whole, "0", "1?");
  expect(&share, "0.75", "0.5?");
}

static void nothing_is_made_up(void **state) {
  (void)state;
  expect(&whole, "often", "nothing?");
  expect(&whole, "", "nothing?");
  expect(&whole, "1,02", "nothing?");
  expect(&whole, "2024-01-01", "nothing?");
  expect(&share, "1e-9", "nothing?"); /* not without an exponent */
  assert_null(nxc_boolean_meant("maybe").text);
}

static void words_are_booleans(void **state) {
  (void)state;
  assert_string_equal(nxc_boolean_meant("Enabled").text, "True");
  assert_string_equal(nxc_boolean_meant("off").text, "False");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(numbers_are_found, set_up, tear_down),
      cmocka_unit_test_setup_teardown(bounds_hold, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_made_up, set_up, tear_down),
      cmocka_unit_test(words_are_booleans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
