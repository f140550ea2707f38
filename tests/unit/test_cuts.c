/* SPDX-License-Identifier: Apache-2.0 */
/* Where the layers of a pipeline are cut, as each of the real systems does. */
#include "compiler/expression/expression.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct expected {
  const char *call, *cuts; /* "layers." left out; "error" where it fails */
} expected;

/* The cuts, separated by blanks, or a number. */
static const char *evaluate(nxc_arena *arena, const char *text) {
  const nxc_scope scope = {0};
  const char *error;
  size_t error_at;
  const nxc_expression *expression = nxc_expression_parse(arena, text, &error, &error_at);
  assert_non_null(expression);
  const nxc_value *value = nxc_expression_evaluate(arena, expression, &scope, &error);
  if (error != NULL) return "error";
  if (value->kind == NXC_INT) return nxc_value_show(arena, value);
  assert_int_equal(value->kind, NXC_LIST);
  const char *cuts = "";
  for (size_t i = 0; i < value->n_items; i++) {
    const char *name = value->items[i].text;
    if (strncmp(name, "layers.", 7) == 0) name += 7;
    cuts = nxc_arena_printf(arena, "%s%s%s", cuts, i ? " " : "", name);
  }
  return cuts;
}

static void check_all(const expected *rows, size_t n_rows) {
  nxc_arena *arena = nxc_arena_new();
  for (size_t i = 0; i < n_rows; i++) {
    const char *cuts = evaluate(arena, rows[i].call);
    if (strcmp(cuts, rows[i].cuts) != 0)
      fail_msg("%s: %s, expected %s", rows[i].call, cuts, rows[i].cuts);
  }
  nxc_arena_free(arena);
}
#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof *(rows))

static void megatron_shares_what_the_ends_leave(void **state) {
  (void)state;
  static const expected rows[] = {
      {"stage_cuts(8, 4, 1, null, null, 0, 0)", "1 3 5"},
      {"stage_cuts(126, 16, 1, 7, 7, 0, 0)", "6 14 22 30 38 46 54 62 70 78 86 94 102 110 118"},
      {"stage_cuts(126, 16, 1, null, null, 1, 1)", "6 14 22 30 38 46 54 62 70 78 86 94 102 110 118"},
      {"stage_cuts(10, 4, 1, 1, null, 0, 0)", "0 3 6"},
      {"stage_cuts(10, 4, 1, null, 1, 0, 0)", "2 5 8"},
      {"stage_cuts(7, 2, 1, 3, 4, 0, 0)", "2"},
      {"stage_cuts(7, 2, 1, 3, 3, 0, 0)", "error"},
      {"stage_cuts(14, 4, 2, null, null, 1, 1)", "0 2 4 6 8 10 12"},
      {"stage_cuts(14, 4, 1, 0, null, 0, 0)", "error"},
      {"stage_cuts(9, 4, 1, 0, null, 0, 0)", "embedding 2 5"},
      {"stage_cuts(8, 2, 3, null, null, 0, 0)", "error"},
      {"stage_cuts(12, 2, 2, 4, null, 0, 0)", "1 5 7"},
      {"stage_cuts(2, 4, 1, null, null, 1, 1)", "embedding 0 1"},
      {"stage_cuts(-1, 4, 1, null, null, 1, 1)", "error"},
  };
  CHECK(rows);
}

static void a_layout_is_written_out(void **state) {
  (void)state;
  static const expected rows[] = {
      {"layout_cuts('Et|t|t|tL')", "0 1 2"},
      {"layout_cuts('Et*3|(tt|)*4m|L')", "error"},
      {"layout_cuts('Et*3|(tt|)*4|L')", "2 4 6 8 10 10"},
      {"layout_cuts('Et*3|(tt|)*4L')", "2 4 6 8 10"},
      {"layout_cuts('E|(t|)*3,tt|L')", "embedding 0 1 2 4"},
      {"layout_cuts('tE|t|L')", "error"},
      {"layout_cuts('Et|t')", "error"},
      {"layout_cuts('E(t|t')", "error"},
      {"layout_cuts('Et*999999999|L')", "error"},
  };
  CHECK(rows);
}

/* What tells of cuts how they are said, and null where they cannot be. */
static void cuts_are_told_as_their_systems_do(void **state) {
  (void)state;
  static const char *const true_of_all[] = {
      "cut_ends(stage_cuts(126, 16, 1, 7, 7, 0, 0), 126) == [7, 7]",
      "cut_ends(stage_cuts(10, 4, 1, 1, null, 0, 0), 10) == [1, 3]",
      "cut_ends(stage_cuts(7, 2, 1, 3, 4, 0, 0), 7) == [3, 4]",
      "cut_ends(stage_cuts(8, 4, 1, null, null, 0, 0), 8) == [2, 2]",
      "cut_ends(['layers.1', 'layers.4', 'layers.6'], 9) == null",
      "cut_ends(stage_cuts(9, 4, 1, 0, null, 0, 0), 9) == null",
      "cut_ends(['layers.1', 'layers.3'], 4) == null",
      "cut_counts(stage_cuts(14, 4, 2, null, null, 1, 1), 14) == [1, 1]",
      "cut_counts(stage_cuts(15, 4, 2, null, null, 1, 0), 15) == [1, 0]",
      "cut_counts(stage_cuts(15, 4, 2, null, null, 0, 1), 15) == [0, 1]",
      "cut_counts(stage_cuts(16, 4, 2, null, null, 0, 0), 16) == [0, 0]",
      "cut_counts(['layers.2', 'layers.5', 'layers.8'], 13) == null", /* the last has one more */
      "cut_counts(['layers.0', 'layers.3'], 6) == null",              /* the first lacks two */
      "cut_counts(['layers.2', 'layers.4', 'layers.7'], 11) == null",
      "cuts_layout(stage_cuts(7, 4, 1, null, null, 1, 0), 7) == 'Et|t*2|t*2|t*2L'",
      "cuts_layout(['embedding', 'layers.1', 'layers.1'], 2) == 'E|t*2||L'",
      "layout_cuts(cuts_layout(weighted_cuts(28, 4, 1, 1), 28)) == weighted_cuts(28, 4, 1, 1)",
  };
  nxc_arena *arena = nxc_arena_new();
  for (size_t i = 0; i < sizeof true_of_all / sizeof *true_of_all; i++) {
    const char *text = nxc_arena_printf(arena, "%s ? 1 : 0", true_of_all[i]);
    if (strcmp(evaluate(arena, text), "1") != 0) fail_msg("%s is not so", true_of_all[i]);
  }
  assert_string_equal(evaluate(arena, "cut_ends(['layers.1'], 'two')"), "error");
  assert_string_equal(evaluate(arena, "cuts_layout([1], 2)"), "error");
  nxc_arena_free(arena);
}

static void xorl_gives_the_rest_to_the_first(void **state) {
  (void)state;
  static const expected rows[] = {
      {"weighted_cuts(8, 4, 0, 0)", "1 3 5"},
      {"weighted_cuts(8, 4, 1, 1)", "1 4 6"},
      {"weighted_cuts(28, 4, 1, 1)", "6 14 21"},
      {"weighted_cuts(2, 4, 3, 0)", "error"},
  };
  CHECK(rows);
}

/* What GPT-NeoX and Megatron-DeepSpeed list beside the layers. */
#define LAYERS "['EmbeddingPipe', '_pre_transformer_block'], 'ParallelTransformerLayerPipe', "
#define TIED LAYERS "['_post_transformer_block', 'NormPipe', 'EmbeddingPipe']"
#define UNTIED LAYERS "['_post_transformer_block', 'NormPipe', 'ParallelLinearPipe']"
#define MEGATRON                                                                                             \
  "['_to_float16', 'EmbeddingPipe', '<lambda>'], 'ParallelTransformerLayerPipe', "                           \
  "['undo', 'LayerNorm', 'EmbeddingPipe', 'float16_to_fp32']"

/* The expected cuts come from the rules of DeeperSpeed's utils.py worked out by another program. */
static void deepspeed_balances_its_list_of_modules(void **state) {
  (void)state;
  static const expected rows[] = {
      {"deepspeed_cuts('type:transformer|mlp', 4, 2, " TIED ")", "1"},
      {"deepspeed_cuts('type:transformer|mlp', 6, 4, " UNTIED ")", "0 2 4"},
      {"deepspeed_cuts('type:transformer|mlp', 12, 4, " UNTIED ")", "2 6 10"},
      {"deepspeed_cuts('type:transformer|mlp', 44, 8, " UNTIED ")", "4 10 16 22 28 34 40"},
      {"deepspeed_cuts('type:transformer|mlp', 32, 6, " TIED ")", "4 10 16 22 28"},
      {"deepspeed_cuts('type:transformer|mlp', 7, 3, " UNTIED ")", "1 4"},
      {"deepspeed_cuts('type:paralleltransformer', 4, 2, " TIED ")", "1"},
      {"deepspeed_cuts('type:paralleltransformer', 6, 4, " TIED ")", "1 3 5"},
      {"deepspeed_cuts('type:paralleltransformer', 12, 4, " UNTIED ")", "2 5 8"},
      {"deepspeed_cuts('type:paralleltransformer', 44, 8, " UNTIED ")",
       "5 11 17 23 29 35 41"},
      {"deepspeed_cuts('type:paralleltransformer', 32, 6, " TIED ")",
       "5 11 17 23 29"},
      {"deepspeed_cuts('type:paralleltransformer', 7, 3, " TIED ")", "2 5"},
      {"deepspeed_cuts('type:embedding|layer', 4, 2, " UNTIED ")", "1"},
      {"deepspeed_cuts('type:embedding|layer', 6, 4, " UNTIED ")", "0 2 4"},
      {"deepspeed_cuts('type:embedding|layer', 12, 4, " UNTIED ")", "2 6 10"},
      {"deepspeed_cuts('type:embedding|layer', 44, 8, " UNTIED ")",
       "4 10 16 22 28 34 40"},
      {"deepspeed_cuts('type:embedding|layer', 32, 6, " TIED ")",
       "4 10 16 22 28"},
      {"deepspeed_cuts('type:embedding|layer', 7, 3, " UNTIED ")", "1 4"},
      {"deepspeed_cuts('uniform', 4, 2, " TIED ")", "1"},
      {"deepspeed_cuts('uniform', 6, 4, " TIED ")", "embedding 1 3"},
      {"deepspeed_cuts('uniform', 12, 4, " TIED ")", "1 5 9"},
      {"deepspeed_cuts('uniform', 44, 8, " UNTIED ")", "3 9 15 21 27 33 39"},
      {"deepspeed_cuts('uniform', 32, 6, " TIED ")", "3 9 15 21 27"},
      {"deepspeed_cuts('uniform', 7, 3, " UNTIED ")", "1 5"},
      {"deepspeed_cuts('parameters', 4, 2, [3219456, 0], 10000000, [0, 128, 3219456])", "1"},
      {"deepspeed_cuts('parameters', 6, 4, [0, 0], 10000000, [0, 128, 0])", "1 3 5"},
      {"deepspeed_cuts('parameters', 12, 4, [0, 0], 49152, [0, 128, 0])", "2 5 8"},
      {"deepspeed_cuts('parameters', 44, 8, [0, 0], 49152, [0, 128, 0])", "5 11 17 23 29 35 41"},
      {"deepspeed_cuts('parameters', 32, 6, [1000, 0], 10000000, [0, 128, 1000])", "4 10 16 22 28"},
      {"deepspeed_cuts('parameters', 7, 3, [0, 0], 10000000, [0, 128, 0])", "2 5"},
      {"deepspeed_cuts('parameters', 12, 4, [38597376, 0], 7087872, [0, 1536, 38597376])", "embedding 5 11"},
      {"deepspeed_cuts('parameters', 16, 8, [51511296, 0], 12596224, [0, 4096, 51511296])",
       "embedding 3 7 11 15 15 15"},
      {"deepspeed_cuts('type:norm|linear', 4, 2, " UNTIED ")", "3"},
      {"deepspeed_cuts('type:transformer', 6, 4, " MEGATRON ")", "1 3 5"},
      {"deepspeed_cuts('type:transformer|embedding', 6, 4, " MEGATRON ")", "0 2 4"},
      {"deepspeed_cuts('type:transformer|embedding', 2, 4, " MEGATRON ")", "embedding 0 1"},
      {"deepspeed_cuts('parameters', 6, 4, " TIED ")", "error"},
      {"deepspeed_cuts('type:layer', 6, 4, [1], 2, [3])", "error"},
      {"deepspeed_cuts('type:(', 4, 2, " UNTIED ")", "error"},
  };
  CHECK(rows);
}

/* Counted by the loop that Megatron itself counts its steps with. */
static void steps_of_a_growing_batch(void **state) {
  (void)state;
  static const expected rows[] = {
      {"ramped_steps(32, 32, 50000, 512, 800000)", "1811"},
      {"ramped_steps(16, 8, 300000, 1024, 400000)", "1416"},
      {"ramped_steps(16, 16, 160, 32, 100)", "7"},
      {"ramped_steps(384, 384, 97656250, 1152, 4882813)", "12716"},
      {"ramped_steps(8, 8, 64, 16, 64)", "9"},
      {"ramped_steps(8, 7, 64, 16, 64)", "error"},
      {"ramped_steps(8, 0, 64, 16, 64)", "error"},
      {"batch_sizes('0:768 250B:1536, 500b:3072', 8192)", "768@0 1536@30517578 3072@61035156"},
      {"last_batch_size('1.5M:32 0:8', 1000)", "32"},
      {"len(batch_sizes('1:8', 1)) + len(batch_sizes('0:8 x', 1)) + len(batch_sizes('0:0', 1))", "0"},
      {"len(batch_sizes('0:8 5:9', 10)) + len(batch_sizes('0:8-', 1)) + len(batch_sizes('', 1))", "0"},
      {"last_batch_size('eight', 10)", "error"},
      {"batch_steps('0:2 7:4 20:8', 1, 40)", "10"},
      {"batch_steps('0:2 7:4', 1, 5)", "3"},
      {"ramped_steps(1, 1, 64, 9000000000000000000, 64)", "error"},
      {"growth(32, 32, 1000, 128)", "32@0 64@334 96@667 128@1000"},
      {"growth(8, 7, 64, 16)", "error"},
  };
  CHECK(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(megatron_shares_what_the_ends_leave),
      cmocka_unit_test(a_layout_is_written_out),
      cmocka_unit_test(cuts_are_told_as_their_systems_do),
      cmocka_unit_test(xorl_gives_the_rest_to_the_first),
      cmocka_unit_test(deepspeed_balances_its_list_of_modules),
      cmocka_unit_test(steps_of_a_growing_batch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
