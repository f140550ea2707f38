/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation programs of plans, beside the forward programs that they are made of, and when they run. */
#include "tests/plan_edit.h"
#include "tests/unit/program_case.h"

#define EVALUATED " data.split=[80,15,5] evaluate.batches=3"

static const char *const layouts[] = {
    "model.hidden_dropout=0.1 model.attention_dropout=0.1 model.ffn_dropout=0.1",
    "mesh.world=2 mesh.tensor=2 sequence_parallel=true recompute.granularity=full",
    "mesh.world=2 mesh.tensor=2 recompute.granularity=full recompute.distribute=true "
    "model.hidden_dropout=0.1",
    "mesh.world=4 optimizer.zero_stage=3 gather.overlap=true reduce.overlap=true",
    "mesh.world=4 optimizer.zero_stage=1 gather.overlap=true precision.param=bf16 precision.compute=bf16 "
    "precision.master_weights=true",
    "mesh.world=4 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 batch.micro=1 "
    "model.hidden_dropout=0.1",
    "mesh.world=2 mesh.pipeline=2 model.tied_embeddings=true optimizer.zero_stage=1",
    "mesh.world=4 mesh.context=4 attention.ring=true attention.ulysses=true mesh.ulysses=2",
    "mesh.world=2 mesh.expert=2 moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1 moe.z_loss_coef=0.01",
    "moe.experts=4 moe.routing=sinkhorn moe.top_k=1 moe.router_activation=sigmoid",
    "moe.experts=4 moe.top_k=2 moe.router_correction=true "
    "moe.router_activation=sigmoid model.checkpoint_names=deepseek_v3",
    "mesh.world=2 mesh.expert=2 moe.experts=4 moe.top_k=2 moe.routing=quantiles",
    "model.block=gpt_j model.position_embedding=learned model.activation=gelu",
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

static program_case evaluated(const char *layout) {
  char changes[512];
  snprintf(changes, sizeof changes, "%s" EVALUATED, layout);
  return program_good(changes);
}

/* Operators of the evaluation programs of an op; NX_OP_END: of any. */
static uint32_t count_evaluated(const nx_plan *plan, nx_op op) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < plan->n[NX_SECTION_CHUNKS]; c++) {
    const nx_program *program = &plan->programs[plan->chunks[c].evaluate];
    for (uint32_t i = 0; i < program->n_operators; i++)
      n += op == NX_OP_END || plan->operators[program->first_operator + i].op == op;
  }
  return n;
}

static uint64_t arena_bytes(const nx_plan *plan, nx_arena_kind kind) {
  const nx_arena_record *arena = nx_plan_arena(plan, kind);
  return arena ? arena->bytes : 0;
}

/* Only the weights of tokens, with which absent samples are left out, are one more input. */
static void it_needs_no_memory_of_its_own(void **state) {
  (void)state;
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    program_case with = evaluated(layouts[i]), without = program_good(layouts[i]);
    for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++)
      if (kind != NX_ARENA_input && arena_bytes(&with.out.plan, kind) != arena_bytes(&without.out.plan, kind))
        fail_msg("%s: arena %s has another size", layouts[i], nx_arena_name(kind));
    program_end(&with);
    program_end(&without);
  }
}

static void it_has_nothing_that_only_training_does(void **state) {
  (void)state;
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    program_case c = evaluated(layouts[i]);
    const nx_plan *plan = &c.out.plan;
    assert_int_equal(count_evaluated(plan, NX_OP_dropout) + count_evaluated(plan, NX_OP_slice), 0);
    for (uint32_t k = 0; k < plan->n[NX_SECTION_CHUNKS]; k++) {
      const nx_program *program = &plan->programs[plan->chunks[k].evaluate];
      for (uint32_t o = 0; o < program->n_operators; o++) {
        const nx_operator *op = &plan->operators[program->first_operator + o];
        const nx_attribute *attributes = plan->attributes + op->first_attribute;
        if (op->op == NX_OP_attention) assert_true(attributes[NX_attention_dropout].real == 0);
        if (op->op == NX_OP_moe_route) assert_int_equal(attributes[NX_moe_route_sinkhorn].integer, 0);
        if (op->op == NX_OP_ce_loss) assert_int_equal(op->n_in, 2);
      }
    }
    program_end(&c);
  }
}

static int64_t capacity_in(const nx_plan *plan, uint32_t program) {
  for (uint32_t i = 0; i < plan->programs[program].n_operators; i++) {
    const nx_operator *op = &plan->operators[plan->programs[program].first_operator + i];
    if (op->op == NX_OP_moe_route)
      return plan->attributes[op->first_attribute + NX_moe_route_capacity].integer;
  }
  return -1;
}

/* 2 x 16 tokens over 4 experts are 8 for each. */
static void experts_have_a_capacity_of_their_own(void **state) {
  (void)state;
  program_case c =
      evaluated("moe.experts=4 moe.top_k=1 moe.capacity_factor=1 moe.evaluation_capacity_factor=2");
  const nx_plan *plan = &c.out.plan;
  assert_int_equal(capacity_in(plan, plan->chunks[0].forward), 8);
  assert_int_equal(capacity_in(plan, plan->chunks[0].evaluate), 16);
  program_end(&c);
  c = evaluated("moe.experts=4 moe.top_k=1 moe.capacity_factor=1");
  assert_int_equal(capacity_in(&c.out.plan, c.out.plan.chunks[0].evaluate), 8);
  program_end(&c);
}

/* What is left of the forward program is the same operators on the same values, in the same order. */
static void it_is_a_part_of_the_forward_program(void **state) {
  (void)state;
  program_case c = evaluated("model.hidden_dropout=0.1");
  const nx_plan *plan = &c.out.plan;
  const nx_program *forward = &plan->programs[plan->chunks[0].forward];
  const nx_program *evaluate = &plan->programs[plan->chunks[0].evaluate];
  uint32_t at = 0;
  for (uint32_t i = 0; i < evaluate->n_operators; i++) {
    const nx_operator *op = &plan->operators[evaluate->first_operator + i];
    uint32_t result = plan->arguments[op->first_argument + op->n_in];
    const nx_operator *from = NULL;
    for (; at < forward->n_operators && from == NULL; at++) {
      const nx_operator *other = &plan->operators[forward->first_operator + at];
      if (other->op == op->op && plan->arguments[other->first_argument + other->n_in] == result) from = other;
    }
    if (from == NULL) fail_msg("operator %u is none of the forward program, or out of order", i);
  }
  assert_true(evaluate->n_operators < forward->n_operators);
  program_end(&c);
}

static void its_loss_is_summed_as_that_of_a_step(void **state) {
  (void)state;
  program_case c = evaluated("mesh.world=4 mesh.pipeline=2 batch.micro=1");
  const nx_plan *plan = &c.out.plan;
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (!(op->when & NX_WHEN_EVALUATED)) continue;
    n += op->op == NX_OP_all_reduce;
    assert_true(op->op == NX_OP_all_reduce || op->op == NX_OP_wait);
    assert_true(op->when & NX_WHEN_MIDDLE);
  }
  assert_int_equal(n, 2);
  program_end(&c);
}

/* ---- when ---- */

static const nx_evaluation *evaluation_of(const program_case *c, const char *name) {
  const nx_plan *plan = &c->out.plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++)
    if (strcmp(nx_plan_text(plan, plan->evaluations[i].name), name) == 0) return &plan->evaluations[i];
  return NULL;
}

static void sets_are_evaluated_as_asked(void **state) {
  (void)state;
  program_case c = program_good("data.split=[80,15,5] evaluate.batches=3 evaluate.every_steps=2 "
                                "evaluate.test_batches=4 evaluate.at_end=true evaluate.continues=true");
  const nx_evaluation *validation = evaluation_of(&c, "validation"), *test = evaluation_of(&c, "test");
  assert_non_null(validation);
  assert_non_null(test);
  assert_int_equal(validation->batches, 3);
  assert_int_equal(validation->every, 2);
  assert_int_equal(validation->flags, NX_EVALUATION_AT_END | NX_EVALUATION_CONTINUES);
  assert_int_equal(test->batches, 4);
  assert_int_equal(test->every, 0);
  assert_int_equal(test->flags, NX_EVALUATION_AT_END);
  program_end(&c);
}

static void what_nothing_asks_for_is_not_there(void **state) {
  (void)state;
  static const char *const cases[] = {
      "mesh.world=2 mesh.pipeline=2 evaluate.batches=3",
      "mesh.world=2 mesh.pipeline=2 data.split=[80,20] evaluate.every_steps=3",
      "mesh.world=2 mesh.pipeline=2 data.split=[100,0] evaluate.batches=3"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i]);
    assert_int_equal(c.out.plan.n[NX_SECTION_EVALUATIONS], 0);
    assert_int_equal(c.out.plan.n[NX_SECTION_SCHEDULES], 1);
    assert_int_equal(c.out.plan.chunks[0].evaluate, NX_NONE);
    program_end(&c);
  }
}

/* Texts are continued by it. Nothing weighs its loss, so it has no input of its own. */
static void one_stage_has_the_program_without_a_set(void **state) {
  (void)state;
  program_case c = program_good("");
  assert_int_equal(c.out.plan.n[NX_SECTION_EVALUATIONS], 0);
  assert_non_null(nx_plan_schedule(&c.out.plan, NX_SCHEDULE_EVALUATE));
  assert_int_not_equal(c.out.plan.chunks[0].evaluate, NX_NONE);
  assert_int_equal(c.out.plan.run->weights, NX_NONE);
  program_end(&c);
}

static void what_cannot_be_evaluated_is_told(void **state) {
  (void)state;
  static const char *const cases[] = {
      "evaluate.only=true", "data.split=[80,20] evaluate.batches=1 evaluate.sets=[other]",
      "data.split=[80,20] evaluate.batches=1 checkpoint.best=2 checkpoint.best_metric=other"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_compile(cases[i]);
    if (c.ok) fail_msg("%s was accepted", cases[i]);
    assert_string_equal(nxc_sink_finding(c.sink, 0)->id, "NX3024");
    program_end(&c);
  }
}

/* Evaluations change nothing that a run is told from another by but the programs; when they come, nothing. */
static void when_they_come_is_no_part_of_the_meaning(void **state) {
  (void)state;
  program_case one = program_good("data.split=[80,20] evaluate.batches=3 evaluate.every_steps=2");
  program_case other =
      program_good("data.split=[80,20] evaluate.batches=7 evaluate.every_steps=5 evaluate.at_end=true");
  assert_memory_equal(one.out.plan.header->plan_id, other.out.plan.header->plan_id, 32);
  program_end(&one);
  program_end(&other);
}

/* ---- what a checker must see ---- */

static void break_batches(nx_evaluation *e) { e->batches = 0; }
static void break_dataset(nx_evaluation *e) { e->dataset = 7; }
static void break_flags(nx_evaluation *e) { e->flags = NX_EVALUATION_FLAGS + 1; }
static void break_share(nx_evaluation *e) { e->share = 0.5; }
static void break_sanity(nx_evaluation *e) { e->sanity_batches = -2; }

static void a_malformed_evaluation_is_refused(void **state) {
  (void)state;
  void (*const breaks[])(nx_evaluation *) = {break_batches, break_dataset, break_flags, break_share,
                                             break_sanity};
  for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
    program_case c = evaluated("");
    uint8_t *bytes = (uint8_t *)(uintptr_t)c.out.bytes;
    nx_plan plan;
    nx_fault fault = {0};
    breaks[i](plan_record(bytes, NX_SECTION_EVALUATIONS, 0));
    plan_seal(bytes);
    assert_false(nx_plan_check(bytes, c.out.n_bytes, &plan, &fault));
    assert_non_null(strstr(fault.text, "evaluation 0 is malformed"));
    program_end(&c);
  }
}

static void a_malformed_schedule_is_refused(void **state) {
  (void)state;
  static const uint32_t changes[][3] = {{1, 1, 0}, {0, 0, 1}, {1, 0, 1}}; /* record, kind, items */
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    program_case c = evaluated("");
    uint8_t *bytes = (uint8_t *)(uintptr_t)c.out.bytes;
    nx_plan plan;
    nx_fault fault = {0};
    nx_schedule *schedule = plan_record(bytes, NX_SECTION_SCHEDULES, changes[i][0]);
    schedule->kind += changes[i][1];
    schedule->n_items -= changes[i][2];
    plan_seal(bytes);
    assert_false(nx_plan_check(bytes, c.out.n_bytes, &plan, &fault));
    assert_non_null(strstr(fault.text, "is malformed"));
    program_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_needs_no_memory_of_its_own),
      cmocka_unit_test(it_has_nothing_that_only_training_does),
      cmocka_unit_test(experts_have_a_capacity_of_their_own),
      cmocka_unit_test(it_is_a_part_of_the_forward_program),
      cmocka_unit_test(its_loss_is_summed_as_that_of_a_step),
      cmocka_unit_test(sets_are_evaluated_as_asked),
      cmocka_unit_test(what_nothing_asks_for_is_not_there),
      cmocka_unit_test(one_stage_has_the_program_without_a_set),
      cmocka_unit_test(what_cannot_be_evaluated_is_told),
      cmocka_unit_test(when_they_come_is_no_part_of_the_meaning),
      cmocka_unit_test(a_malformed_evaluation_is_refused),
      cmocka_unit_test(a_malformed_schedule_is_refused),
  };
  return cmocka_run_group_tests_name("evaluation", tests, NULL, NULL);
}
