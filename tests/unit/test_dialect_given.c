/* SPDX-License-Identifier: Apache-2.0 */
/* What is given beside the file, or instead of what it has: on the command line, by the environment, any
 * value. */
#include "tests/unit/small_nxdt.h"

static void test_command_line(void **state) {
  (void)state;
  static const char *const right_sets[] = {"nx:mesh.tensor=1", "data.global_batch_size=32", "nx:run.seed=7"};
  trial t;
  trial_begin(&t, right);
  t.request.sets = right_sets;
  t.request.n_sets = 3;
  t.request.world_size = "4";
  trial_run(&t);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MESH_TENSOR), 1);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MESH_WORLD), 4);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_BATCH_GLOBAL), 32);
  assert_int_equal(nxc_settings_from(t.out.settings, NX_SETTING_BATCH_GLOBAL)->kind, NXC_FROM_CLI);
  assert_int_equal(nxc_settings_from(t.out.settings, NX_SETTING_RUN_SEED)->previous->kind, NXC_FROM_FILE);
  trial_expect(&t, "NX1319", "mesh.tensor");
  trial_expect(&t, "NX1319", "4 ranks; by the file there are 8");
  trial_end(&t);
  static const char *const wrong_sets[] = {"distributed_strategy.tensor_model_parallel_size=4",
                                           "nx:mesh.tensor=1", "nx:mesh.tensr=1", "nx:mesh.tensor"};
  trial_begin(&t, right);
  t.request.sets = wrong_sets;
  t.request.n_sets = 4;
  trial_run(&t);
  assert_false(t.ok);
  trial_expect(&t, "NX1311", "mesh.tensor");
  assert_string_equal(trial_expect(&t, "NX1312", "mesh.tensr")->fix, "did you mean nx:mesh.tensor?");
  trial_expect(&t, "NX1312", "has no =VALUE");
  trial_end(&t);
}

static void test_angles(void **state) {
  (void)state;
  trial t;
  run(&t,
      with("  max_position_embeddings: 64\n", "  max_position_embeddings: $<model.encoder_seq_length>\n"));
  trial_expect(&t, "NX1407", "$<...> is resolved by nxcfg alone");
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MODEL_SEQUENCE), 64);
  trial_end(&t);
}

/* What the environment says, and what secret keys hold, appears nowhere. */
static void test_redaction(void **state) {
  (void)state;
  setenv("NX_TRIAL_SEED", "777", 1);
  trial t;
  run(&t, with("seed: 1\n", "seed: ${oc.env:NX_TRIAL_SEED}\nhf_token: hunter2\n"));
  assert_true(nxc_sink_n_findings(t.sink) > 0);
  for (size_t i = 0; i < nxc_sink_n_findings(t.sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(t.sink, i);
    assert_null(strstr(finding->message, "777"));
    assert_null(strstr(finding->message, "hunter2"));
  }
  trial_expect(&t, "NX1303", "seed needs an integer, not text"); /* the environment gives text */
  assert_int_equal(t.out.resolution.n_variables, 1);
  assert_string_equal(t.out.resolution.variables[0].name, "NX_TRIAL_SEED");
  trial_end(&t);
}

/* Whatever value whatever option is given, the compilation ends, and says the same when it is done again. */
static void test_any_value(void **state) {
  (void)state;
  static const char *const values[] = {"null",
                                       "-1",
                                       "[]",
                                       "0.5",
                                       "{a: 1}",
                                       "'0'",
                                       "true",
                                       "''",
                                       "1e400",
                                       "[1, [2]]",
                                       "999999999999999999999",
                                       "???",
                                       ".nan",
                                       "text",
                                       "0",
                                       "2"};
  enum { N_VALUES = sizeof values / sizeof *values, N_EACH = 2 };
  const nxc_dialect *dialect = nxc_dialect_find("nxdt");
  for (size_t i = 0; i < dialect->n_options; i++) {
    for (size_t k = 0; k < N_EACH; k++) {
      char assignment[256];
      snprintf(assignment, sizeof assignment, "%s=%s", dialect->options[i].name,
               values[(i * 7 + k * 5) % N_VALUES]);
      const char *const sets[] = {assignment};
      size_t n_findings[2];
      for (int again = 0; again < 2; again++) {
        trial t;
        trial_begin(&t, right);
        t.request.dialect = "nxdt";
        t.request.sets = sets;
        t.request.n_sets = 1;
        trial_run(&t);
        assert_int_equal(t.ok, nxc_sink_count(t.sink, NXC_SEVERITY_ERROR) == 0);
        n_findings[again] = nxc_sink_n_findings(t.sink);
        trial_end(&t);
      }
      assert_int_equal(n_findings[0], n_findings[1]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_command_line),
      cmocka_unit_test(test_angles),
      cmocka_unit_test(test_redaction),
      cmocka_unit_test(test_any_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
