/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/small_nxdt.h"

static void test_settings(void **state) {
  (void)state;
  trial t;
  trial_begin(&t, right);
  trial_run(&t);
  for (size_t i = 0; i < nxc_sink_n_findings(t.sink); i++) {
    if (nxc_sink_finding(t.sink, i)->severity == NXC_SEVERITY_ERROR)
      fail_msg("%s", nxc_sink_finding(t.sink, i)->message);
  }
  assert_true(t.ok);
  assert_string_equal(t.out.dialect->name, "nxdt");
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MESH_WORLD), 8);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MESH_TENSOR), 2);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_MESH_DATA), 4);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_BATCH_ACCUMULATION), 4);
  assert_int_equal(nxc_int(t.out.settings, NX_SETTING_OPTIMIZER_ZERO_STAGE), 1);
  assert_true(nxc_is(t.out.settings, NX_SETTING_SCHEDULE_NAME, "cosine"));
  assert_true(nxc_number(t.out.settings, NX_SETTING_OPTIMIZER_LR) == 3e-4);
  const nxc_provenance *from = nxc_settings_from(t.out.settings, NX_SETTING_MESH_TENSOR);
  assert_int_equal(from->kind, NXC_FROM_FILE);
  assert_int_equal(from->at.line, 11);
  assert_string_equal(from->option, "distributed_strategy.tensor_model_parallel_size");
  trial_end(&t);
}

/* Of the megatron route PyTorch draws the routers, and for a pipeline the positions. */
static void test_initial_weights(void **state) {
  (void)state;
  static const struct {
    const char *line, *by;
    bool router, positions;
  } rows[] = {{"", "", true, false},
              {"  pipeline_model_parallel_size: 1\n", "  pipeline_model_parallel_size: 2\n", true, true},
              {"model_source: megatron\n", "model_source: hf\n", false, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trial t;
    trial_begin(&t, with(rows[i].line, rows[i].by));
    trial_run(&t);
    assert_int_equal(nxc_number_or(t.out.settings, NX_SETTING_MOE_ROUTER_INIT_GAIN, 0) > 0, rows[i].router);
    assert_int_equal(nxc_number_or(t.out.settings, NX_SETTING_MODEL_POSITION_INIT_STD, 0) > 0,
                     rows[i].positions);
    trial_end(&t);
  }
}

static void test_values(void **state) {
  (void)state;
  static const struct {
    const char *line, *by, *id, *message, *fix;
  } rows[] = {
      {"seed: 1\n", "seed: one\n", "NX1303", "seed needs an integer, not text", NULL},
      {"seed: 1\n", "seed: 1.0\n", "NX1303", "needs an integer", "write 1"},
      {"seed: 1\n", "seed: '1'\n", "NX1303", "needs an integer", "write the number without quotes"},
      {"seed: 1\n", "seed: '1e3'\n", "NX1303", "needs an integer", "write 1000"},
      {"seed: 1\n", "seed: [1]\n", "NX1303", "not a list", NULL},
      {"seed: 1\n", "seed: 0\n", "NX1305", "at least 1", NULL},
      {"  micro_batch_size: 1\n", "  micro_batch_size: null\n", "NX1306", "may not be null", NULL},
      {"  micro_batch_size: 1\n", "  micro_batch_size: ???\n", "NX1309", "must be given", NULL},
      {"  activation: swiglu\n", "  activation: swiglo\n", "NX1304", "must be one of",
       "did you mean swiglu?"},
      {"  zero1: True\n", "  zero1: 2\n", "NX1303", "true or false", NULL},
      {"  type: mixed_precision\n", "  type: mixed_precison\n", "NX1304", "must be one of",
       "did you mean mixed_precision?"},
      {"seed: 1\n", "seed: 1\ntrainer.devices: 2\n", "NX1301", "unknown key trainer.devices", NULL},
      {"  num_nodes: 2\n", "  num_nodes: True\n", "NX1303",
       "trainer.num_nodes needs an integer, not true or false", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trial t;
    run(&t, with(rows[i].line, rows[i].by));
    assert_false(t.ok);
    const nxc_finding *finding = trial_expect(&t, rows[i].id, rows[i].message);
    assert_int_equal(finding->severity, NXC_SEVERITY_ERROR);
    assert_non_null(finding->at.source);
    if (rows[i].fix != NULL) assert_string_equal(finding->fix, rows[i].fix);
    trial_end(&t);
  }
}

static void test_bits(void **state) {
  (void)state;
  trial t;
  run(&t, with("  type: mixed_precision\n",
               "  type: manual\n  master_weights: True\n  fp32_grad_acc: True\n"
               "  xla_use_bf16: 1\n  xla_downcast_bf16: '0'\n  neuron_rt_stochastic_rounding_en: '0'\n"));
  assert_string_equal(trial_expect(&t, "NX1308", "xla_use_bf16")->fix, "quote it: '1'");
  trial_end(&t);
}

/* What the real system does not read may be wrong without harm. */
static void test_unread_misfit(void **state) {
  (void)state;
  trial t;
  run(&t, with("  type: mixed_precision\n", "  type: mixed_precision\n  xla_use_bf16: 1\n"));
  assert_int_equal(trial_expect(&t, "NX1308", "it is not read here")->severity, NXC_SEVERITY_WARNING);
  assert_true(t.ok);
  trial_end(&t);
}

static void test_unknown_keys(void **state) {
  (void)state;
  static const struct {
    const char *line, *by, *id, *message, *fix;
  } rows[] = {
      /* a near name is an error everywhere */
      {"  num_layers: 2\n", "  num_layer: 2\n", "NX1301", "unknown key model.num_layer",
       "did you mean model.num_layers?"},
      {"  zero1: True\n", "  zerol: True\n", "NX1301", "distributed_strategy.zerol",
       "did you mean distributed_strategy.zero1?"},
      /* the user's own key: an error only where it becomes an argument */
      {"data:\n", "data:\n  my_reader_depth: 3\n", "NX1302", "data.my_reader_depth", NULL},
      {"trainer:\n", "trainer:\n  my_reader_depth: 3\n", "NX1301", "trainer.my_reader_depth", NULL},
      /* a key of another section */
      {"trainer:\n", "trainer:\n  global_batch_size: 3\n", "NX1301", "there is data.global_batch_size",
       "leave it out"},
      /* a section whose children are not indented */
      {"      name: CosineAnnealing\n      warmup_steps: 2\n      min_lr: 1e-5\n", "    warmup_steps: 2\n",
       "NX1301", "the section sched above", "indent it below sched:"},
      /* a value where a section stands */
      {"trainer:\n", "trainer: 3\ntrainer_:\n", "NX1314", "trainer is a section", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trial t;
    run(&t, with(rows[i].line, rows[i].by));
    const nxc_finding *finding = trial_expect(&t, rows[i].id, rows[i].message);
    if (rows[i].fix != NULL) assert_string_equal(finding->fix, rows[i].fix);
    trial_end(&t);
  }
}

/* A key that an interpolation reads is a variable. */
static void test_variables(void **state) {
  (void)state;
  trial t;
  run(&t, with("seed: 1\n", "seed: ${start}\nstart: 1\nsizes: {a: 1, b: 2}\n"));
  assert_null(trial_finding(&t, "NX1301", 0));
  const nxc_finding *first = trial_finding(&t, "NX1302", 0);
  assert_non_null(first); /* sizes is not read */
  assert_non_null(strstr(first->message, "sizes"));
  for (size_t n = 0; trial_finding(&t, "NX1302", n); n++)
    assert_null(strstr(trial_finding(&t, "NX1302", n)->message, "start"));
  trial_end(&t);
}

static void test_aliases(void **state) {
  (void)state;
  trial t;
  run(&t, with("aync_exec", "async_exec"));
  assert_string_equal(trial_expect(&t, "NX1405", "async_exec")->fix, "write aync_exec_max_inflight_requests");
  assert_null(trial_finding(&t, "NX1301", 0));
  trial_end(&t);
  run(&t, with("seed: 1\n", "seed: 1\nasync_exec_max_inflight_requests: 5\n"));
  trial_expect(&t, "NX1406", "two names of one option");
  assert_false(t.ok);
  trial_end(&t);
}

static void test_required(void **state) {
  (void)state;
  trial t;
  run(&t, with("  devices: 4\n", ""));
  const nxc_finding *finding = trial_expect(&t, "NX1307", "trainer.devices is required");
  assert_int_equal(finding->at.line, 4); /* the section's own line */
  trial_end(&t);
  run(&t, with("data:\n  micro_batch_size: 1\n  global_batch_size: 16\n  data_prefix: [1.0, a/b]\n  "
               "data_impl: mmap\n"
               "  splits_string: null\n  seq_length: 64\n  num_workers: 1\n  dataloader_type: single\n"
               "  tokenizer: {library: megatron}\n",
               ""));
  finding = trial_expect(&t, "NX1307", "the section data is missing");
  assert_non_null(strstr(finding->message, "data.micro_batch_size"));
  trial_end(&t);
}

static void test_statuses(void **state) {
  (void)state;
  trial t;
  run(&t, with("  type: mixed_precision\n", "  type: mixed_precision\n  master_weights: False\n"));
  assert_int_equal(trial_expect(&t, "NX1404", "precision.master_weights is given in vain")->severity,
                   NXC_SEVERITY_NOTE);
  assert_true(nxc_flag(t.out.settings, NX_SETTING_PRECISION_MASTER_WEIGHTS)); /* the preset decides */
  assert_int_equal(nxc_settings_from(t.out.settings, NX_SETTING_PRECISION_MASTER_WEIGHTS)->kind,
                   NXC_FROM_PRESET);
  trial_end(&t);
  trial_begin(&t, right);
  trial_run(&t);
  trial_expect(&t, "NX1403", "compiler_flags is checked and otherwise ignored");
  trial_end(&t);
  for (int for_nxrun = 0; for_nxrun < 2; for_nxrun++) {
    trial_begin(&t, with("  limit_val_batches: 0\n", "  limit_val_batches: 0\n  max_time: 1\n"));
    t.request.for_nxrun = for_nxrun;
    trial_run(&t);
    assert_int_equal(trial_expect(&t, "NX1401", "max_time")->severity,
                     for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE);
    trial_end(&t);
  }
}

/* A trial has as many steps as it says, true being one, and validates as many batches behind them. */
static void test_trial_runs(void **state) {
  (void)state;
  static const struct {
    const char *word;
    int64_t steps;
  } words[] = {{"True", 1}, {"3", 3}, {"False", 0}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    trial t;
    char lines[80];
    snprintf(lines, sizeof lines, "  limit_val_batches: 0\n  fast_dev_run: %s\n", words[i].word);
    run(&t, with("  limit_val_batches: 0\n", lines));
    bool stops = nxc_has(t.out.settings, NX_SETTING_RUN_STOP_EVERY);
    assert_int_equal(stops ? nxc_int(t.out.settings, NX_SETTING_RUN_STOP_EVERY) : 0, words[i].steps);
    assert_int_equal(nxc_int(t.out.settings, NX_SETTING_EVALUATE_BATCHES), words[i].steps);
    if (words[i].steps)
      assert_int_equal(nxc_int(t.out.settings, NX_SETTING_EVALUATE_EVERY_STEPS), words[i].steps);
    trial_end(&t);
  }
}

static void test_detection(void **state) {
  (void)state;
  trial t;
  trial_begin(&t, "mesh: {tensor: 2}\nvars: {x: 1}\n");
  trial_run(&t);
  assert_string_equal(t.out.dialect->name, "nx");
  assert_null(trial_finding(&t, "NX1301", 0));
  trial_end(&t);
  trial_begin(&t, "something: 1\n");
  trial_run(&t);
  assert_false(t.ok);
  assert_non_null(strstr(trial_expect(&t, "NX1310", "cannot tell")->fix, "--dialect"));
  trial_end(&t);
  trial_begin(&t, "mesh: {tensor: 2}\n");
  t.request.dialect = "neox9";
  trial_run(&t);
  trial_expect(&t, "NX1313", "neox9");
  trial_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_settings),     cmocka_unit_test(test_initial_weights),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_bits),         cmocka_unit_test(test_unread_misfit),
      cmocka_unit_test(test_unknown_keys), cmocka_unit_test(test_variables),
      cmocka_unit_test(test_aliases),      cmocka_unit_test(test_required),
      cmocka_unit_test(test_statuses),     cmocka_unit_test(test_trial_runs),
      cmocka_unit_test(test_detection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
