/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts of stages that wait for each other, against sums made by hand. */
#include "tests/unit/cost_case.h"

static void case_transfer(case_plan *c, uint32_t stage, nx_item_kind kind, nx_port port,
                          uint32_t micro_batch) {
  case_item(c, stage, kind, stage, micro_batch);
  nx_item *item = &c->items[c->plan.n[NX_SECTION_ITEMS] - 1];
  item->port = (uint8_t)port, item->slot = (uint16_t)micro_batch;
}

/* A pass: what it reads is received right before it, what it makes is sent right after it. */
static void case_pass(case_plan *c, uint32_t stage, nx_item_kind kind, nx_port from, nx_port to,
                      uint32_t micro_batch) {
  if (c->chunks[stage].ports[from] != NX_NONE) {
    case_transfer(c, stage, NX_ITEM_RECV, from, micro_batch);
    case_transfer(c, stage, NX_ITEM_WAIT, from, micro_batch);
  }
  case_transfer(c, stage, kind, NX_PORT_INPUT, micro_batch);
  if (c->chunks[stage].ports[to] != NX_NONE) case_transfer(c, stage, NX_ITEM_SEND, to, micro_batch);
}

/* GPipe on two stages of one rank: forward 2 ms, backward 4 ms. */
static void case_gpipe(case_plan *c, uint32_t n_micro_batches, uint64_t port_bytes) {
  case_begin(c, 2, 1, n_micro_batches);
  c->run.n_slots = n_micro_batches;
  c->atoms[0].flags = NX_ATOM_PIPELINE;
  c->values[0].bytes = port_bytes;
  case_operator(c, 0, NX_OP_add, 0, 100000);
  case_operator(c, 1, NX_OP_add, 0, 300000);
  c->chunks[1] = c->chunks[0];
  c->chunks[1].stage = 1;
  c->chunks[0].ports[NX_PORT_OUTPUT] = c->chunks[0].ports[NX_PORT_OUTPUT_GRADIENT] = 0;
  c->chunks[1].ports[NX_PORT_INPUT] = c->chunks[1].ports[NX_PORT_INPUT_GRADIENT] = 0;
  c->plan.n[NX_SECTION_CHUNKS] = 2;
  for (uint32_t stage = 0; stage < 2; stage++) {
    nx_port sent[] = {NX_PORT_OUTPUT, NX_PORT_INPUT_GRADIENT};
    for (uint32_t m = 0; m < n_micro_batches; m++)
      case_pass(c, stage, NX_ITEM_FORWARD, NX_PORT_INPUT, NX_PORT_OUTPUT, m);
    for (uint32_t m = 0; m < n_micro_batches; m++)
      case_pass(c, stage, NX_ITEM_BACKWARD, NX_PORT_OUTPUT_GRADIENT, NX_PORT_INPUT_GRADIENT, m);
    for (uint32_t m = 0; m < n_micro_batches; m++) case_transfer(c, stage, NX_ITEM_WAIT, sent[stage], m);
    case_step(c, stage, NX_WHEN_ALWAYS);
  }
}

/* Stage 0 sends at 2, 4, 6, 8 ms; stage 1 takes 2 + 2 ms for each of them from 2 ms on, and goes back from 18
 * to 34 ms, sending every 4 ms from 22 on; stage 0 takes 2 + 4 ms for each of these from 22 on: 46 ms. */
static void pipelines_have_bubbles(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(8);
  case_plan c;
  case_gpipe(&c, 4, 10000);
  assert_null(nxc_forecast_lacks(&c.plan, &machine, arena));
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.step_s, 46e-3, "step");
  assert_near(f.class_s[NXC_COST_MEMORY], 24e-3, "work");
  assert_near(f.class_s[NXC_COST_TRANSFERS], 8e-3, "transfers");
  assert_near(f.bubble_s, 14e-3, "bubble");
  machine.inside = (nxc_link){{near_rate, 1}, 0};
  c.values[0].bytes = 0; /* nothing to move: (m + p - 1) x 6 ms */
  f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.step_s, 30e-3, "step");
  assert_near(f.bubble_s, 6e-3, "bubble");
  nxc_arena_free(arena);
}

static void stages_may_stand_on_two_hosts(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(1);
  case_plan c;
  case_gpipe(&c, 4, 10000);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_TRANSFERS], 4 * 20e-3, "transfers");
  machine.between.bandwidth.n_points = 0;
  assert_non_null(strstr(nxc_forecast_lacks(&c.plan, &machine, arena), "between"));
  nxc_arena_free(arena);
}

/* A step in phases: each operator runs in its own. */
static void phases_of_a_step_add_up(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(1);
  case_plan c;
  case_begin(&c, 1, 1, 1);
  case_operator(&c, 2, NX_OP_norm_sq, 0, 100000)->when = NX_WHEN_FIRST;
  case_operator(&c, 2, NX_OP_clip_scale, 0, 0)->when = NX_WHEN_MIDDLE;
  case_operator(&c, 2, NX_OP_adamw, 0, 300000)->when = NX_WHEN_LAST;
  case_item(&c, 0, NX_ITEM_FORWARD, 0, 0);
  case_item(&c, 0, NX_ITEM_BACKWARD, 0, 0);
  case_step(&c, 0, NX_WHEN_FIRST);
  case_step(&c, 0, NX_WHEN_MIDDLE);
  case_step(&c, 0, NX_WHEN_LAST);
  assert_near(nxc_forecast_step(&c.plan, &machine, arena).class_s[NXC_COST_OPTIMIZER], 7e-3, "step");
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pipelines_have_bubbles),
      cmocka_unit_test(stages_may_stand_on_two_hosts),
      cmocka_unit_test(phases_of_a_step_add_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
