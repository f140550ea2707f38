/* SPDX-License-Identifier: Apache-2.0 */
/* Small plans and a machine, so that a forecast is a sum made by hand. The machine has round numbers:
 * products 1e9 FLOP/s, memory 1e8 B/s, links 1e7 and 1e6 B/s, latencies 1 and 10 ms, an operator 1 ms. */
#ifndef NX_TESTS_COST_CASE_H
#define NX_TESTS_COST_CASE_H

#include "compiler/program/forecast/cost.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <string.h>

static const nxc_rate_point product_rate[] = {{1, 1e9}}, memory_rate[] = {{1, 1e8}}, near_rate[] = {{1, 1e7}},
                            far_rate[] = {{1, 1e6}};
static const nxc_source machine_source = {.name = "machine.yaml"};

static inline nxc_machine machine_of(uint32_t ranks_per_host) {
  return (nxc_machine){.name = "round",
                       .source = &machine_source,
                       .ranks_per_host = ranks_per_host,
                       .operator_s = 1e-3,
                       .products = {[NX_f32] = {product_rate, 1}},
                       .bandwidth = {memory_rate, 1},
                       .inside = {{near_rate, 1}, 1e-3},
                       .between = {{far_rate, 1}, 1e-2}};
}

/* ---- plans ---- */

enum { MAX_OPERATORS = 16, MAX_ITEMS = 96 };

/* Operators of three programs per chunk: forward, backward, step, all on value 0; that and value 1 are
 * [2,4,8,16] f32. */
typedef struct case_plan {
  nx_plan plan;
  nx_run run;
  nx_atom atoms[2];
  nx_group groups[2];
  nx_value values[2];
  uint32_t arguments[16];
  nx_operator operators[MAX_OPERATORS];
  nx_program programs[3];
  nx_chunk chunks[4];
  nx_item items[MAX_ITEMS];
  nx_schedule schedule;
} case_plan;

static inline void case_begin(case_plan *c, uint32_t n_ranks, uint32_t n_hosts, uint32_t n_micro_batches) {
  *c = (case_plan){.run = {.n_ranks = n_ranks,
                           .n_hosts = n_hosts,
                           .n_threads = 1,
                           .n_slots = 1,
                           .n_micro_batches = n_micro_batches,
                           .tokens_per_step = 1000,
                           .flops_per_step = 4e6}};
  c->atoms[0] = (nx_atom){.size = 2, .stride = 1};
  c->atoms[1] = (nx_atom){.size = n_ranks / 2 ? n_ranks / 2 : 1, .stride = 2};
  c->groups[0] = (nx_group){.atoms = 1, .size = 2};
  c->groups[1] = (nx_group){.atoms = 2, .size = c->atoms[1].size};
  c->values[0] = (nx_value){.dtype = NX_f32, .n_dims = 4, .dims = {2, 4, 8, 16}, .view_of = NX_NONE};
  c->values[1] = c->values[0];
  memcpy(c->arguments, (uint32_t[]){0, 0, 0, 1, 1}, 5 * sizeof *c->arguments); /* [2]: from 0 to 1; [4]: 1 */
  c->chunks[0] = (nx_chunk){.backward = 1, .evaluate = NX_NONE, .step = 2, .n_slots = 1};
  for (nx_port port = 0; port < NX_N_PORTS; port++) c->chunks[0].ports[port] = NX_NONE;
  for (uint32_t kind = 0; kind < 3; kind++)
    c->programs[kind] = (nx_program){.kind = kind == 2 ? NX_PROGRAM_STEP : NX_PROGRAM_FORWARD + kind};
  c->plan = (nx_plan){.strings = "",
                      .run = &c->run,
                      .atoms = c->atoms,
                      .groups = c->groups,
                      .values = c->values,
                      .arguments = c->arguments,
                      .operators = c->operators,
                      .programs = c->programs,
                      .chunks = c->chunks,
                      .items = c->items,
                      .schedules = &c->schedule};
  c->schedule = (nx_schedule){.kind = NX_SCHEDULE_TRAIN, .n_micro_batches = n_micro_batches};
  c->plan.n[NX_SECTION_SCHEDULES] = 1;
  c->plan.n[NX_SECTION_ATOMS] = c->plan.n[NX_SECTION_GROUPS] = c->plan.n[NX_SECTION_VALUES] = 2;
  c->plan.n[NX_SECTION_PROGRAMS] = 3, c->plan.n[NX_SECTION_CHUNKS] = 1;
}

/* Programs are filled in order. */
static inline nx_operator *case_operator(case_plan *c, uint32_t program, nx_op op, uint64_t flops,
                                         uint64_t bytes) {
  uint32_t at = c->plan.n[NX_SECTION_OPERATORS]++;
  assert_true(at < MAX_OPERATORS);
  if (c->programs[program].n_operators++ == 0) c->programs[program].first_operator = at;
  c->operators[at] = (nx_operator){
      .op = (uint16_t)op, .when = NX_WHEN_ALWAYS, .group = NX_NONE, .flops = flops, .moved_bytes = bytes};
  return &c->operators[at];
}

static inline void case_collective(case_plan *c, uint32_t program, nx_op op, uint32_t group, uint64_t bytes) {
  case_operator(c, program, op, 0, bytes)->group = group;
}

static inline void case_item(case_plan *c, uint32_t stage, nx_item_kind kind, uint32_t chunk,
                             uint32_t micro_batch) {
  assert_true(c->plan.n[NX_SECTION_ITEMS] < MAX_ITEMS);
  uint8_t when = kind <= NX_ITEM_EVALUATE
                     ? nx_pass_when(micro_batch, c->run.n_micro_batches, c->run.n_micro_batches)
                     : 0;
  c->items[c->schedule.n_items++] = (nx_item){
      .stage = stage, .kind = (uint8_t)kind, .when = when, .chunk = chunk, .micro_batch = micro_batch};
  c->plan.n[NX_SECTION_ITEMS] = c->schedule.n_items;
}

static inline void case_step(case_plan *c, uint32_t stage, uint8_t when) {
  case_item(c, stage, NX_ITEM_STEP, stage, 0);
  c->items[c->plan.n[NX_SECTION_ITEMS] - 1].when = when;
}

static inline void case_items(case_plan *c) {
  for (uint32_t m = 0; m < c->run.n_micro_batches; m++) {
    case_item(c, 0, NX_ITEM_FORWARD, 0, m);
    case_item(c, 0, NX_ITEM_BACKWARD, 0, m);
  }
  case_step(c, 0, NX_WHEN_ALWAYS);
}

static inline void assert_near(double found, double wanted, const char *what) {
  if (fabs(found - wanted) > 1e-9 * fabs(wanted) + 1e-15)
    fail_msg("%s is %.12g, not %.12g", what, found, wanted);
}

#endif
