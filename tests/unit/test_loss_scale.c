/* SPDX-License-Identifier: Apache-2.0 */
/* Loss scales beside those of DeepSpeed and Megatron-LM, recorded by tests/parity/record_loss_scales.py. */
#include "runtime/state/loss_scale.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_record(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/parity/recorded/loss_scales.txt", getenv("NX_SOURCE_ROOT"));
  return fopen(path, "r");
}

/* Returns the steps that were compared. */
static int follow(const nx_run *run, const char *steps, char *powers) {
  nxr_loss_scale scale = nxr_loss_scale_begin(run);
  uint64_t n_skipped = 0;
  int n = 0;
  for (char *rest, *word = strtok_r(powers, " \n", &rest); word != NULL;
       word = strtok_r(NULL, " \n", &rest), n++) {
    n_skipped += steps[n] == 'x';
    assert_true(nxr_loss_scale_next(&scale, run, steps[n] == 'x', 4));
    assert_true(scale.factor == ldexp(1, atoi(word)));
    assert_true(scale.n_skipped == n_skipped && scale.n_samples == 4 * n_skipped);
  }
  bool ended = steps[n] != '\0'; /* the recorded run raised there */
  if (ended) assert_false(nxr_loss_scale_next(&scale, run, steps[n] == 'x', 4));
  return n;
}

static void scales_are_those_of_others(void **state) {
  (void)state;
  static char line[1 << 13], steps[256];
  FILE *file = open_record();
  int n_steps = 0, n_runs = 0;
  assert_non_null(file);
  for (; fgets(line, sizeof line, file) != NULL; n_runs++) {
    char system[16];
    int renews, at;
    nx_run run = {.loss_scale = 1, .loss_scale_rules = NX_LOSS_SCALE_DYNAMIC};
    assert_int_equal(
        sscanf(line, "%15s %lf %lf %u %u %d %255s %n", system, &run.loss_scale_initial, &run.loss_scale_least,
               &run.loss_scale_window, &run.loss_scale_hysteresis, &renews, steps, &at),
        7);
    if (renews) run.loss_scale_rules |= NX_LOSS_SCALE_RENEWS;
    if (strcmp(system, "deepspeed") == 0) run.loss_scale_rules |= NX_LOSS_SCALE_ENDS;
    if (strcmp(system, "plain") == 0) run.loss_scale_rules |= NX_LOSS_SCALE_ENDS | NX_LOSS_SCALE_PLAIN;
    n_steps += follow(&run, steps, line + at);
  }
  fclose(file);
  assert_true(n_runs >= 48 && n_steps > 3000);
}

static void a_fixed_one_stays(void **state) {
  (void)state;
  const nx_run run = {.loss_scale = 1,
                      .loss_scale_initial = 128,
                      .loss_scale_least = 1,
                      .loss_scale_window = 1,
                      .loss_scale_hysteresis = 1};
  nxr_loss_scale scale = nxr_loss_scale_begin(&run);
  for (int step = 0; step < 6; step++) assert_true(nxr_loss_scale_next(&scale, &run, step % 2 == 1, 8));
  assert_true(scale.factor == 128 && scale.n_skipped == 3);
}

static void a_fixed_one_may_end_the_run(void **state) {
  (void)state;
  const nx_run run = {.loss_scale = 1, .loss_scale_initial = 128, .loss_scale_rules = NX_LOSS_SCALE_ENDS};
  nxr_loss_scale scale = nxr_loss_scale_begin(&run);
  assert_true(nxr_loss_scale_next(&scale, &run, false, 8));
  assert_false(nxr_loss_scale_next(&scale, &run, true, 8));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scales_are_those_of_others),
      cmocka_unit_test(a_fixed_one_stays),
      cmocka_unit_test(a_fixed_one_may_end_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
