/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

static bool check_texts(const nx_checker *check) {
  const nx_plan *plan = check->plan;
  const char *texts[] = {plan->strings, plan->provenance_text};
  const uint32_t bytes[] = {plan->n[NX_SECTION_STRINGS], plan->n[NX_SECTION_PROVENANCE_TEXT]};
  for (int i = 0; i < 2; i++)
    if (texts[i][0] != '\0' || texts[i][bytes[i] - 1] != '\0')
      return nx_flaw(check, texts[i], "a string table does not begin and end with NUL");
  return true;
}

static bool check_records(const nx_checker *check) {
  static const struct {
    nx_section_type section;
    bool (*check)(const nx_checker *check, uint32_t index);
  } checks[] = {
      {NX_SECTION_ATOMS, nx_check_atom},
      {NX_SECTION_GROUPS, nx_check_group},
      {NX_SECTION_TERMS, nx_check_term},
      {NX_SECTION_CONSTANTS, nx_check_constant},
      {NX_SECTION_ARENAS, nx_check_arena},
      {NX_SECTION_VALUES, nx_check_value},
      {NX_SECTION_FIXED_VALUES, nx_check_fixed_value},
      {NX_SECTION_PARAMETER_GROUPS, nx_check_parameter_group},
      {NX_SECTION_RANGES, nx_check_range},
      {NX_SECTION_PIECES, nx_check_piece},
      {NX_SECTION_OPERATORS, nx_check_operator},
      {NX_SECTION_ROUTES, nx_check_route},
      {NX_SECTION_PROGRAMS, nx_check_program},
      {NX_SECTION_CHUNKS, nx_check_chunk},
      {NX_SECTION_ITEMS, nx_check_item},
      {NX_SECTION_SETTINGS, nx_check_setting},
      {NX_SECTION_PROVENANCES, nx_check_provenance},
      {NX_SECTION_SCHEDULES, nx_check_schedule},
      {NX_SECTION_PHASES, nx_check_phase},
      {NX_SECTION_MEASURES, nx_check_measure},
      {NX_SECTION_EVALUATIONS, nx_check_evaluation},
      {NX_SECTION_EXTRA_SAVES, nx_check_extra_save},
      {NX_SECTION_SKIPPED, nx_check_skipped},
  };
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    for (uint32_t index = 0; index < check->plan->n[checks[i].section]; index++)
      if (!checks[i].check(check, index)) return false;
  return true;
}

bool nx_plan_check(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault) {
  if (!nx_plan_check_file(bytes, n_bytes, plan, fault)) return false;
  const nx_checker check = {plan, fault};
  return check_texts(&check) && nx_check_run_counts(&check) && check_records(&check) &&
         nx_check_run_values(&check) && nx_plan_check_datasets(plan, fault);
}
