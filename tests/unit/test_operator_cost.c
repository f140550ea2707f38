/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts of operators, against sums made by hand. */
#include "tests/unit/cost_case.h"

static void operators_add_up(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(8);
  case_plan c;
  case_begin(&c, 1, 1, 3);
  case_operator(&c, 0, NX_OP_matmul, 2000000, 100000);             /* 1 + 2 ms */
  case_operator(&c, 0, NX_OP_matmul, 2000000, 400000);             /* 1 + 4 ms: its bytes take longer */
  case_operator(&c, 0, NX_OP_add, 0, 300000);                      /* 1 + 3 ms */
  case_operator(&c, 1, NX_OP_matmul, 5000000, 0);                  /* 1 + 5 ms */
  case_operator(&c, 1, NX_OP_fill, 0, 100000)->when = NX_WHEN_FIRST; /* 1 + 1 ms, once */
  case_operator(&c, 1, NX_OP_add, 0, 200000)->when = NX_WHEN_MIDDLE; /* 1 + 2 ms, once */
  case_operator(&c, 2, NX_OP_adamw, 0, 600000);                    /* 1 + 6 ms */
  case_items(&c);
  assert_null(nxc_forecast_lacks(&c.plan, &machine, arena));
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_PRODUCTS], 3 * (3e-3 + 5e-3 + 6e-3), "products");
  assert_near(f.class_s[NXC_COST_MEMORY], 3 * 4e-3 + 2e-3 + 3e-3, "memory");
  assert_near(f.class_s[NXC_COST_OPTIMIZER], 7e-3, "optimizer");
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 0, "collectives");
  assert_near(f.step_s, 66e-3, "step");
  assert_near(f.bubble_s, 0, "bubble");
  assert_near(f.tokens_per_s, 1000 / 66e-3, "tokens per second");
  assert_near(f.utilisation, 4e6 / 66e-3 / 1e9, "utilisation");
  nxc_arena_free(arena);
}

/* [2,4,8,16]: 8 heads, 2 products each of 16000 FLOP; 500 scores a head are 4000 bytes a product. */
static void attention_is_its_products_and_scores(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(8);
  case_plan c;
  case_begin(&c, 1, 1, 1);
  case_operator(&c, 0, NX_OP_attention, 8 * 2 * 16000, 0);
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_PRODUCTS], 1e-3 + 16 * 16000 / 1e9 + 16 * 2000 / 1e8, "attention");
  nxc_arena_free(arena);
}

/* Memory at 1e8 bytes/s up to 1e5 bytes, at 1e7 from 1e6 on. */
static void operators_have_speeds_of_their_own(void **state) {
  static const nxc_rate_point slow[] = {{1, 5e7}}, fast[] = {{1, 1e9}};
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(1);
  nxc_rate rates[NX_OP_END] = {
      [NX_OP_activation] = {slow, 1}, [NX_OP_add] = {fast, 1}, [NX_OP_attention] = {fast, 1}};
  machine.operators[NX_f32] = rates;
  case_plan c;
  case_begin(&c, 1, 1, 1);
  c.values[0].arena = NX_ARENA_scratch;
  case_operator(&c, 0, NX_OP_activation, 0, 100000); /* 1 + 2 ms */
  case_operator(&c, 0, NX_OP_add, 0, 100000); /* memory is slower: 1 + 1 ms */
  case_operator(&c, 0, NX_OP_attention, 3000000, 0); /* 1 + 3 ms, and no pass over scores */
  case_operator(&c, 1, NX_OP_fill, 0, 100000); /* none is told */
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_MEMORY], 3e-3 + 2e-3 + 2e-3, "memory");
  assert_near(f.class_s[NXC_COST_PRODUCTS], 4e-3, "attention");
  nxc_arena_free(arena);
}

/* What was left by another program comes once from where all that this one moves drives it. */
static void what_is_found_was_driven_far(void **state) {
  static const nxc_rate_point memory[] = {{1e5, 1e8}, {1e6, 1e7}};
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(1);
  machine.bandwidth = (nxc_rate){memory, 2};
  for (int kept = 0; kept < 2; kept++) {
    case_plan c;
    case_begin(&c, 1, 1, 1);
    c.values[0].arena = kept ? NX_ARENA_grad : NX_ARENA_scratch;
    c.values[0].bytes = 16;
    for (int i = 0; i < 10; i++) case_operator(&c, 1, NX_OP_add, 0, 100000)->n_in = 1;
    case_operator(&c, 0, NX_OP_add, 0, 100000)->n_in = 1;
    case_items(&c);
    nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
    assert_near(f.class_s[NXC_COST_MEMORY], 11 * 2e-3 + (kept ? 9e-3 : 0), "memory");
  }
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operators_add_up),
      cmocka_unit_test(attention_is_its_products_and_scores),
      cmocka_unit_test(operators_have_speeds_of_their_own),
      cmocka_unit_test(what_is_found_was_driven_far),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
