/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a layer: which operators and parameters a plan has for each, and that they are counted. */
#include "schema/plan.h"
#include "tests/unit/plan_lookups.h"
#include "tests/unit/program_case.h"

#include <math.h>

/* Attribute `index` of the `which`-th of these operators. */
static const nx_attribute *attribute(const nx_plan *plan, nx_op op, int which, uint32_t index) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++)
    if (plan->operators[i].op == op && which-- == 0)
      return &plan->attributes[plan->operators[i].first_attribute + index];
  fail_msg("there are too few such operators");
  return NULL;
}

/* ---- activations ---- */

static void an_activation_is_an_operator_with_its_function(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    nx_op op;
    nx_activation function;
  } cases[] = {
      {"model.activation=swiglu", NX_OP_gated, NX_ACTIVATION_SILU},
      {"model.activation=geglu", NX_OP_gated, NX_ACTIVATION_GELU},
      {"model.activation=geglu_tanh", NX_OP_gated, NX_ACTIVATION_GELU_TANH},
      {"model.activation=quick_geglu", NX_OP_gated, NX_ACTIVATION_QUICK_GELU},
      {"model.activation=bilinear", NX_OP_gated, NX_ACTIVATION_IDENTITY},
      {"model.activation=squared_relu", NX_OP_activation, NX_ACTIVATION_SQUARED_RELU},
      {"model.activation=mish mesh.world=2 mesh.tensor=2", NX_OP_activation, NX_ACTIVATION_MISH},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i].changes);
    assert_int_equal(count_operators(&c.out.plan, cases[i].op), 2);
    assert_int_equal(attribute(&c.out.plan, cases[i].op, 1, NX_activation_function)->integer,
                     cases[i].function);
    program_end(&c);
  }
}

static void feed_forward_alone_may_have_biases(void **state) {
  (void)state;
  program_case c = program_good("model.ffn_bias=true");
  assert_non_null(piece_named(&c.out.plan, "model.layers.1.mlp.down_proj.bias"));
  assert_null(piece_named(&c.out.plan, "model.layers.1.self_attn.o_proj.bias"));
  program_end(&c);
}

/* ---- initial weights ---- */

static void weights_are_drawn_as_the_method_says(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    nx_init init, output_init;
    double up, down; /* deviations of the matrices [48,32] (twice, fused) and [32,48] */
  } cases[] = {
      {"", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.02, 0.01},
      {"model.scaled_init=false", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.02, 0.02},
      {"model.init_method=small_init model.output_init_method=wang_init", NX_INIT_NORMAL, NX_INIT_NORMAL,
       0.11180339887498949, 0.17677669529663687},
      {"model.init_method=small_init", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.11180339887498949,
       0.11180339887498949},
      {"model.init_method=small_init model.output_init_method=scaled_normal", NX_INIT_NORMAL, NX_INIT_NORMAL,
       0.11180339887498949, 0.01},
      {"model.output_init_method=residual_scaled_normal", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.02,
       0.014142135623730951},
      {"model.init_method=xavier_uniform mesh.world=2 mesh.tensor=2", NX_INIT_UNIFORM, NX_INIT_UNIFORM, 0.125,
       0.15811388300841897},
      {"model.init_method=xavier_uniform mesh.world=2 mesh.tensor=2 model.init_by_part=true", NX_INIT_UNIFORM,
       NX_INIT_UNIFORM, 0.15811388300841897, 0.1889822365046136},
      {"model.init_method=orthogonal mesh.world=2 mesh.tensor=2 model.init_by_part=true", NX_INIT_ORTHOGONAL,
       NX_INIT_ORTHOGONAL, 1.4142135623730951, 1.7320508075688772},
      {"model.init_method=xavier_normal model.output_init_method=normal", NX_INIT_NORMAL, NX_INIT_NORMAL,
       0.125, 0.02},
      {"model.init_method=orthogonal", NX_INIT_ORTHOGONAL, NX_INIT_ORTHOGONAL, 1, 1.4142135623730951},
      {"model.init_method=orthogonal mesh.world=2 mesh.tensor=2", NX_INIT_ORTHOGONAL, NX_INIT_ORTHOGONAL, 1,
       1.4142135623730951},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i].changes);
    const nx_piece *up = piece_named(&c.out.plan, "model.layers.0.mlp.up_proj.weight");
    const nx_piece *down = piece_named(&c.out.plan, "model.layers.1.mlp.down_proj.weight");
    assert_int_equal(up->init, cases[i].init);
    assert_int_equal(down->init, cases[i].output_init);
    assert_true(fabs(up->init_std - cases[i].up) < 1e-15);
    assert_true(fabs(down->init_std - cases[i].down) < 1e-15);
    program_end(&c);
  }
}

static void embeddings_may_have_a_deviation_of_their_own(void **state) {
  (void)state;
  program_case c = program_good("model.embedding_init_std=0.5 model.init_method=xavier_uniform");
  const nx_piece *words = piece_named(&c.out.plan, "model.embed_tokens.weight");
  assert_true(words->init == NX_INIT_NORMAL && words->init_std == 0.5);
  assert_true(piece_named(&c.out.plan, "lm_head.weight")->init == NX_INIT_UNIFORM);
  program_end(&c);
}

static void positions_may_have_a_deviation_of_their_own(void **state) {
  (void)state;
  program_case c = program_good("model.position_embedding=learned model.max_positions=64 "
                                "model.embedding_init_std=0.5 model.position_init_std=1");
  assert_true(piece_named(&c.out.plan, "transformer.wpe.weight")->init_std == 1);
  assert_true(piece_named(&c.out.plan, "transformer.wte.weight")->init_std == 0.5);
  program_end(&c);
}

/* As all others, and by Kaiming's rule: 2 / sqrt(32). */
static void routers_may_be_drawn_by_a_rule_of_their_own(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    uint32_t init;
    double std;
  } cases[] = {{"moe.experts=4 moe.top_k=2", NX_INIT_NORMAL, 0.02},
               {"moe.experts=4 moe.top_k=2 moe.router_init_gain=2", NX_INIT_UNIFORM, 0.35355339059327379}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i].changes);
    const nx_piece *router = piece_named(&c.out.plan, "model.layers.1.block_sparse_moe.gate.weight");
    assert_int_equal(router->init, cases[i].init);
    assert_true(fabs(router->init_std - cases[i].std) < 1e-15);
    program_end(&c);
  }
}

static void biases_of_distances_may_have_a_deviation_of_their_own(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    double std;
  } cases[] = {{"model.position_embedding=relative", 0.02},
               {"model.position_embedding=relative model.relative_init_std=0.3", 0.3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i].changes);
    const nx_piece *table = piece_named(&c.out.plan, "model.relative_attention_bias.weight");
    assert_true(table->init == NX_INIT_NORMAL && table->init_std == cases[i].std);
    program_end(&c);
  }
}

/* ---- norms and residuals ---- */

/* Norms of two layers and of the end, and some parameters. */
static void norms_stand_where_the_block_has_them(void **state) {
  (void)state;
  static const struct {
    const char *block;
    int n_norms;
    const char *has, *has_not;
  } cases[] = {
      {"pre_ln", 5, "post_attention_layernorm", "post_feedforward_layernorm"},
      {"post_ln", 5, "input_layernorm", "post_feedforward_layernorm"},
      {"residual_post_ln", 5, "input_layernorm", "attention_output_layernorm"},
      {"norm_after", 5, "post_feedforward_layernorm", "input_layernorm"},
      {"sandwich", 9, "attention_output_layernorm", "self_attn.q_norm"},
      {"gpt_j", 5, "post_attention_layernorm", "post_feedforward_layernorm"},
      {"gpt_j_tied", 3, "input_layernorm", "post_attention_layernorm"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    snprintf(text, sizeof text, "model.block=%s", cases[i].block);
    program_case c = program_good(text);
    assert_int_equal(count_operators(&c.out.plan, NX_OP_rms_norm), cases[i].n_norms);
    snprintf(text, sizeof text, "model.layers.1.%s.weight", cases[i].has);
    assert_non_null(piece_named(&c.out.plan, text));
    snprintf(text, sizeof text, "model.layers.1.%s.weight", cases[i].has_not);
    assert_null(piece_named(&c.out.plan, text));
    program_end(&c);
  }
}

static void zero_centred_gains_begin_at_zero(void **state) {
  (void)state;
  program_case c = program_good("model.normalization=rmsnorm1p");
  assert_int_equal(piece_named(&c.out.plan, "model.norm.weight")->init, NX_INIT_ZEROS);
  assert_int_equal(attribute(&c.out.plan, NX_OP_rms_norm, 4, NX_rms_norm_zero_centred)->integer, 1);
  assert_int_equal(attribute(&c.out.plan, NX_OP_rms_norm_grad, 4, NX_rms_norm_grad_zero_centred)->integer, 1);
  program_end(&c);
}

/* What layers add to is fp32, what products read is not. */
static void a_residual_stream_of_its_own_type(void **state) {
  (void)state;
  program_case c = program_good("precision.param=bf16 precision.compute=bf16 precision.fp32_residual=true "
                                "mesh.world=4 mesh.pipeline=2 mesh.tensor=2");
  const nx_plan *plan = &c.out.plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    const uint32_t *args = plan->arguments + op->first_argument;
    if (op->op == NX_OP_add) assert_int_equal(plan->values[args[op->n_in]].dtype, NX_f32);
    if (op->op == NX_OP_matmul) assert_int_equal(plan->values[args[0]].dtype, NX_bf16);
  }
  program_end(&c);
}

/* ---- attention ---- */

static void layers_alternate_between_windows_and_the_whole(void **state) {
  (void)state;
  program_case c = program_good("model.layers=4 model.sliding_window=5 model.full_attention_every=2 "
                                "model.attention_soft_cap=50 model.attention_scale=0.25");
  for (int layer = 0; layer < 4; layer++) {
    assert_int_equal(attribute(&c.out.plan, NX_OP_attention, layer, NX_attention_window)->integer,
                     layer % 2 ? 0 : 5);
    assert_true(attribute(&c.out.plan, NX_OP_attention, layer, NX_attention_soft_cap)->real == 50);
    assert_true(attribute(&c.out.plan, NX_OP_attention, layer, NX_attention_scale)->real == 0.25);
  }
  program_end(&c);
}

static void some_layers_do_not_rotate(void **state) {
  (void)state;
  program_case c = program_good(
      "model.layers=6 model.sliding_window=5 model.full_attention_every=3 model.no_rope_every=2");
  for (int layer = 0; layer < 6; layer++) {
    assert_int_equal(attribute(&c.out.plan, NX_OP_split_qkv, layer, NX_split_qkv_rotary_dims)->integer,
                     layer % 2 ? 0 : 8);
    assert_int_equal(attribute(&c.out.plan, NX_OP_attention, layer, NX_attention_window)->integer,
                     layer % 3 == 2 ? 0 : 5);
  }
  program_end(&c);
}

static uint64_t attention_flops(const char *changes) {
  program_case c = program_good(changes);
  uint64_t flops = 0;
  for (uint32_t i = 0; i < c.out.plan.n[NX_SECTION_OPERATORS]; i++)
    if (c.out.plan.operators[i].op == NX_OP_attention) flops += c.out.plan.operators[i].flops;
  program_end(&c);
  return flops;
}

/* 16 tokens: 16 x 16 / 2 scores, or (2 x 4 - 1) x 16 / 2 of them in windows of 4. */
static void a_window_costs_what_it_reads(void **state) {
  (void)state;
  assert_int_equal(attention_flops("model.sliding_window=4") * 16, attention_flops("") * 7);
}

static void heads_are_normalized_before_they_are_rotated(void **state) {
  (void)state;
  program_case c = program_good("model.qk_norm=head mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2");
  const nx_plan *plan = &c.out.plan;
  assert_int_equal(count_operators(plan, NX_OP_rms_norm), 5 + 4);
  assert_int_equal(count_operators(plan, NX_OP_rotate), 2 * 4);
  assert_int_equal(attribute(plan, NX_OP_split_heads, 0, NX_split_heads_rotary_dims)->integer, 0);
  assert_int_equal(attribute(plan, NX_OP_rotate, 0, NX_rotate_rotary_dims)->integer, 8);
  assert_int_equal(attribute(plan, NX_OP_rotate, 4, NX_rotate_backward)->integer, 1);
  assert_int_equal(piece_named(plan, "model.layers.1.self_attn.k_norm.weight")->logical_columns, 8);
  program_end(&c);
  c = program_good("model.qk_norm=projection mesh.world=2 mesh.tensor=2");
  assert_int_equal(count_operators(&c.out.plan, NX_OP_rotate), 0);
  assert_int_equal(piece_named(&c.out.plan, "model.layers.1.self_attn.q_norm.weight")->logical_columns, 32);
  assert_int_equal(piece_named(&c.out.plan, "model.layers.1.self_attn.k_norm.weight")->logical_columns, 16);
  program_end(&c);
}

/* ---- positions ---- */

static void a_longer_sequence_has_a_larger_base(void **state) {
  (void)state;
  program_case c =
      program_good("model.rope_scaling=dynamic model.rope_factor=4 model.rope_original_positions=8");
  double theta = attribute(&c.out.plan, NX_OP_split_qkv, 0, NX_split_qkv_theta)->real;
  assert_true(fabs(theta - 10000 * pow(4 * 2 - 3, 8.0 / 6)) < 1e-8);
  assert_int_equal(attribute(&c.out.plan, NX_OP_split_qkv, 0, NX_split_qkv_scaling)->integer, 0);
  program_end(&c);
}

static void yarn_scales_what_is_rotated(void **state) {
  (void)state;
  program_case c =
      program_good("model.rope_scaling=yarn model.rope_factor=4 model.rope_original_positions=8");
  double amplitude = attribute(&c.out.plan, NX_OP_split_qkv, 0, NX_split_qkv_amplitude)->real;
  assert_true(fabs(amplitude - (0.1 * log(4) + 1)) < 1e-15);
  assert_int_equal(attribute(&c.out.plan, NX_OP_split_qkv, 0, NX_split_qkv_scaling)->integer, 3);
  program_end(&c);
}

/* What is counted without a graph is what the graph has. */
static void all_parameters_are_counted(void **state) {
  (void)state;
  static const char *const cases[] = {
      "",
      "model.block=sandwich model.qk_norm=head",
      "model.block=norm_after model.qk_norm=projection",
      "model.block=gpt_j_tied model.ffn_bias=true model.normalization=layernorm",
      "model.position_embedding=sinusoidal model.normalization=layernorm1p model.activation=mish",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i]);
    int64_t n = 0;
    for (uint32_t at = 0; at < c.out.plan.n[NX_SECTION_PIECES]; at++)
      n += c.out.plan.pieces[at].rows * c.out.plan.pieces[at].columns;
    assert_int_equal(c.out.plan.run->n_parameters, n);
    program_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_activation_is_an_operator_with_its_function),
      cmocka_unit_test(feed_forward_alone_may_have_biases),
      cmocka_unit_test(weights_are_drawn_as_the_method_says),
      cmocka_unit_test(embeddings_may_have_a_deviation_of_their_own),
      cmocka_unit_test(positions_may_have_a_deviation_of_their_own),
      cmocka_unit_test(routers_may_be_drawn_by_a_rule_of_their_own),
      cmocka_unit_test(biases_of_distances_may_have_a_deviation_of_their_own),
      cmocka_unit_test(norms_stand_where_the_block_has_them),
      cmocka_unit_test(zero_centred_gains_begin_at_zero),
      cmocka_unit_test(a_residual_stream_of_its_own_type),
      cmocka_unit_test(layers_alternate_between_windows_and_the_whole),
      cmocka_unit_test(some_layers_do_not_rotate),
      cmocka_unit_test(a_window_costs_what_it_reads),
      cmocka_unit_test(heads_are_normalized_before_they_are_rotated),
      cmocka_unit_test(a_longer_sequence_has_a_larger_base),
      cmocka_unit_test(yarn_scales_what_is_rotated),
      cmocka_unit_test(all_parameters_are_counted),
  };
  return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
