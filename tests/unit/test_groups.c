/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter groups: what settings make of them, and what the updates of their ranges read. */
#include "tests/unit/program_case.h"

#include <math.h>

static const nx_parameter_group *group_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PARAMETER_GROUPS]; i++)
    if (strcmp(nx_plan_string(plan, plan->parameter_groups[i].name), name) == 0)
      return &plan->parameter_groups[i];
  fail_msg("no group %s", name);
  return NULL;
}

/* The group of a tensor. */
static const char *group_of(const nx_plan *plan, const char *tensor) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (strcmp(nx_plan_string(plan, plan->pieces[i].name), tensor) == 0)
      return nx_plan_string(plan,
                            plan->parameter_groups[plan->ranges[plan->pieces[i].range].parameter_group].name);
  return "";
}

static double real_of(const nx_plan *plan, const nx_operator *op, uint32_t attribute) {
  return plan->attributes[op->first_attribute + attribute].real;
}

/* The last segment that writes a value. */
static const nx_operator *segment_of(const nx_plan *plan, uint32_t value) {
  const nx_operator *found = NULL;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (op->op != NX_OP_segment || plan->arguments[op->first_argument + op->n_in] != value) continue;
    if (found == NULL || real_of(plan, op, NX_segment_from) != real_of(plan, op, NX_segment_to)) found = op;
  }
  assert_non_null(found);
  return found;
}

/* Every update reads the numbers of its range's group, and is that group's rule. */
static void check_updates(const nx_plan *plan) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    const nx_optimizer_row *rule = nx_optimizer_of(op->op);
    if (rule == NULL) continue;
    const uint32_t *inputs = &plan->arguments[op->first_argument + 1 + nx_optimizer_n_states(rule)];
    bool found = false;
    for (uint32_t r = 0; r < plan->n[NX_SECTION_RANGES]; r++) {
      const nx_parameter_group *group = &plan->parameter_groups[plan->ranges[r].parameter_group];
      if (strcmp(nx_plan_string(plan, op->origin), nx_plan_string(plan, plan->ranges[r].name)) != 0) continue;
      found = true;
      assert_int_equal(group->optimizer, op->op);
      assert_int_equal(group->lr, inputs[NX_UPDATE_LR]);
      assert_int_equal(group->decay, inputs[NX_UPDATE_DECAY]);
    }
    assert_true(found);
  }
}

static void norms_and_biases_are_not_decayed(void **state) {
  (void)state;
  program_case c = program_good("optimizer.weight_decay=0.1");
  const nx_plan *plan = &c.out.plan;
  assert_true(group_named(plan, "decayed")->weight_decay == 0.1 &&
              group_named(plan, "plain")->weight_decay == 0);
  assert_string_equal(group_of(plan, "model.norm.weight"), "plain");
  assert_string_equal(group_of(plan, "model.layers.1.mlp.up_proj.weight"), "decayed");
  check_updates(plan);
  program_end(&c);
}

static void norms_of_queries_and_keys_may_be_decayed(void **state) {
  (void)state;
  program_case c = program_good("model.qk_norm=head optimizer.qk_norm_weight_decay=true");
  const nx_plan *plan = &c.out.plan;
  assert_string_equal(group_of(plan, "model.layers.1.self_attn.q_norm.weight"), "decayed");
  assert_string_equal(group_of(plan, "model.layers.1.self_attn.k_norm.weight"), "decayed");
  assert_string_equal(group_of(plan, "model.layers.1.input_layernorm.weight"), "plain");
  check_updates(plan);
  program_end(&c);
}

/* How many updates see more of a matrix than the rank has. */
static int n_gathered_updates(const char *changes) {
  program_case c = program_good(changes);
  int n = 0;
  for (uint32_t i = 0; i < c.out.plan.n[NX_SECTION_OPERATORS]; i++)
    n += c.out.plan.operators[i].op == NX_OP_muon && c.out.plan.operators[i].n_in == 10;
  program_end(&c);
  return n;
}

static void muon_may_stay_within_a_rank(void **state) {
  (void)state;
  assert_true(n_gathered_updates("optimizer.name=muon mesh.world=2 mesh.tensor=2") > 0);
  assert_int_equal(
      n_gathered_updates("optimizer.name=muon mesh.world=2 mesh.tensor=2 optimizer.blockwise=true"), 0);
}

static void muon_may_have_learned_positions(void **state) {
  (void)state;
  static const struct {
    const char *changes, *group;
  } rows[] = {
      {"optimizer.name=muon model.position_embedding=learned", "decayed"},
      {"optimizer.name=muon model.position_embedding=learned optimizer.matrix_routers=true", "decayed.muon"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    program_case c = program_good(rows[i].changes);
    assert_string_equal(group_of(&c.out.plan, "transformer.wpe.weight"), rows[i].group);
    assert_string_equal(group_of(&c.out.plan, "transformer.wte.weight"), "decayed");
    check_updates(&c.out.plan);
    program_end(&c);
  }
}

static void embeddings_have_their_own_rate(void **state) {
  (void)state;
  program_case c =
      program_good("optimizer.decoupled_lr=4e-3 optimizer.decoupled_min_lr=5e-4 schedule.name=cosine "
                   "schedule.min_lr=1e-4 schedule.warmup_steps=2 mesh.world=2 mesh.pipeline=2");
  const nx_plan *plan = &c.out.plan;
  const nx_parameter_group *group = group_named(plan, "decayed.decoupled");
  assert_string_equal(group_of(plan, "model.embed_tokens.weight"), "decayed.decoupled");
  assert_string_equal(group_of(plan, "lm_head.weight"), "decayed.decoupled");
  assert_string_equal(group_of(plan, "model.norm.weight"), "plain");
  assert_true(fabs(group->lr_factor - 4) < 1e-12 && group->lr != plan->run->lr);
  const nx_operator *own = segment_of(plan, group->lr), *usual = segment_of(plan, plan->run->lr);
  assert_true(real_of(plan, own, NX_segment_from) == 4e-3 && real_of(plan, own, NX_segment_to) == 5e-4);
  assert_true(real_of(plan, usual, NX_segment_from) == 1e-3 && real_of(plan, usual, NX_segment_to) == 1e-4);
  check_updates(plan);
  program_end(&c);
}

static void patterns_make_groups(void **state) {
  (void)state;
  program_case c = program_settings("schedule.name=constant");
  assert_true(nxc_settings_set_text(
      c.settings, "optimizer.groups",
      "['*.down_proj.weight lr_factor=0.5', '*layernorm* weight_decay=0.25 lr_factor=2']", c.sink));
  assert_true(nxc_program_compile(c.settings, c.arena, c.sink, &c.out));
  const nx_plan *plan = &c.out.plan;
  const nx_parameter_group *down = group_named(plan, group_of(plan, "model.layers.0.mlp.down_proj.weight"));
  const nx_parameter_group *norm = group_named(plan, group_of(plan, "model.layers.1.input_layernorm.weight"));
  assert_true(down->lr_factor == 0.5 && real_of(plan, segment_of(plan, down->lr), NX_segment_from) == 5e-4);
  assert_true(norm->lr_factor == 2 && norm->weight_decay == 0.25);
  assert_true(real_of(plan, segment_of(plan, norm->decay), NX_segment_from) == 0.25);
  assert_string_equal(group_of(plan, "model.norm.weight"), "plain");
  check_updates(plan);
  program_end(&c);
}

static void weight_decay_grows(void **state) {
  (void)state;
  program_case c = program_good("optimizer.start_weight_decay=0.01 optimizer.weight_decay=0.1 "
                                "optimizer.weight_decay_growth=linear schedule.max_steps=40");
  const nx_plan *plan = &c.out.plan;
  const nx_operator *decay = segment_of(plan, group_named(plan, "decayed")->decay);
  const nx_attribute *attributes = &plan->attributes[decay->first_attribute];
  assert_int_equal(attributes[NX_segment_kind].integer, NX_SEGMENT_LINEAR);
  assert_true(attributes[NX_segment_origin].real == 0 && attributes[NX_segment_span].real == 40);
  assert_true(attributes[NX_segment_from].real == 0.01 && attributes[NX_segment_to].real == 0.1);
  program_end(&c);
}

/* Of a batch that grows, in sequences; the steps that it grows in need not be whole. */
static void weight_decay_grows_in_steps_of_its_own(void **state) {
  (void)state;
#define GROWS \
  "optimizer.start_weight_decay=0.01 optimizer.weight_decay=0.1 optimizer.weight_decay_growth=cosine " \
  "optimizer.weight_decay_steps=20.5 schedule.max_steps=40"
  static const struct {
    const char *changes;
    double span;
    int64_t behind;
  } cases[] = {{GROWS, 20.5, 21},
               {GROWS " batch.global=4 batch.growth=[2@0,4@8] schedule.clock=samples", 82, 83}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_settings(cases[i].changes);
    const nxc_learning_rate decay = nxc_optimizer_read(c.settings).weight_decay;
    assert_int_equal(decay.n_segments, 2);
    assert_true(decay.segments[0].span == cases[i].span);
    assert_int_equal(decay.segments[1].first, cases[i].behind);
    assert_true(fabs(nxc_learning_rate_at(&decay, 0) - 0.01) < 1e-15);
    assert_true(fabs(nxc_learning_rate_at(&decay, cases[i].behind - 1) - 0.1) < 1e-3);
    assert_true(nxc_learning_rate_at(&decay, 10 * cases[i].behind) == 0.1);
    program_end(&c);
  }
#undef GROWS
}

static void odd_patterns_are_found(void **state) {
  (void)state;
  static const struct {
    const char *groups, *id;
    bool compiles;
  } cases[] = {{"['*.q_proj.weight']", NULL, true},
               {"['*.q_proj.weight lr_factor=x']", "NX3022", false},
               {"['*.q_proj.weight lr_factor=-1']", "NX3022", false},
               {"['*.q_proj.weight speed=1']", "NX3022", false},
               {"['']", "NX3022", false},
               {"['*.layers.0.* lr_factor=0.5']", "NX3023", true},
               {"['*.nothing lr_factor=0.5']", "NX3023", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_settings("");
    assert_true(nxc_settings_set_text(c.settings, "optimizer.groups", cases[i].groups, c.sink));
    assert_int_equal(nxc_program_compile(c.settings, c.arena, c.sink, &c.out), cases[i].compiles);
    assert_int_equal(nxc_sink_n_findings(c.sink), cases[i].id ? 1 : 0);
    if (cases[i].id) assert_string_equal(nxc_sink_finding(c.sink, 0)->id, cases[i].id);
    program_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(norms_and_biases_are_not_decayed),
      cmocka_unit_test(embeddings_have_their_own_rate),
      cmocka_unit_test(patterns_make_groups),
      cmocka_unit_test(weight_decay_grows),
      cmocka_unit_test(weight_decay_grows_in_steps_of_its_own),
      cmocka_unit_test(odd_patterns_are_found),
      cmocka_unit_test(muon_may_stay_within_a_rank),
      cmocka_unit_test(muon_may_have_learned_positions),
      cmocka_unit_test(norms_of_queries_and_keys_may_be_decayed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
