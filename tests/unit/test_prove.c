/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that end, and schedules that were broken on purpose: each must be refused, and the fault must say
 * where. */
#include "tests/unit/schedule_case.h"

/* ---- what ends ---- */

static void every_generated_schedule_is_proved(void **state) {
  (void)state;
  static const char *const cases[] = {
      pipeline2, interleaved2,
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=2",
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=16",
      "mesh.world=8 mesh.pipeline=8 model.layers=9 batch.micro=1 batch.global=11",
      "mesh.world=4 mesh.pipeline=4 model.layers=12 mesh.virtual_pipeline=3 batch.micro=1 batch.global=7",
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=3",
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=9 "
      "pipeline.schedule=gpipe",
      "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=20 pipeline.schedule=gpipe",
      "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=4 model.tied_embeddings=true",
      "mesh.world=8 mesh.pipeline=8 model.layers=24 mesh.virtual_pipeline=3 batch.micro=1 batch.global=22",
      ahead5,
      tied4,
      zbv2,
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=3 "
      "pipeline.schedule=zbv",
      "mesh.world=8 mesh.pipeline=4 model.layers=9 mesh.virtual_pipeline=2 batch.micro=1 batch.global=18 "
      "pipeline.schedule=zbv model.tied_embeddings=true optimizer.zero_stage=2",
      "mesh.world=5 mesh.pipeline=5 model.layers=10 mesh.virtual_pipeline=2 batch.micro=1 batch.global=13 "
      "pipeline.schedule=dualpipev",
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=5 "
      "pipeline.schedule=dualpipev pipeline.receive_ahead=true",
      "mesh.world=4 mesh.pipeline=4 model.layers=12 mesh.virtual_pipeline=3 batch.micro=1 batch.global=10 "
      "pipeline.schedule=zero_bubble",
      "mesh.world=10 mesh.pipeline=10 model.layers=20 mesh.virtual_pipeline=2 batch.micro=1 batch.global=19 "
      "pipeline.schedule=zero_bubble",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    schedule s = begin(cases[i]);
    if (!is_proved(&s)) fail_msg("%s: %s", cases[i], s.fault.text);
    end(&s);
    s = begin_evaluation(cases[i]);
    if (!is_proved(&s)) fail_msg("%s, evaluated: %s", cases[i], s.fault.text);
    end(&s);
  }
}

/* Passes a simulator that buffers, and hangs from 16 kB on. */
static void blocking_sends_stop_1f1b_and_not_gpipe(void **state) {
  (void)state;
  static const char *const sizes[] = {
      "mesh.world=2 mesh.pipeline=2 model.layers=2 batch.micro=1 batch.global=4",
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=8",
      "mesh.world=8 mesh.pipeline=8 model.layers=8 batch.micro=1 batch.global=16"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char gpipe[256];
    snprintf(gpipe, sizeof gpipe, "%s pipeline.schedule=gpipe", sizes[i]);
    schedule s = begin(sizes[i]);
    make_blocking(&s);
    expect(&s, "can not end", "wait for the output of chunk 0");
    s = begin(gpipe);
    make_blocking(&s);
    if (!is_proved(&s)) fail_msg("%s: %s", gpipe, s.fault.text);
    end(&s);
  }
}

/* ---- what does not ---- */

static void a_lost_send(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 3));
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 3));
  expect(&s, "can not end", "wait for the input of chunk 1, micro-batch 3");
}

static void a_lost_receive(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_RECV, NX_PORT_INPUT, 1, 2));
  expect(&s, "nothing was started", "wait for the input of chunk 1, micro-batch 2");
}

static void a_lost_wait(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_INPUT, 1, 1));
  expect(&s, "has not been received", "forward of chunk 1, micro-batch 1");
}

static void a_lost_wait_for_a_gradient(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT_GRADIENT, 0, 0));
  expect(&s, "has not been received", "backward of chunk 0, micro-batch 0");
}

/* Megatron-LM #5100: what is exchanged is ordered differently at the two ends. */
static void ends_that_move_different_micro_batches(void **state) {
  (void)state;
  schedule s = begin("mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=4 pipeline.schedule=gpipe");
  uint32_t one = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  uint32_t other = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 1);
  nx_item early = s.items[one];
  drop(&s, one);
  insert(&s, other, early); /* behind the other, which moved up by one */
  expect(&s, "moves another micro-batch", "chunk");
}

static void micro_batches_out_of_order(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find(&s, NX_ITEM_FORWARD, 0, 0), find(&s, NX_ITEM_FORWARD, 0, 1));
  expect(&s, "out of order", "forward of chunk 0, micro-batch 1");
}

static void backward_before_forward(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find(&s, NX_ITEM_FORWARD, 1, 0), find(&s, NX_ITEM_BACKWARD, 1, 0));
  expect(&s, "has not gone forward", "backward of chunk 1, micro-batch 0");
}

/* What is cut off a backward pass runs once, behind the rest. */
static uint32_t find_later(const schedule *s, uint32_t chunk, uint32_t micro_batch) {
  uint32_t i = 0;
  while (i < s->n && (s->items[i].kind != NX_ITEM_BACKWARD || s->items[i].chunk != chunk ||
                      s->items[i].micro_batch != micro_batch || nx_when_now(s->items[i].when) != 0))
    i++;
  assert_true(i < s->n);
  return i;
}

static void weights_before_inputs(void **state) {
  (void)state;
  schedule s = begin(zbv2);
  swap(&s, find_later(&s, 0, 0), find(&s, NX_ITEM_BACKWARD, 0, 0));
  expect(&s, "has not gone back", "backward, later part, of chunk 0, micro-batch 0");
}

static void lost_weights(void **state) {
  (void)state;
  schedule s = begin(zbv2);
  drop(&s, find_later(&s, 3, 3));
  expect(&s, "missing before it", "step of chunk 3");
}

static void weights_of_what_is_not_cut(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  uint32_t at = find(&s, NX_ITEM_BACKWARD, 0, 0);
  nx_item later = s.items[at];
  later.when = nx_when_later(later.when);
  insert(&s, at + 1, later);
  expect(&s, "nothing is cut off", "chunk 0");
}

static void a_lost_copy_between_neighbours(void **state) {
  (void)state;
  schedule s = begin(zbv2);
  drop(&s, find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 1, 1));
  expect(&s, "can not end", "chunk 2, micro-batch 1");
}

static void a_slot_used_twice(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  for (uint32_t i = 0; i < s.n; i++) s.items[i].slot = 0;
  expect(&s, "slot", "forward of chunk 0, micro-batch 1");
}

static void a_send_that_is_not_waited_for(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 0));
  expect(&s, "still holds", "chunk 0");
}

static void a_send_started_twice(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  uint32_t at = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  insert(&s, at, s.items[at]);
  expect(&s, "a second time", "send of the output of chunk 0, micro-batch 0");
}

static void a_send_before_its_pass(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find_port(&s, NX_ITEM_SEND, NX_PORT_INPUT_GRADIENT, 1, 0), find(&s, NX_ITEM_BACKWARD, 1, 0));
  expect(&s, "nothing to move yet", "stage 1");
}

static void a_step_too_early(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  move(&s, find(&s, NX_ITEM_STEP, 0, 0), find(&s, NX_ITEM_BACKWARD, 0, 3));
  expect(&s, "missing before it", "step of chunk 0");
}

static void a_stage_without_its_step(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find(&s, NX_ITEM_STEP, 1, 0));
  expect(&s, "can not end", "step of chunk 0");
}

static void a_missing_micro_batch(void **state) {
  (void)state;
  schedule s = begin("batch.global=8");
  drop(&s, find(&s, NX_ITEM_BACKWARD, 0, 3));
  expect(&s, "missing before it", "step of chunk 0");
}

/* Megatron-LM PR 5240: the interleaved schedule, with the turns of one stage's chunks exchanged. */
static void chunks_in_another_order_on_one_stage(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  for (uint32_t m = 0; m < 2; m++) /* the second turn's receives go before the first turn's sends */
    move(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_INPUT, 2, m), find(&s, NX_ITEM_FORWARD, 0, 0));
  expect(&s, "nothing was started", "stage 0");
}

static void waiting_for_the_other_stage_first(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  uint32_t gradient = find_port(&s, NX_ITEM_RECV, NX_PORT_OUTPUT_GRADIENT, 0, 0);
  uint32_t wait = find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT_GRADIENT, 0, 0);
  uint32_t to = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  assert_true(to < gradient && gradient < wait);
  move(&s, wait, to);
  move(&s, gradient + 1, to);
  expect(&s, "can not end", "wait for the output gradient of chunk 0, micro-batch 0");
}

static void an_update_before_the_norm(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  swap(&s, find_step(&s, 0, NX_WHEN_MIDDLE), find_step(&s, 0, NX_WHEN_LAST));
  expect(&s, "before the norm is known", "step of chunk 0");
}

static void a_norm_before_all_gradients(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  swap(&s, find_step(&s, 2, NX_WHEN_FIRST), find_step(&s, 0, NX_WHEN_MIDDLE));
  expect(&s, "not reduced yet", "stage 0");
}

/* MPI returns success where two ranks sum different counts. */
static void stages_that_sum_different_things(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  const nx_program *program = &s.plan.programs[s.plan.chunks[1].step];
  uint32_t sums[2], n = 0;
  for (uint32_t i = 0; i < program->n_operators && n < 2; i++)
    if (s.plan.operators[program->first_operator + i].op == NX_OP_all_reduce)
      sums[n++] = program->first_operator + i;
  assert_int_equal(n, 2); /* of the loss, and of the squares */
  /* The arena's bytes: nobody else reads them. */
  nx_operator *operators = (nx_operator *)(uintptr_t)s.plan.operators;
  nx_operator kept = operators[sums[0]];
  operators[sums[0]] = operators[sums[1]];
  operators[sums[1]] = kept;
  expect(&s, "another stage comes to another collective", "sums over pipeline stages");
}

/* ---- sums of some stages ---- */

static const char tied3[] = "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=4 "
                            "model.tied_embeddings=true";

/* The `index`-th sum over stages in the step of a chunk: of the tied matrix where there is one, of the loss,
 * of the squares. */
static nx_operator *sum_of(const schedule *s, uint32_t chunk, uint32_t index) {
  const nx_program *program = &s->plan.programs[s->plan.chunks[chunk].step];
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &s->plan.operators[program->first_operator + i];
    if (op->op == NX_OP_all_reduce && index-- == 0) return (nx_operator *)(uintptr_t)op;
  }
  fail_msg("the step lacks a sum");
  return NULL;
}

static void a_stage_that_stays_away(void **state) {
  (void)state;
  schedule s = begin(tied3);
  sum_of(&s, 2, 0)->group = sum_of(&s, 2, 1)->group;
  expect(&s, "can not end", "stage 0 stands");
}

static void a_stage_that_is_not_in_the_group(void **state) {
  (void)state;
  schedule s = begin(tied3);
  int64_t *stages = (int64_t *)(uintptr_t)&s.plan.table[s.plan.groups[sum_of(&s, 0, 0)->group].stages];
  assert_int_equal(stages[1], 2);
  stages[1] = 1;
  expect(&s, "can not end", "stage 0 stands");
}

static void a_stage_that_comes_uninvited(void **state) {
  (void)state;
  schedule s = begin(tied3);
  sum_of(&s, 1, 0)->group = sum_of(&s, 0, 0)->group; /* the middle one sums its loss with nobody */
  expect(&s, "can not end", "stage 0 stands");
}

static void stages_that_sum_in_another_order(void **state) {
  (void)state;
  schedule s = begin(tied3);
  nx_operator *tied = sum_of(&s, 2, 0), *loss = sum_of(&s, 2, 1), kept = *tied;
  *tied = *loss;
  *loss = kept;
  expect(&s, "can not end", "stage 2 stands");
}

static void stages_that_sum_different_parts(void **state) {
  (void)state;
  schedule s = begin(tied3);
  const nx_operator *tied = sum_of(&s, 2, 0);
  for (uint32_t i = 0; i < 2; i++)
    ((nx_value *)(uintptr_t)&s.plan.values[s.plan.arguments[tied->first_argument + i]])->dims[0] -= 16;
  expect(&s, "another stage comes to another collective", "sums over pipeline stages");
}

/* Gathers and reductions that overlap the passes: without any one of them, or of their waits, a plan is
 * refused. */
static void every_collective_and_every_wait_is_needed(void **state) {
  (void)state;
  static const char *const layouts[] = {
      "mesh.world=2 optimizer.zero_stage=3 reduce.overlap=true gather.overlap=true batch.micro=1",
      "mesh.world=4 optimizer.zero_stage=2 mesh.replicate=2 reduce.overlap=true gather.overlap=true "
      "batch.micro=1",
      "mesh.world=2 optimizer.zero_stage=1 reduce.overlap=true gather.overlap=true "
      "reduce.bucket_elements=3000",
      "mesh.world=2 reduce.overlap=true batch.micro=1",
      ("mesh.world=4 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 optimizer.zero_stage=3 "
       "optimizer.reshard_after_forward=false reduce.overlap=true batch.micro=1"),
  };
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    schedule s = begin(layouts[i]);
    uint32_t n = s.plan.n[NX_SECTION_OPERATORS], n_dropped = 0;
    nx_operator *operators = calloc(n, sizeof *operators);
    memcpy(operators, s.plan.operators, n * sizeof *operators);
    s.plan.operators = operators;
    assert_true(is_proved(&s));
    for (uint32_t op = 0; op < n; op++) {
      const nx_value *operand = &s.plan.values[s.plan.arguments[operators[op].first_argument]];
      if (!nx_op_is_collective(nx_op_find(operators[op].op)) || operand->arena == NX_ARENA_scalar) continue;
      uint8_t when = operators[op].when;
      operators[op].when = 0;
      if (is_proved(&s))
        fail_msg("%s: proved without %s of %s (operator %u)", layouts[i], nx_op_find(operators[op].op)->name,
                 nx_plan_string(&s.plan, operators[op].origin), op);
      operators[op].when = when;
      n_dropped++;
    }
    assert_true(n_dropped > 8);
    free(operators);
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_generated_schedule_is_proved),
      cmocka_unit_test(blocking_sends_stop_1f1b_and_not_gpipe),
      cmocka_unit_test(a_lost_send),
      cmocka_unit_test(a_lost_receive),
      cmocka_unit_test(a_lost_wait),
      cmocka_unit_test(a_lost_wait_for_a_gradient),
      cmocka_unit_test(ends_that_move_different_micro_batches),
      cmocka_unit_test(micro_batches_out_of_order),
      cmocka_unit_test(backward_before_forward),
      cmocka_unit_test(weights_before_inputs),
      cmocka_unit_test(lost_weights),
      cmocka_unit_test(weights_of_what_is_not_cut),
      cmocka_unit_test(a_lost_copy_between_neighbours),
      cmocka_unit_test(a_slot_used_twice),
      cmocka_unit_test(a_send_that_is_not_waited_for),
      cmocka_unit_test(a_send_started_twice),
      cmocka_unit_test(a_send_before_its_pass),
      cmocka_unit_test(a_step_too_early),
      cmocka_unit_test(a_stage_without_its_step),
      cmocka_unit_test(a_missing_micro_batch),
      cmocka_unit_test(chunks_in_another_order_on_one_stage),
      cmocka_unit_test(waiting_for_the_other_stage_first),
      cmocka_unit_test(an_update_before_the_norm),
      cmocka_unit_test(a_norm_before_all_gradients),
      cmocka_unit_test(stages_that_sum_different_things),
      cmocka_unit_test(a_stage_that_stays_away),
      cmocka_unit_test(a_stage_that_is_not_in_the_group),
      cmocka_unit_test(a_stage_that_comes_uninvited),
      cmocka_unit_test(stages_that_sum_in_another_order),
      cmocka_unit_test(stages_that_sum_different_parts),
      cmocka_unit_test(every_collective_and_every_wait_is_needed),
  };
  return cmocka_run_group_tests_name("prove", tests, NULL, NULL);
}
