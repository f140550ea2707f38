/* SPDX-License-Identifier: Apache-2.0 */
/* What tests look up in a plan, by name. */
#ifndef TESTS_UNIT_PLAN_LOOKUPS_H
#define TESTS_UNIT_PLAN_LOOKUPS_H

#include "tests/unit/program_case.h"

static inline const nx_value *value_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++)
    if (strcmp(nx_plan_string(plan, plan->values[i].name), name) == 0) return &plan->values[i];
  fail_msg("the plan has no value %s", name);
  return NULL;
}

static inline void assert_dims(const nx_plan *plan, const char *name, int64_t a, int64_t b, int64_t c,
                               int64_t d) {
  const nx_value *value = value_named(plan, name);
  const int64_t dims[] = {a, b, c, d};
  for (int dim = 0; dim < 4; dim++)
    if (value->dims[dim] != dims[dim])
      fail_msg("%s has dimension %d of %lld, not %lld", name, dim, (long long)value->dims[dim],
               (long long)dims[dim]);
}

static inline const nx_piece *piece_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (strcmp(nx_plan_string(plan, plan->pieces[i].name), name) == 0) return &plan->pieces[i];
  return NULL;
}

/* Of the training's programs. */
static inline uint32_t count_operators(const nx_plan *plan, nx_op op) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < plan->n[NX_SECTION_PROGRAMS]; p++) {
    const nx_program *program = &plan->programs[p];
    if (program->kind == NX_PROGRAM_EVALUATE) continue;
    for (uint32_t i = 0; i < program->n_operators; i++)
      n += plan->operators[program->first_operator + i].op == op;
  }
  return n;
}

static inline uint64_t arena_bytes(const nx_plan *plan, nx_arena_kind kind) {
  uint64_t bytes[NX_N_ARENAS];
  nxc_forecast_memory(plan, bytes);
  return bytes[kind];
}

#endif
