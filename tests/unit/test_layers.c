/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a layer: which operators and parameters a plan has for each, and that they are counted. */
#include "schema/plan.h"
#include "tests/unit/program_case.h"

#include <math.h>

static const nx_piece *piece_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (strcmp(nx_plan_string(plan, plan->pieces[i].name), name) == 0) return &plan->pieces[i];
  return NULL;
}

static int count(const nx_plan *plan, nx_op op) {
  int n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) n += plan->operators[i].op == op;
  return n;
}

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
    assert_int_equal(count(&c.out.plan, cases[i].op), 2);
    assert_int_equal(attribute(&c.out.plan, cases[i].op, 1, NX_activation_function)->integer, cases[i].function);
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
      {"model.init_method=small_init", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.11180339887498949, 0.11180339887498949},
      {"model.init_method=small_init model.output_init_method=scaled_normal", NX_INIT_NORMAL, NX_INIT_NORMAL,
       0.11180339887498949, 0.01},
      {"model.output_init_method=residual_scaled_normal", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.02,
       0.014142135623730951},
      {"model.init_method=xavier_uniform mesh.world=2 mesh.tensor=2", NX_INIT_UNIFORM, NX_INIT_UNIFORM, 0.125,
       0.15811388300841897},
      {"model.init_method=xavier_normal model.output_init_method=normal", NX_INIT_NORMAL, NX_INIT_NORMAL, 0.125,
       0.02},
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_activation_is_an_operator_with_its_function),
      cmocka_unit_test(feed_forward_alone_may_have_biases),
      cmocka_unit_test(weights_are_drawn_as_the_method_says),
  };
  return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
