/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of an estimate, each beside what a person reckons: types, optimizers, adapters, quantized
 * weights, preferences. The model is a small Qwen3: 2 layers, hidden 64, 4 heads of 16, 2 key heads, width
 * 128, vocabulary 512. */
#include "compiler/config/compile_settings.h"
#include "compiler/estimate/memory.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <string.h>

enum { HIDDEN = 64, QUERIES = 64, KEYS = 32, WIDTH = 128, LAYERS = 2, VOCAB = 512, SEQUENCE = 32 };
enum {
  ATTENTION = HIDDEN * (QUERIES + 2 * KEYS) + QUERIES * HIDDEN,
  NETWORK = 3 * HIDDEN * WIDTH,
  TABLES = 2 * VOCAB * HIDDEN,
  MATRICES = LAYERS * (ATTENTION + NETWORK),
  NORMS = (2 * LAYERS + 1) * HIDDEN,
  PARAMETERS = MATRICES + TABLES + NORMS
};

typedef struct reckoned {
  nxc_arena *arena;
  nxc_sizes sizes; /* of the first stage */
  nxc_own_memory memory;
} reckoned;

static reckoned reckon(const char *system, const char *more) {
  nxc_arena *arena = nxc_arena_new();
  const char *text = nxc_arena_printf(
      arena,
      "mesh: {world: 4}\nbatch: {micro: %d, global: 8}\nschedule: {max_steps: 10}\n"
      "model: {layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_dim: 16, ffn_hidden: 128, vocab: 512,\n"
      "  vocab_divisor: 1, sequence: 32, activation: swiglu, tied_embeddings: false, bias: false}\n%s\n",
      strstr(more, "kto") ? 2 : 1, more);
  nxc_request request = {
      .file = "a.yaml", .text = nxc_source_new(arena, "a.yaml", text, strlen(text)), .dialect = "nx"};
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_compiled compiled;
  nxc_training training;
  reckoned r = {.arena = arena};
  nxc_compile_settings(arena, &request, sink, &compiled);
  assert_non_null(compiled.settings);
  if (!nxc_training_read(compiled.settings, sink, &training))
    fail_msg("%s", nxc_sink_finding(sink, 0)->message);
  nxc_sizes sizes = nxc_sizes_read(&training, compiled.settings);
  nxc_sizes_of_stage(&sizes, &training, 0, &r.sizes);
  r.memory = nxc_own_memory_of(nxc_system_open(arena, system), &sizes, &training, arena);
  return r;
}

static void expect(const char *what, double found, double wanted) {
  if (fabs(found - wanted) > 1e-9 * fabs(wanted))
    fail_msg("%s is %.17g, expected %.17g", what, found, wanted);
}

static void all_parameters_are_counted(void **state) {
  (void)state;
  reckoned r = reckon("nx", "optimizer: {name: adamw, lr: 1e-3}");
  expect("parameters", r.sizes.parameters, PARAMETERS);
  expect("trained", r.sizes.trained, 1);
  expect("states", r.sizes.states, 2);
  nxc_arena_free(r.arena);
}

static void fp16_has_two_bytes_and_a_master_copy(void **state) {
  (void)state;
  reckoned r = reckon("nx", "optimizer: {name: adamw, lr: 1e-3}\n"
                            "precision: {preset: manual, param: fp16, compute: fp16, master_weights: true}");
  expect("bytes of a parameter", r.sizes.param_bytes, 2);
  expect("bytes of an activation", r.sizes.compute_bytes, 2);
  expect("master copies", r.sizes.master, 1);
  expect("bytes of a moment", r.sizes.state_bytes, 4);
  nxc_arena_free(r.arena);
}

static void optimizers_keep_their_moments(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double moments; /* of all parameters */
  } rows[] = {{"{name: adamw, lr: 1e-3}", 2.0 * PARAMETERS},
              {"{name: sgd, lr: 1e-3}", 0},
              {"{name: sgd, momentum: 0.9, lr: 1e-3}", PARAMETERS},
              {"{name: lion, lr: 1e-3}", PARAMETERS},
              {"{name: signsgd, lr: 1e-3}", 0},
              {"{name: muon, lr: 1e-3}", MATRICES + 2.0 * (TABLES + NORMS)},
              {"{name: muon, momentum: 0, lr: 1e-3}", 2.0 * (TABLES + NORMS)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_arena *arena = nxc_arena_new();
    reckoned r = reckon("nx", nxc_arena_printf(arena, "optimizer: %s", rows[i].text));
    expect(rows[i].text, r.sizes.states * r.sizes.parameters, rows[i].moments);
    nxc_arena_free(r.arena);
    nxc_arena_free(arena);
  }
}

/* Rank 8 beside all matrices of a layer: q, k, v, o, gate, up and down. */
enum {
  RANK = 8,
  ADAPTERS =
      LAYERS * RANK * ((HIDDEN + QUERIES) + 2 * (HIDDEN + KEYS) + (QUERIES + HIDDEN) + 3 * (HIDDEN + WIDTH))
};

static const char *const lora =
    "optimizer: {name: adamw, lr: 1e-3, zero_stage: 3}\n"
    "precision: {preset: manual, param: bf16, compute: bf16}\n"
    "lora: {rank: 8, base_type: %s, modules: [q_proj, k_proj, v_proj, o_proj, gate_proj,"
    " up_proj, down_proj]}";

static void adapters_alone_are_trained(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  reckoned r = reckon("xorl", nxc_arena_printf(arena, lora, "same"));
  expect("trained", r.sizes.trained * PARAMETERS, ADAPTERS);
  expect("parameters", r.memory.parts[NXC_PART_PARAMETERS], (2.0 * PARAMETERS + 4.0 * ADAPTERS) / 4);
  expect("moments", r.memory.parts[NXC_PART_OPTIMIZER], 8.0 * ADAPTERS / 4);
  nxc_arena_free(r.arena);
  nxc_arena_free(arena);
}

static void quantized_weights_have_their_bytes(void **state) {
  (void)state;
  static const struct {
    const char *type;
    double weight, scale;
  } rows[] = {{"nvfp4", 0.5, 4.0 / 16}, {"nf4", 0.5, 4.0 / 64}, {"block_fp8", 1, 4.0 / 16384}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_arena *arena = nxc_arena_new();
    reckoned r = reckon("xorl", nxc_arena_printf(arena, lora, rows[i].type));
    double divided = rows[i].weight * MATRICES + 2.0 * (TABLES + NORMS) + 4.0 * ADAPTERS;
    expect(rows[i].type, r.memory.parts[NXC_PART_PARAMETERS], divided / 4 + rows[i].scale * MATRICES);
    nxc_arena_free(r.arena);
    nxc_arena_free(arena);
  }
}

static void preferences_are_pairs_and_may_need_a_second_model(void **state) {
  (void)state;
  const char *alone = "optimizer: {name: adamw, lr: 1e-3}\nalignment: {strategy: dpo}";
  const char *both = "optimizer: {name: adamw, lr: 1e-3}\nalignment: {strategy: dpo, reference_model: true}";
  reckoned one = reckon("neox", alone), two = reckon("neox", both),
           sft = reckon("neox", "optimizer: {lr: 1e-3}\nalignment: {strategy: sft}");
  expect("tokens of a pair", one.sizes.tokens, 2.0 * SEQUENCE);
  expect("tokens of a sample", sft.sizes.tokens, SEQUENCE);
  reckoned kto = reckon("neox", "optimizer: {lr: 1e-3}\nalignment: {strategy: kto, reference_model: true}"),
           head = reckon("neox", "optimizer: {lr: 1e-3}\nalignment: {strategy: reward}");
  expect("tokens of two answers", kto.sizes.tokens, 2.0 * SEQUENCE);
  expect("log-probabilities of all words", kto.sizes.whole_logits, 1);
  expect("and of a part of them", two.sizes.whole_logits, 0);
  expect("a head of values", head.sizes.outputs, 1);
  nxc_arena_free(kto.arena);
  nxc_arena_free(head.arena);
  expect("the reference", two.memory.parts[NXC_PART_PARAMETERS], 2 * one.memory.parts[NXC_PART_PARAMETERS]);
  nxc_arena_free(one.arena);
  nxc_arena_free(two.arena);
  nxc_arena_free(sft.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_parameters_are_counted),
      cmocka_unit_test(fp16_has_two_bytes_and_a_master_copy),
      cmocka_unit_test(optimizers_keep_their_moments),
      cmocka_unit_test(adapters_alone_are_trained),
      cmocka_unit_test(quantized_weights_have_their_bytes),
      cmocka_unit_test(preferences_are_pairs_and_may_need_a_second_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
