/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of bytes: a plan in which two things that live at once share some is refused. */
#include "tests/plan_edit.h"
#include "tests/unit/program_case.h"

#include "compiler/program/passes/overlap.h"

static bool overlaps(const nx_plan *plan, const nx_value *values, char text[256]) {
  nxc_arena *arena = nxc_arena_new();
  nx_fault fault = {{0}, 0};
  nx_plan changed = *plan;
  changed.values = values;
  bool good = nxc_overlap_check(&changed, arena, &fault);
  memcpy(text, fault.text, 256);
  nxc_arena_free(arena);
  return !good;
}

/* Every value of an arena, put where another one of its size lies, is found out; returns how many were moved.
 * Values that are never there at once may share a place. */
static uint32_t move_values(const nx_plan *plan, nx_arena_kind arena, bool may_be_apart) {
  uint32_t n_values = plan->n[NX_SECTION_VALUES], n_caught = 0;
  nx_value *values = calloc(n_values, sizeof *values);
  char text[256];
  memcpy(values, plan->values, n_values * sizeof *values);
  assert_false(overlaps(plan, values, text));
  for (uint32_t i = 0; i < n_values; i++) {
    for (uint32_t other = 0; other < n_values; other++) {
      if (i == other || values[i].arena != arena || values[other].arena != arena ||
          values[i].view_of != NX_NONE || values[other].view_of != NX_NONE ||
          values[i].bytes != values[other].bytes || values[i].offset == values[other].offset)
        continue;
      uint64_t offset = values[i].offset;
      values[i].offset = values[other].offset;
      bool caught = overlaps(plan, values, text);
      if (!caught && !may_be_apart)
        fail_msg("%s on top of %s", nx_plan_string(plan, values[i].name),
                 nx_plan_string(plan, values[other].name));
      values[i].offset = offset;
      n_caught += caught;
      if (!may_be_apart) break;
    }
  }
  free(values);
  return n_caught;
}

static void a_broken_placement_is_caught(void **state) {
  (void)state;
  program_case c = program_good("mesh.world=2 mesh.tensor=2 sequence_parallel=true");
  assert_in_range(move_values(&c.out.plan, NX_ARENA_slot, false), 11, 1000);
  program_end(&c);
}

/* What is gathered ahead, or still reduced, is alive until its wait. */
static void a_buffer_in_use_is_caught(void **state) {
  (void)state;
  program_case c = program_good(
      "mesh.world=2 optimizer.zero_stage=3 model.layers=4 reduce.overlap=true gather.overlap=true");
  assert_in_range(move_values(&c.out.plan, NX_ARENA_comm, true), 11, 1000);
  program_end(&c);
}

/* A piece says where in its range it stands, and the programs read it there. */
static void parameters_stand_where_their_range_says(void **state) {
  (void)state;
  program_case c = program_good("");
  uint8_t *bytes = aligned_alloc(64, c.out.n_bytes);
  nx_plan plan;
  nx_fault fault;
  assert_non_null(bytes);
  memcpy(bytes, c.out.bytes, c.out.n_bytes);
  const nx_piece *piece = plan_record(bytes, NX_SECTION_PIECES, 3);
  nx_value *weight = plan_record(bytes, NX_SECTION_VALUES, piece->value);
  weight->offset -= 64;
  plan_seal(bytes);
  assert_false(nx_plan_check(bytes, c.out.n_bytes, &plan, &fault));
  assert_non_null(strstr(fault.text, "stands elsewhere"));
  free(bytes);
  program_end(&c);
}

/* Two parameters at one place of their range. */
static void parameters_do_not_overlap(void **state) {
  (void)state;
  program_case c = program_good("");
  nx_plan plan = c.out.plan;
  nx_fault fault;
  nx_piece *pieces = calloc(plan.n[NX_SECTION_PIECES], sizeof *pieces);
  memcpy(pieces, plan.pieces, plan.n[NX_SECTION_PIECES] * sizeof *pieces);
  pieces[3].range_offset -= 16;
  plan.pieces = pieces;
  assert_false(nxc_overlap_check(&plan, c.arena, &fault));
  assert_non_null(strstr(fault.text, "share bytes"));
  free(pieces);
  program_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_broken_placement_is_caught),
      cmocka_unit_test(a_buffer_in_use_is_caught),
      cmocka_unit_test(parameters_stand_where_their_range_says),
      cmocka_unit_test(parameters_do_not_overlap),
  };
  return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
