/* SPDX-License-Identifier: Apache-2.0 */
/* Which model or vocabulary a name means. */
#include "compiler/estimate/known.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

typedef struct expected {
  const char *text, *name; /* NULL: none */
} expected;

static void check_models(const expected *rows, size_t n_rows) {
  for (size_t i = 0; i < n_rows; i++) {
    const nxc_known_model *model = nxc_known_model_in(rows[i].text, 0, 0);
    const char *found = model ? model->name : "none", *wanted = rows[i].name ? rows[i].name : "none";
    if (strcmp(found, wanted) != 0) fail_msg("%s: %s, expected %s", rows[i].text, found, wanted);
  }
}
#define CHECK(rows) check_models(rows, sizeof(rows) / sizeof *(rows))

static void weights_of_one_shape_have_one_name(void **state) {
  (void)state;
  static const expected rows[] = {
      {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B"},
      {"Qwen/Qwen3-8B-Base", "Qwen/Qwen3-8B"},
      {"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen/Qwen3-30B-A3B"},
      {"nvidia/Qwen3-235B-A22B-NVFP4", "Qwen/Qwen3-235B-A22B"},
      {"Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
      {"meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B"},
      {"/data/models/Meta-Llama-3-8B-Instruct/", "meta-llama/Meta-Llama-3-8B"},
      {"unsloth/gpt-oss-20b-BF16", "openai/gpt-oss-20b"},
      {"gpt2-xl", "gpt2-xl"},
      {"mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-v0.3"},
      {"mistralai/Mistral-7B", "mistralai/Mistral-7B-v0.1"},
  };
  CHECK(rows);
}

static void names_of_files_name_models(void **state) {
  (void)state;
  static const expected rows[] = {{"hf_llama3_8B_SFT_lora_config.yaml", "meta-llama/Meta-Llama-3-8B"},
                                  {"hf_llama3.1_405B_trn1_config.yaml", "meta-llama/Meta-Llama-3.1-405B"},
                                  {"hf_llama_7B_config.yaml", "huggyllama/llama-7b"},
                                  {"hf_mixtral_8x7b_dropless_config.yaml", "mistralai/Mixtral-8x7B-v0.1"}};
  CHECK(rows);
}

static void other_models_are_not_taken_for_it(void **state) {
  (void)state;
  static const expected rows[] = {{"Qwen/Qwen3-80B", NULL},
                                  {"Qwen/Qwen3-VL-8B", "Qwen/Qwen3-VL"},
                                  {"Qwen/Qwen3.5-8B", "Qwen/Qwen3.5"},
                                  {"Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.6"},
                                  {"microsoft/Phi-4-mini", NULL},
                                  {"acme/CodeLlama-8b", NULL},
                                  {"acme/llama-17b", NULL},
                                  {"gpt2-tiny", NULL},
                                  {"", NULL},
                                  {"-/-", NULL}};
  CHECK(rows);
}

static void sizes_that_are_known_decide(void **state) {
  (void)state;
  assert_null(nxc_known_model_in("Qwen/Qwen3-8B", 28, 0));
  assert_null(nxc_known_model_in("Qwen/Qwen3-8B", 36, 1024));
  assert_string_equal(nxc_known_model_in("Qwen/Qwen3-8B", 36, 4096)->name, "Qwen/Qwen3-8B");
}

static void every_model_is_found_by_its_own_name(void **state) {
  (void)state;
  for (size_t i = 0; i < nxc_n_known_models; i++) {
    const nxc_known_model *model = &nxc_known_models[i];
    const nxc_known_model *found = nxc_known_model_in(model->name, 0, 0);
    if (found != model) fail_msg("%s: %s", model->name, found ? found->name : "none");
    assert_true((model->layers == 0) == (model->hidden == 0));
  }
}

static void tokenizers_are_found_in_types_and_files(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t vocab;
    bool usual;
  } rows[] = {{"GPT2BPETokenizer", 50257, false},
              {"/data/20B_tokenizer.json", 50277, false},
              {"HFTokenizer", 50277, true},
              {"cl100k_base", 100277, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const nxc_known_tokenizer *found = nxc_known_tokenizer_in(rows[i].text);
    assert_non_null(found);
    assert_int_equal(found->vocab, rows[i].vocab);
    assert_int_equal(found->usual, rows[i].usual);
  }
  assert_null(nxc_known_tokenizer_in("acme"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_of_one_shape_have_one_name), cmocka_unit_test(names_of_files_name_models),
      cmocka_unit_test(other_models_are_not_taken_for_it),  cmocka_unit_test(sizes_that_are_known_decide),
      cmocka_unit_test(every_model_is_found_by_its_own_name),
      cmocka_unit_test(tokenizers_are_found_in_types_and_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
