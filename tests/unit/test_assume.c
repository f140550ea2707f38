/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration leaves open is assumed once, with why; what it gives stands. */
#include "compiler/estimate/assume.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct attempt {
  nxc_arena *arena;
  nxc_compiled out;
  nxc_assumed assumed;
} attempt;

static attempt assume_text(const char *dialect, const char *file, const char *text,
                           const nxc_assumption *given, size_t n_given) {
  attempt a = {.arena = nxc_arena_new()};
  nxc_request request = {
      .file = file, .text = nxc_source_new(a.arena, file, text, strlen(text)), .dialect = dialect};
  nxc_assume_compile(a.arena, &request, given, n_given, nxc_sink_new(a.arena), &a.out, &a.assumed);
  assert_non_null(a.out.settings);
  return a;
}

static const nxc_assumption *assumption_of(const attempt *a, nxc_setting_id id) {
  for (size_t i = 0; i < a->assumed.n_items; i++)
    if (a->assumed.items[i].setting == id) return &a->assumed.items[i];
  return NULL;
}

static void expect(const attempt *a, nxc_setting_id id, const char *value, const char *why) {
  const nxc_assumption *found = assumption_of(a, id);
  if (found == NULL) fail_msg("%s is not assumed", nxc_setting_path(id));
  assert_string_equal(found->value, value);
  assert_string_equal(found->why, why);
  assert_int_equal(nxc_settings_from(a->out.settings, id)->kind, NXC_FROM_ASSUMED);
}

static const char *const shape =
    "model: {layers: 4, hidden: 64, heads: 4, ffn_hidden: 256, vocab: 512, sequence: 32}\n";

static void the_smallest_world_and_what_is_usual(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  const char *text = nxc_arena_printf(arena, "%smesh: {tensor: 2, pipeline: 2}\n", shape);
  attempt a = assume_text("nx", "a.yaml", text, NULL, 0);
  expect(&a, NX_SETTING_MESH_WORLD, "4", "the smallest that the layout allows");
  expect(&a, NX_SETTING_BATCH_MICRO, "1", "the smallest");
  expect(&a, NX_SETTING_BATCH_GLOBAL, "1", "one micro-batch a rank");
  expect(&a, NX_SETTING_OPTIMIZER_LR, "0.0003", "no estimate depends on it");
  assert_null(assumption_of(&a, NX_SETTING_MODEL_SEQUENCE));
  assert_null(assumption_of(&a, NX_SETTING_MODEL_VOCAB));
  assert_null(a.assumed.model);
  nxc_arena_free(a.arena);
  nxc_arena_free(arena);
}

/* A word that the script takes from its arguments. */
static void what_stays_unknown_is_as_nx_has_it(void **state) {
  (void)state;
  attempt a = assume_text("megatron", "run.sh",
                          "python pretrain_gpt.py --transformer-impl $1 --num-layers 4 --hidden-size 64 "
                          "--num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --bf16 "
                          "--micro-batch-size 1 --tokenizer-type GPT2BPETokenizer --mock-data --lr 1e-4 "
                          "--train-iters 10\n",
                          NULL, 0);
  expect(&a, NX_SETTING_ATTENTION_FLASH, "true", "nothing tells it; --assume does");
  nxc_arena_free(a.arena);
}

static void a_world_holds_all_experts(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  const char *text = nxc_arena_printf(
      arena, "%smesh: {expert: 8, expert_tensor: 1}\nmoe: {experts: 8, top_k: 2, ffn_hidden: 64}\n", shape);
  attempt a = assume_text("nx", "a.yaml", text, NULL, 0);
  expect(&a, NX_SETTING_MESH_WORLD, "8", "the smallest that the layout allows");
  nxc_arena_free(a.arena);
  nxc_arena_free(arena);
}

static void the_users_own_count_first_and_the_files_before_them(void **state) {
  (void)state;
  const nxc_assumption given[] = {{NX_SETTING_BATCH_MICRO, "4", "--assume"},
                                  {NX_SETTING_MODEL_LAYERS, "8", "--assume"}};
  attempt a = assume_text("nx", "a.yaml", shape, given, 2);
  expect(&a, NX_SETTING_BATCH_MICRO, "4", "--assume");
  expect(&a, NX_SETTING_BATCH_GLOBAL, "4", "one micro-batch a rank");
  assert_null(assumption_of(&a, NX_SETTING_MODEL_LAYERS));
  assert_int_equal(nxc_int(a.out.settings, NX_SETTING_MODEL_LAYERS), 4);
  nxc_arena_free(a.arena);
}

static const char *const xorl = "data: {datasets: [{path: dummy}], sample_packing_sequence_len: 512}\n"
                                "train: {data_parallel_shard_size: 8, micro_batch_size: 1}\n";

static void a_model_that_is_named_has_its_shape(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  attempt a = assume_text(
      "xorl", "a.yaml", nxc_arena_printf(arena, "model: {model_path: Qwen/Qwen3-8B-FP8}\n%s", xorl), NULL, 0);
  assert_string_equal(a.assumed.model, "Qwen/Qwen3-8B");
  assert_int_equal(nxc_int(a.out.settings, NX_SETTING_MODEL_LAYERS), 36);
  assert_int_equal(nxc_settings_from(a.out.settings, NX_SETTING_MODEL_HIDDEN)->kind, NXC_FROM_ASSUMED);
  nxc_arena_free(a.arena);
  nxc_arena_free(arena);
}

/* The file's own name is asked only where no option says which model it is. */
static void a_model_that_is_unknown_has_no_shape(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  attempt a = assume_text("xorl", "qwen3_8b.yaml",
                          nxc_arena_printf(arena, "model: {model_path: acme/own-1}\n%s", xorl), NULL, 0);
  assert_null(a.assumed.model);
  assert_false(nxc_has(a.out.settings, NX_SETTING_MODEL_LAYERS));
  nxc_arena_free(a.arena);
  a = assume_text("xorl", "qwen3_8b.yaml",
                  nxc_arena_printf(arena, "model: {model_path: /data/own}\n%s", xorl), NULL, 0);
  assert_string_equal(a.assumed.model, "Qwen/Qwen3-8B");
  nxc_arena_free(a.arena);
  nxc_arena_free(arena);
}

static void a_model_of_another_kind_is_told(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  attempt a = assume_text("xorl", "a.yaml",
                          nxc_arena_printf(arena, "model: {model_path: Qwen/Qwen3.5-4B}\n%s", xorl), NULL, 0);
  assert_string_equal(a.assumed.model, "Qwen/Qwen3.5");
  assert_true(nxc_is(a.out.settings, NX_SETTING_MODEL_KIND, "hybrid"));
  nxc_arena_free(a.arena);
  nxc_arena_free(arena);
}

static void a_tokenizer_has_its_vocabulary(void **state) {
  (void)state;
  static const char text[] = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
                             "--max-position-embeddings 32 --micro-batch-size 1 --train-iters 10 --lr 1e-3 "
                             "--tokenizer-type GPT2BPETokenizer\n";
  attempt a = assume_text("megatron", "a.sh", text, NULL, 0);
  expect(&a, NX_SETTING_MODEL_VOCAB, "50257", "that of gpt2");
  nxc_arena_free(a.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_smallest_world_and_what_is_usual),
      cmocka_unit_test(what_stays_unknown_is_as_nx_has_it),
      cmocka_unit_test(a_world_holds_all_experts),
      cmocka_unit_test(the_users_own_count_first_and_the_files_before_them),
      cmocka_unit_test(a_model_that_is_named_has_its_shape),
      cmocka_unit_test(a_model_that_is_unknown_has_no_shape),
      cmocka_unit_test(a_model_of_another_kind_is_told),
      cmocka_unit_test(a_tokenizer_has_its_vocabulary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
