/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts of exchanges, against sums made by hand. */
#include "compiler/program/emit/emit_forecast.h"
#include "compiler/program/forecast/routes.h"
#include "tests/unit/cost_case.h"

#include <unistd.h>

/* ---- collectives ---- */

/* No link is asked for nothing: the operator alone is left. */
static void nothing_costs_no_exchange(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 4, 1, 1);
  case_collective(&c, 0, NX_OP_all_gather, 1, 0);
  case_operator(&c, 0, NX_OP_wait, 0, 0);
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 1e-3, "collectives");
  nxc_arena_free(arena);
}

/* 4 ranks, 2 on a host: group 0 is {0,1}, group 1 is {0,2}. */
static void links_are_those_of_the_group(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 4, 1, 1);
  case_collective(&c, 0, NX_OP_all_gather, 0, 10000); /* 1 + 1 + 1 ms */
  case_operator(&c, 0, NX_OP_wait, 0, 0);
  case_collective(&c, 2, NX_OP_all_reduce, 1, 10000); /* 1 + 10 + 10 ms: doubled */
  case_operator(&c, 2, NX_OP_wait, 0, 0);
  case_items(&c);
  assert_null(nxc_forecast_lacks(&c.plan, &machine, arena));
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 3e-3 + 21e-3, "collectives");
  assert_int_equal(f.ranks_per_host, 2);
  assert_int_equal(f.groups[0].n_hosts, 1);
  assert_int_equal(f.groups[0].n_steps, 1);
  assert_int_equal(f.groups[1].n_hosts, 2);
  assert_int_equal(f.groups[1].n_steps, 1);
  assert_int_equal(f.groups[1].bytes, 10000);
  assert_near(f.groups[1].seconds, 20e-3, "the far group");
  machine = machine_of(4);
  f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.groups[1].seconds, 3e-3, "the far group on one host");
  c.run.n_hosts = 2; /* the plan's tiling counts where it is finer */
  f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.groups[1].seconds, 20e-3, "the far group on the plan's hosts");
  nxc_arena_free(arena);
}

/* 8 ranks on 4 hosts: group 1 is {0,2,4,6}. On 2 hosts, {0,2} and {4,6}: a third of the bytes is near. */
static void groups_may_be_near_and_far(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(4);
  case_plan c;
  case_begin(&c, 8, 2, 1);
  case_collective(&c, 2, NX_OP_reduce_scatter, 1, 30000);
  case_operator(&c, 2, NX_OP_wait, 0, 0);
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_int_equal(f.groups[1].n_steps, 2); /* both far members at once */
  assert_near(f.groups[1].seconds, 1e-3 + 1e-3 + 10e-3 + 20e-3, "seconds");
  nxc_arena_free(arena);
}

/* 4 ranks, 2 on a host: what a machine says decides which way a gather over all goes, and how an all_reduce.
 */
static void routes_are_those_of_the_machine(void **state) {
  static const struct {
    nx_op op;
    double near_latency_s, far_latency_s;
    uint64_t bytes;
    nx_way way, next;
    double seconds;
  } cases[] = {
      /* 10 kB parts: far ones twice, 10 + 20 + 1 + 1 ms; once to the host, 10 + 10 + 2 + 2 ms */
      {NX_OP_all_gather, 1e-3, 1e-2, 30000, NX_WAY_HOSTS, NX_WAY_DIRECT, 24e-3},
      {NX_OP_all_gather, 1e-2, 1e-3, 30, NX_WAY_DOUBLING, NX_WAY_RING, 2e-3 + 2e-5 + 1e-6},
      {NX_OP_all_gather, 1e-2, 1e-5, 30000, NX_WAY_RING, NX_WAY_DOUBLING, 3e-5 + 15e-3},
      {NX_OP_all_reduce, 1e-3, 1e-2, 12, NX_WAY_DOUBLING, NX_WAY_DIRECT, 20e-3 + 16e-6 + 0.8e-6},
      {NX_OP_all_reduce, 1e-3, 1e-2, 60000, NX_WAY_HOSTS, NX_WAY_DIRECT, 32e-3 + 24e-3},
      {NX_OP_reduce_scatter, 1e-3, 1e-2, 30000, NX_WAY_DIRECT, NX_WAY_DIRECT, 0},
  };
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    nxc_machine machine = machine_of(2);
    uint32_t n = 0;
    case_plan c;
    case_begin(&c, 4, 2, 1);
    c.atoms[1].size = 1, c.atoms[0].size = 4, c.groups[0].size = 4;
    case_collective(&c, 0, cases[i].op, 0, cases[i].bytes);
    machine.inside.latency_s = cases[i].near_latency_s, machine.between.latency_s = cases[i].far_latency_s;
    const nx_route *routes = nxc_routes_choose(&c.plan, &machine, arena, &n);
    assert_int_equal(n, cases[i].op != NX_OP_reduce_scatter);
    if (n == 0) continue;
    assert_int_equal(routes->way, cases[i].way);
    assert_int_equal(routes->next, cases[i].next);
    assert_true(fabs((double)routes->seconds - cases[i].seconds) < 1e-6 * cases[i].seconds);
  }
  nxc_arena_free(arena);
}

static void no_route_within_a_host(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  uint32_t n = 1;
  case_plan c;
  case_begin(&c, 4, 2, 1);
  case_collective(&c, 0, NX_OP_all_gather, 0, 30000);
  nxc_routes_choose(&c.plan, &machine, arena, &n);
  assert_int_equal(n, 0);
  nxc_arena_free(arena);
}

static void machines_may_overlap(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 2, 1, 1);
  case_collective(&c, 0, NX_OP_all_gather, 0, 30000); /* 1 + 1 + 3 ms */
  case_operator(&c, 0, NX_OP_add, 0, 100000);         /* 1 + 1 ms */
  case_operator(&c, 0, NX_OP_wait, 0, 0);
  case_items(&c);
  assert_near(nxc_forecast_step(&c.plan, &machine, arena).step_s, 7e-3, "one after the other");
  machine.overlap = NXC_OVERLAPS;
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.step_s, 5e-3, "overlapped");
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 3e-3, "what is waited for");
  c.operators[1].moved_bytes = 900000;
  f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.step_s, 10e-3, "hidden");
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 0, "hidden collectives");
  machine.overlap = NXC_WAITS;
  assert_near(nxc_forecast_step(&c.plan, &machine, arena).step_s, 15e-3, "told to wait");
  nxc_arena_free(arena);
}

/* 4 ranks, 2 on a host: {0,2} is moved by a thread, {0,1} by the rank. */
static void what_is_between_hosts_goes_on(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  const nxc_machine machine = machine_of(2);
  const nxc_device device = {.peak = 1};
  nxc_machine accelerated = machine;
  accelerated.device = &device;
  for (uint32_t group = 0; group < 2; group++) {
    case_plan c;
    case_begin(&c, 4, 2, 1);
    case_collective(&c, 0, NX_OP_all_gather, group, 10000); /* 1 + 1 + 1 ms near, 1 + 10 + 10 ms far */
    case_operator(&c, 0, NX_OP_add, 0, 900000);             /* 1 + 9 ms */
    case_operator(&c, 0, NX_OP_wait, 0, 0);
    case_items(&c);
    assert_near(nxc_forecast_step(&c.plan, &machine, arena).step_s, group ? 21e-3 : 13e-3, "hosts");
    assert_near(nxc_forecast_step(&c.plan, &accelerated, arena).step_s, group ? 31e-3 : 13e-3, "devices");
  }
  nxc_arena_free(arena);
}

/* A quarter of the core moves messages for 11 ms: a kernel of 30 ms takes 2.75 ms more, one of 2 ms a third
 * more, and what moves within a host takes nothing of it. */
static void a_core_that_moves_computes_slower(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  machine.between.taken = 0.25;
  for (uint32_t group = 0; group < 2; group++) {
    case_plan c;
    case_begin(&c, 4, 2, 1);
    machine.overlap = NXC_OVERLAPS;
    case_collective(&c, 0, NX_OP_all_gather, group, 10000); /* 1 + 1 + 1 ms near, 1 + 10 + 10 ms far */
    case_operator(&c, 0, NX_OP_add, 0, 2900000);            /* 1 + 29 ms */
    case_operator(&c, 0, NX_OP_wait, 0, 0);
    case_items(&c);
    assert_near(nxc_forecast_step(&c.plan, &machine, arena).step_s, group ? 32.75e-3 : 30e-3,
                "beside moving");
    c.operators[1].moved_bytes = 100000;
    nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
    assert_near(f.class_s[NXC_COST_MEMORY], group ? 2e-3 / 0.75 : 2e-3, "a short kernel");
    machine.overlap = NXC_WAITS;
    f = nxc_forecast_step(&c.plan, &machine, arena);
    assert_near(f.class_s[NXC_COST_MEMORY], 2e-3, "after moving");
  }
  nxc_arena_free(arena);
}

/* A wait is for one collective; those started after it go on. */
static void a_gather_ahead_is_not_waited_for(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 2, 1, 1);
  machine.overlap = NXC_OVERLAPS;
  case_collective(&c, 0, NX_OP_all_gather, 0, 10000); /* 1 + 1 + 1 ms */
  case_collective(&c, 0, NX_OP_all_gather, 0, 30000); /* 1 + 1 + 3 ms, from 2 ms on, when the link is free */
  c.operators[1].first_argument = 2;
  case_operator(&c, 0, NX_OP_wait, 0, 0);             /* until 3 ms */
  case_operator(&c, 0, NX_OP_add, 0, 100000);         /* 1 + 1 ms */
  case_operator(&c, 0, NX_OP_wait, 0, 0)->first_argument = 4;
  case_operator(&c, 0, NX_OP_add, 0, 100000);         /* 1 + 1 ms */
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 3e-3 + 2e-3, "what is waited for");
  assert_near(f.step_s, 9e-3, "step");
  nxc_arena_free(arena);
}

/* A reduction that the backward pass leaves under way is waited for in the step. */
static void a_reduction_may_outlive_its_pass(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 2, 1, 1);
  machine.overlap = NXC_OVERLAPS;
  case_collective(&c, 1, NX_OP_reduce_scatter, 0, 30000); /* 1 + 1 + 3 ms */
  case_operator(&c, 1, NX_OP_add, 0, 100000);             /* 1 + 1 ms */
  case_operator(&c, 2, NX_OP_wait, 0, 0);
  case_operator(&c, 2, NX_OP_adamw, 0, 100000);           /* 1 + 1 ms */
  case_items(&c);
  nxc_forecast f = nxc_forecast_step(&c.plan, &machine, arena);
  assert_near(f.class_s[NXC_COST_COLLECTIVES], 3e-3, "what is waited for");
  assert_near(f.step_s, 7e-3, "step");
  nxc_arena_free(arena);
}

static void what_is_not_told_is_named(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_machine machine = machine_of(2);
  case_plan c;
  case_begin(&c, 4, 1, 1);
  case_collective(&c, 0, NX_OP_all_gather, 1, 10000);
  case_operator(&c, 0, NX_OP_wait, 0, 0);
  case_operator(&c, 1, NX_OP_matmul, 10, 10);
  case_items(&c);
  machine.inside.bandwidth.n_points = 0; /* no group needs it */
  assert_null(nxc_forecast_lacks(&c.plan, &machine, arena));
  machine.between.bandwidth.n_points = 0;
  assert_non_null(strstr(nxc_forecast_lacks(&c.plan, &machine, arena), "between"));
  machine.ranks_per_host = 4;
  assert_non_null(strstr(nxc_forecast_lacks(&c.plan, &machine, arena), "inside"));
  machine.products[NX_f32].n_points = 0;
  assert_non_null(strstr(nxc_forecast_lacks(&c.plan, &machine, arena), "products.f32"));
  nxc_arena_free(arena);
}

/* ---- rates and bytes ---- */

static void rates_are_interpolated(void **state) {
  (void)state;
  const nxc_rate_point points[] = {{1e2, 1e3}, {1e4, 1e5}, {1e5, 1e4}};
  const nxc_rate rate = {points, 3};
  assert_near(nxc_rate_at(&rate, 1), 1e3, "below");
  assert_near(nxc_rate_at(&rate, 1e2), 1e3, "the first");
  assert_near(nxc_rate_at(&rate, 1e3), 1e4, "between");
  assert_near(nxc_rate_at(&rate, 1e4), 1e5, "the second");
  assert_near(nxc_rate_at(&rate, 1e9), 1e4, "above");
  assert_near(nxc_rate_peak(&rate), 1e5, "the peak");
}

static void bytes_have_units(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes; /* 0: wrong */
  } rows[] = {{"80GiB", 80ull << 30}, {"512MB", 512000000}, {"1000000", 1000000}, {"1.5 KiB", 1536},
              {"2TB", 2000000000000}, {"7B", 7},            {"", 0},              {"GiB", 0},
              {"-1GB", 0},            {"80Gb", 0},          {"1e30", 0},          {"0", 0},
              {"0x10", 0},            {"nan", 0},           {"8GB ", 0},          {".5GB", 500000000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t bytes = 0;
    assert_int_equal(nxc_bytes_parse(rows[i].text, &bytes), rows[i].bytes != 0);
    assert_int_equal(bytes, rows[i].bytes);
  }
  nxc_arena *arena = nxc_arena_new();
  assert_string_equal(nxc_bytes_show(arena, 999), "999 bytes");
  assert_string_equal(nxc_bytes_show(arena, 1536), "1.50 KiB");
  assert_string_equal(nxc_bytes_show(arena, 80ull << 30), "80.00 GiB");
  nxc_arena_free(arena);
}

static void deadlines_follow_steps(void **state) {
  (void)state;
  assert_true(nxc_deadline_of(0.01) == NXC_DEADLINE_LEAST_S);
  assert_true(nxc_deadline_of(10.01) == 201);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_costs_no_exchange),
      cmocka_unit_test(links_are_those_of_the_group),
      cmocka_unit_test(groups_may_be_near_and_far),
      cmocka_unit_test(routes_are_those_of_the_machine),
      cmocka_unit_test(no_route_within_a_host),
      cmocka_unit_test(machines_may_overlap),
      cmocka_unit_test(what_is_between_hosts_goes_on),
      cmocka_unit_test(a_core_that_moves_computes_slower),
      cmocka_unit_test(a_gather_ahead_is_not_waited_for),
      cmocka_unit_test(a_reduction_may_outlive_its_pass),
      cmocka_unit_test(what_is_not_told_is_named),
      cmocka_unit_test(rates_are_interpolated),
      cmocka_unit_test(bytes_have_units),
      cmocka_unit_test(deadlines_follow_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
