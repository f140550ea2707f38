/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/nearest.h"
#include "tests/unit/cmocka_all.h"

static const char *const names[] = {"learned_absolute",          "rope", "num_layers", "zero1", "betas",
                                    "tensor_model_parallel_size"};
enum { N_NAMES = sizeof names / sizeof *names };

static void test_nearest(void **state) {
  (void)state;
  static const struct {
    const char *word, *name;
    bool certain;
  } rows[] = {
      {"num_layer", "num_layers", true},
      {"num-layers", "num_layers", true},
      {"nmu_layers", "num_layers", true}, /* two letters swapped are one edit */
      {"tensor_model_paralel_sise", "tensor_model_parallel_size", true},
      {"beta", "betas", true},
      {"rop", "rope", false},             /* few letters */
      {"num_lyrss", "num_layers", false}, /* three slips */
      {"Zero1", "zero1", true},
      {"zero2", "zero1", false}, /* another number */
      {"hidden_size", NULL, false},
      {"x", NULL, false},
      {"", NULL, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_near near = nxc_near_find(rows[i].word, names, N_NAMES);
    if (rows[i].name == NULL) assert_null(near.name);
    else assert_string_equal(near.name, rows[i].name);
    assert_int_equal(near.certain, rows[i].certain);
  }
}

static void test_another_part(void **state) {
  (void)state;
  static const char *const parts[] = {"train_batch_size"}; /* one part is another word */
  assert_null(nxc_nearest("eval_batch_size", parts, 1));
  assert_string_equal(nxc_nearest("tarin_batch_size", parts, 1), "train_batch_size");
}

static void test_two_as_near(void **state) {
  (void)state;
  static const char *const alike[] = {"num_layers_first", "num_layers_fresh", "num_layers_fires"};
  nxc_near near = nxc_near_find("num_layers_firs", alike, 3);
  assert_string_equal(near.name, "num_layers_first"); /* it begins alike for longest, as the third does */
  assert_false(near.certain);
}

static void test_remedies(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  assert_null(nxc_did_you_mean(arena, "--", NULL));
  assert_string_equal(nxc_did_you_mean(arena, "--", "lr"), "did you mean --lr?");
  assert_int_equal(nxc_repair_misspelt(arena, (nxc_span){0}, "rl", (nxc_near){0}).n_edits, 0);
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nearest),
      cmocka_unit_test(test_another_part),
      cmocka_unit_test(test_two_as_near),
      cmocka_unit_test(test_remedies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
