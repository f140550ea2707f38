/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a plan's records, a file for each subject. nx_plan_check walks them in the order in which
 * they may rely on each other: each takes one record of its section, and says what is wrong with it. */
#ifndef NX_PLAN_CHECK_RECORD_H
#define NX_PLAN_CHECK_RECORD_H

#include "schema/plan_check.h"

typedef struct nx_checker {
  nx_plan *plan;
  nx_fault *fault;
} nx_checker;

/* Says what is wrong and where in the file the record lies, and returns false. */
#define nx_flaw(check, record, ...) \
  nx_fault_set((check)->fault, (uint64_t)((const uint8_t *)(record) - (check)->plan->bytes), __VA_ARGS__)

static inline bool nx_is_index(const nx_plan *plan, uint32_t index, nx_section_type section) {
  return index < plan->n[section];
}

static inline bool nx_is_index_or_none(const nx_plan *plan, uint32_t index, nx_section_type section) {
  return index == NX_NONE || nx_is_index(plan, index, section);
}

static inline bool nx_is_string(const nx_plan *plan, uint32_t string) {
  return nx_is_index(plan, string, NX_SECTION_STRINGS);
}

static inline bool nx_is_provenance_text(const nx_plan *plan, uint32_t string) {
  return nx_is_index(plan, string, NX_SECTION_PROVENANCE_TEXT);
}

/* plan_check_mesh.c */
bool nx_check_atom(const nx_checker *check, uint32_t index);
bool nx_check_group(const nx_checker *check, uint32_t index);
bool nx_check_term(const nx_checker *check, uint32_t index);
bool nx_check_constant(const nx_checker *check, uint32_t index);

/* plan_check_memory.c */
bool nx_check_arena(const nx_checker *check, uint32_t index);
bool nx_check_value(const nx_checker *check, uint32_t index);
bool nx_check_fixed_value(const nx_checker *check, uint32_t index);
/* Whether a value stays within the part of its arena that a chunk has. */
bool nx_check_in_chunk(const nx_checker *check, const nx_chunk *chunk, uint32_t index, bool *inside);

/* plan_check_parameters.c */
bool nx_check_parameter_group(const nx_checker *check, uint32_t index);
bool nx_check_range(const nx_checker *check, uint32_t index);
bool nx_check_piece(const nx_checker *check, uint32_t index);

/* plan_check_program.c */
bool nx_check_operator(const nx_checker *check, uint32_t index);
bool nx_check_route(const nx_checker *check, uint32_t index);
bool nx_check_program(const nx_checker *check, uint32_t index);
bool nx_check_chunk(const nx_checker *check, uint32_t index);
bool nx_check_item(const nx_checker *check, uint32_t index);
bool nx_check_schedule(const nx_checker *check, uint32_t index);
bool nx_check_phase(const nx_checker *check, uint32_t index);

/* plan_check_run.c */
bool nx_check_evaluation(const nx_checker *check, uint32_t index);
bool nx_check_measure(const nx_checker *check, uint32_t index);
bool nx_check_skipped(const nx_checker *check, uint32_t index);
bool nx_check_extra_save(const nx_checker *check, uint32_t index);
bool nx_check_setting(const nx_checker *check, uint32_t index);
bool nx_check_provenance(const nx_checker *check, uint32_t index);
bool nx_check_run_counts(const nx_checker *check);
bool nx_check_run_values(const nx_checker *check);

#endif
