/* SPDX-License-Identifier: Apache-2.0 */
/* Machines and models that are known by their names. */
#include "compiler/estimate/assume.h"
#include "compiler/machine/machine.h"
#include "compiler/machine/names.h"
#include "tests/unit/estimate_case.h"

/* ---- models that are known by their names ---- */

static nxc_sizes sizes_of_model(nxc_arena *arena, const char *name) {
  const char *text = nxc_arena_printf(arena,
                                      "model: {model_path: %s}\n"
                                      "data: {datasets: [{path: dummy}], sample_packing_sequence_len: 8192}\n"
                                      "train: {output_dir: out, max_steps: 1, lr: 1e-5}\n",
                                      name);
  const nxc_request request = {.file = "run.yaml",
                               .text = nxc_source_new(arena, "run.yaml", text, strlen(text)),
                               .dialect = "xorl",
                               .world_size = "8"};
  nxc_compiled compiled;
  nxc_assumed assumed;
  nxc_training training;
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_assume_compile(arena, &request, NULL, 0, sink, &compiled, &assumed);
  assert_non_null(compiled.settings);
  assert_true(nxc_training_read(compiled.settings, sink, &training));
  return nxc_sizes_read(&training, compiled.settings);
}

/* Windows in every second layer of gpt-oss and of Gemma 2, in none of Qwen3; the first layer of GLM-4.5 Air
 * dense. */
static void test_known(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  nxc_sizes oss = sizes_of_model(arena, "openai/gpt-oss-20b"),
            gemma = sizes_of_model(arena, "google/gemma-2-9b");
  assert_true(oss.window == 128 && oss.windowed == 0.5);
  assert_true(gemma.window == 4096 && gemma.windowed == 0.5);
  assert_true(sizes_of_model(arena, "Qwen/Qwen3-8B").windowed == 0);
  nxc_sizes glm = sizes_of_model(arena, "zai-org/GLM-4.5-Air");
  assert_true(glm.layers == 46 && glm.mixtures == 45 && glm.shared_ffn == 1408);
  nxc_arena_free(arena);
}

/* ---- machines ---- */

static void test_names(void **unused) {
  (void)unused;
  static const char *const same[][2] = {{"H100", "h100"},           {"h100-80GB", "h100"},
                                        {"A100 40GB", "a100-40gb"}, {"TPU v5p", "tpu-v5p"},
                                        {"v5p", "tpu-v5p"},         {"ironwood", "tpu7x"}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    const nxc_machine_text *known = nxc_machine_named(same[i][0]);
    assert_non_null(known);
    assert_string_equal(known->name, same[i][1]);
  }
  assert_null(nxc_machine_named("h1"));
  assert_null(nxc_machine_named(""));
  assert_null(nxc_machine_named("a100-80gb, a100-80"));
}

/* Every description reads without a finding. */
static void test_machines(void **unused) {
  (void)unused;
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  for (size_t i = 0; i < nxc_machine_texts_n; i++) {
    const nxc_machine *m = nxc_machine_read(arena, nxc_machine_texts[i].name, sink);
    assert_non_null(m);
    assert_true(m->memory_bytes > 0 && m->ranks_per_host > 0 && m->inside.bandwidth.n_points > 0);
    assert_true(m->between.bandwidth.n_points > 0);
  }
  assert_int_equal(nxc_sink_n_findings(sink), 0);
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_machines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
