/* SPDX-License-Identifier: Apache-2.0 */
/* CMocka with the headers that it wants first, and two things done for every test: results are TAP, and a
 * test that has nothing to look at is skipped. CMocka's own skip() is a failure in TAP; so a test says why,
 * by its own name, and returns:
 *
 *   if (path == NULL) {
 *     skip_test(__func__, "NX_SHARED names no folder");
 *     return;
 *   } */
#ifndef NX_TESTS_CMOCKA_ALL_H
#define NX_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CMOCKA_TESTS_MAX = 128, CMOCKA_NAME_BYTES = 256 };
static struct CMUnitTest cmocka_tests[CMOCKA_TESTS_MAX]; /* those of the group that runs */

/* CMocka prints "ok 1 - NAME" when a test has returned: the name then says the rest. */
static inline void skip_test(const char *name, const char *why) {
  static char names[CMOCKA_TESTS_MAX][CMOCKA_NAME_BYTES];
  for (size_t i = 0; i < CMOCKA_TESTS_MAX && cmocka_tests[i].name != NULL; i++) {
    if (strcmp(cmocka_tests[i].name, name) != 0) continue;
    snprintf(names[i], sizeof names[i], "%s # SKIP %s", name, why);
    cmocka_tests[i].name = names[i];
    return;
  }
  fail_msg("no test is called %s", name);
}

static inline int cmocka_run(const char *name, const struct CMUnitTest *tests, size_t n_tests,
                             CMFixtureFunction setup, CMFixtureFunction teardown) {
  if (n_tests >= CMOCKA_TESTS_MAX) return EXIT_FAILURE;
  memset(cmocka_tests, 0, sizeof cmocka_tests);
  memcpy(cmocka_tests, tests, n_tests * sizeof *tests);
  cmocka_set_message_output(CM_OUTPUT_TAP);
  return _cmocka_run_group_tests(name, cmocka_tests, n_tests, setup, teardown);
}

#undef cmocka_run_group_tests
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests(tests, setup, teardown)                                                       \
  cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                            \
  cmocka_run(name, tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
