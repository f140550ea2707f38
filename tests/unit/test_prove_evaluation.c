/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of evaluations that were broken on purpose. */
#include "tests/unit/schedule_case.h"

static void an_evaluation_that_lacks_a_receive(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_RECV, NX_PORT_INPUT, 1, 2));
  expect(&s, "nothing was started", "wait for the input of chunk 1, micro-batch 2");
}

static void an_evaluation_in_a_slot_that_is_still_sent(void **state) {
  (void)state;
  schedule s = begin_evaluation(
      "mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=8 pipeline.receive_ahead=false");
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 0));
  expect(&s, "its slot still holds another micro-batch", "evaluation of chunk 0, micro-batch 2");
}

static void an_evaluation_without_the_sum_of_its_losses(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  drop(&s, find(&s, NX_ITEM_STEP, 0, 0));
  expect(&s, "does not end with the sum of the losses", "chunk 0");
}

static void an_evaluation_of_which_one_stage_sums(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  drop(&s, find(&s, NX_ITEM_STEP, 1, 0));
  expect(&s, "can not end", "step of chunk 0");
}

static void an_evaluation_that_sums_too_early(void **state) {
  (void)state;
  schedule s = begin_evaluation("batch.micro=1 batch.global=4");
  move(&s, find(&s, NX_ITEM_STEP, 0, 0), find(&s, NX_ITEM_EVALUATE, 0, 3));
  expect(&s, "passes or transfers of a chunk are missing before it", "step of chunk 0");
}

static void an_evaluation_that_goes_back(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  s.items[find(&s, NX_ITEM_EVALUATE, 0, 1)].kind = NX_ITEM_BACKWARD;
  expect(&s, "it is of another schedule", "backward of chunk 0, micro-batch 1");
}

static void an_evaluation_that_updates(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  s.items[find(&s, NX_ITEM_STEP, 0, 0)].when = NX_WHEN_ALWAYS;
  expect(&s, "it is of another schedule", "step of chunk 0");
}

/* An operator that writes where gradients are. */
static void an_evaluation_that_changes_gradients(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  const nx_operator *first = &s.plan.operators[s.plan.programs[s.plan.chunks[0].evaluate].first_operator];
  uint32_t n = s.plan.n[NX_SECTION_ARGUMENTS], *arguments = calloc(n, sizeof *arguments);
  assert_non_null(arguments);
  memcpy(arguments, s.plan.arguments, n * sizeof *arguments);
  arguments[first->first_argument + first->n_in] = s.plan.ranges[0].grad;
  s.plan.arguments = arguments;
  if (is_proved(&s)) fail_msg("it was accepted");
  assert_non_null(strstr(s.fault.text, "is of an evaluation and changes"));
  free(arguments);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_evaluation_that_lacks_a_receive),
      cmocka_unit_test(an_evaluation_in_a_slot_that_is_still_sent),
      cmocka_unit_test(an_evaluation_without_the_sum_of_its_losses),
      cmocka_unit_test(an_evaluation_of_which_one_stage_sums),
      cmocka_unit_test(an_evaluation_that_sums_too_early),
      cmocka_unit_test(an_evaluation_that_goes_back),
      cmocka_unit_test(an_evaluation_that_updates),
      cmocka_unit_test(an_evaluation_that_changes_gradients),
  };
  return cmocka_run_group_tests_name("prove_evaluation", tests, NULL, NULL);
}
