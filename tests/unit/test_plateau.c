/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates that follow a loss beside those of PyTorch's ReduceLROnPlateau, recorded by
 * tests/parity/record_plateaus.py. */
#include "runtime/state/plateau.h"
#include "schema/segment.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As nxcfg lowers the schedule (compiler/program/records/learning_rate.c). */
static double rate_of(const nxr_plateau *plateau, const nx_plateau *plan, double lr) {
  const nx_segment segment = {.kind = NX_SEGMENT_EXPONENTIAL, .every = 1, .span = 1, .from = lr,
                              .to = lr * plan->factor, .least = fmin(plan->least, lr)};
  return nx_segment_at(&segment, (int64_t)plateau->n_reductions);
}

/* Returns the looks that were compared. */
static int follow(const nx_plateau *plan, double lr, char *pairs) {
  nxr_plateau plateau = nxr_plateau_begin();
  double now = lr;
  int n = 0;
  for (char *rest, *word = strtok_r(pairs, " \n", &rest); word != NULL;
       word = strtok_r(NULL, " \n", &rest), n++) {
    plateau.loss = strtod(word, NULL);
    double expected = strtod(strtok_r(NULL, " \n", &rest), NULL);
    nxr_plateau_look(&plateau, plan, now);
    now = rate_of(&plateau, plan, lr);
    assert_true(fabs(now - expected) <= 1e-13 * expected);
  }
  return n;
}

static void rates_are_those_of_pytorch(void **state) {
  (void)state;
  static char line[1 << 14], path[4096];
  snprintf(path, sizeof path, "%s/tests/parity/recorded/plateaus.txt", getenv("NX_SOURCE_ROOT"));
  FILE *file = fopen(path, "r");
  int n_looks = 0, n_runs = 0;
  assert_non_null(file);
  for (; fgets(line, sizeof line, file) != NULL; n_runs++) {
    char mode[8], threshold_mode[8];
    double lr;
    int at;
    nx_plateau plan = {0};
    assert_int_equal(sscanf(line, "%7s %lf %u %lf %7s %u %lf %lf %lf %n", mode, &plan.factor, &plan.patience,
                            &plan.threshold, threshold_mode, &plan.cooldown, &plan.least, &plan.least_change,
                            &lr, &at),
                     9);
    if (strcmp(mode, "max") == 0) plan.rules |= NX_PLATEAU_GREATER;
    if (strcmp(threshold_mode, "abs") == 0) plan.rules |= NX_PLATEAU_ABSOLUTE;
    n_looks += follow(&plan, lr, line + at);
  }
  fclose(file);
  assert_true(n_runs == 40 && n_looks == 40 * 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_those_of_pytorch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
