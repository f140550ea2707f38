/* SPDX-License-Identifier: Apache-2.0 */
/* When passes run, against what is known of each schedule (arXiv:2104.04473): with p equal stages, m
 * micro-batches and v chunks a stage, stages wait (p - 1) / v of a micro-batch's time beside m. */
#include "compiler/estimate/timeline.h"
#include "tests/unit/program_case.h"

#include <math.h>

#define MODEL                                                                                                \
  "model.layers=8 model.hidden=64 model.heads=4 model.kv_heads=4 model.ffn_hidden=128 model.vocab=8 "        \
  "model.sequence=16 batch.micro=1 "

#define V "mesh.world=4 mesh.pipeline=4 mesh.virtual_pipeline=2 "

static nxc_timeline timeline_of(program_case *c, const char *changes) {
  nxc_training training;
  nxc_timeline line;
  *c = program_settings(changes);
  assert_true(nxc_training_read(c->settings, c->sink, &training));
  nxc_sizes sizes = nxc_sizes_read(&training, c->settings);
  assert_true(nxc_timeline_of(&training, &sizes, c->arena, &line));
  return line;
}

/* The output layer of a small vocabulary is nearly nothing. */
static void bubble_is(const char *changes, double m, double wait, uint32_t in_flight) {
  program_case c;
  nxc_timeline line = timeline_of(&c, changes);
  double wanted = wait / (m + wait);
  if (fabs(line.bubble - wanted) > 0.01)
    fail_msg("%s: the bubble is %.4f, wanted %.4f", changes, line.bubble, wanted);
  assert_int_equal(line.in_flight[0], in_flight);
  program_end(&c);
}

static void stages_wait_as_long_as_is_known(void **state) {
  (void)state;
  bubble_is(MODEL "mesh.world=1 batch.global=8", 8, 0, 1);
  bubble_is(MODEL "mesh.world=4 mesh.pipeline=4 batch.global=8", 8, 3, 4);
  bubble_is(MODEL "mesh.world=4 mesh.pipeline=4 batch.global=8 pipeline.schedule=gpipe", 8, 3, 8);
  bubble_is(MODEL "mesh.world=4 mesh.pipeline=4 batch.global=8 mesh.virtual_pipeline=2", 8, 1.5, 11);
  bubble_is(MODEL "mesh.world=4 mesh.pipeline=4 batch.global=8 pipeline.schedule=zero_bubble", 8, 1, 4);
  bubble_is(MODEL V "batch.global=8 pipeline.schedule=zero_bubble", 8, 0.5, 8);
  bubble_is(MODEL V "batch.global=8 pipeline.schedule=zbv", 8, 0.5, 8);
  bubble_is(MODEL V "batch.global=16 pipeline.schedule=zbv", 16, 0.5, 8);
  bubble_is(MODEL V "batch.global=8 pipeline.schedule=dualpipev", 8, 0.5, 9);
}

static nxc_layout layout_of(const char *changes) {
  program_case c = program_settings(changes);
  nxc_layout layout = nxc_layout_read(c.settings);
  program_end(&c);
  return layout;
}

/* A stage that is before others keeps more, but where stages are mirrored. */
static void activations_are_balanced_in_a_v(void **state) {
  (void)state;
  static const struct {
    const char *order;
    double kept[4];
  } rows[] = {{"1f1b", {5.5, 4.5, 3.5, 2.5}},
              {"gpipe", {30, 30, 30, 30}},
              {"zero_bubble", {4, 4, 4, 4}},
              {"zbv", {4, 4, 4, 4}},
              {"dualpipev", {4.5, 4.5, 4.5, 4.5}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[200];
    snprintf(text, sizeof text, V "pipeline.schedule=%s", rows[i].order);
    const nxc_layout layout = layout_of(text);
    for (uint32_t stage = 0; stage < 4; stage++)
      assert_true(nxc_play_in_flight(&layout, 30, stage) == rows[i].kept[stage]);
  }
}

/* What is said of a step of many micro-batches from shorter ones is what playing all of it says. */
static void a_long_step_waits_as_it_is_played(void **state) {
  (void)state;
  static const char *const orders[] = {"1f1b", "gpipe", "zero_bubble", "zbv", "dualpipev"};
  static const nxc_pass_lengths lengths[] = {{{1, 2, 1, 1}}, {{1, 3, 2, 1}}, {{3, 5, 4, 1}}};
  for (size_t i = 0; i < 3 * sizeof orders / sizeof *orders; i++) {
    enum { N_CHUNKS = 8, N_MICRO = 52 };
    char text[200];
    nxc_pass_lengths all[N_CHUNKS];
    nxc_played played;
    const nxc_pass_lengths *each = &lengths[i % 3];
    snprintf(text, sizeof text, V "pipeline.schedule=%s", orders[i / 3]);
    const nxc_layout layout = layout_of(text);
    for (int c = 0; c < N_CHUNKS; c++) all[c] = *each;
    nxc_arena *arena = nxc_arena_new();
    assert_true(nxc_play(arena, &layout, N_MICRO, all, &played));
    double wanted = played.length - N_MICRO * (each->of[0] + each->of[1]) * N_CHUNKS / 4;
    double wait = nxc_play_wait(&layout, N_MICRO, each);
    if (fabs(wait - wanted) > 1e-6 * played.length) fail_msg("%s: %g, wanted %g", text, wait, wanted);
    nxc_arena_free(arena);
  }
}

/* No pass begins before what it reads is there, and a stage does one at a time. */
static void passes_are_in_order(void **state) {
  (void)state;
  program_case c;
  nxc_timeline line =
      timeline_of(&c, MODEL "mesh.world=2 mesh.pipeline=2 batch.global=6 mesh.virtual_pipeline=2");
  assert_int_equal(line.n_passes, 2 * 6 * 4);
  for (size_t i = 0; i < line.n_passes; i++) {
    const nxc_timed_pass *a = &line.passes[i];
    for (size_t j = 0; j < line.n_passes; j++) {
      const nxc_timed_pass *b = &line.passes[j];
      if (i != j && a->stage == b->stage) assert_true(a->end <= b->begin + 1e-9 || b->end <= a->begin + 1e-9);
      if (a->micro_batch != b->micro_batch) continue;
      if (a->kind == NXC_ACTION_FORWARD && b->kind == NXC_ACTION_FORWARD && a->chunk + 1 == b->chunk)
        assert_true(a->end <= b->begin + 1e-9);
      if (a->kind == NXC_ACTION_BACKWARD && b->kind == NXC_ACTION_BACKWARD && a->chunk == b->chunk + 1)
        assert_true(a->end <= b->begin + 1e-9);
      if (a->kind == NXC_ACTION_FORWARD && b->kind == NXC_ACTION_BACKWARD && a->chunk == b->chunk)
        assert_true(a->end <= b->begin + 1e-9);
    }
  }
  program_end(&c);
}

static void of_many_micro_batches_the_first_are_shown(void **state) {
  (void)state;
  program_case c;
  nxc_timeline line = timeline_of(&c, MODEL "mesh.world=4 mesh.pipeline=4 batch.global=100000");
  assert_true(line.n_shown < 1000 && line.n_shown % 4 == 0);
  program_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_wait_as_long_as_is_known),
      cmocka_unit_test(activations_are_balanced_in_a_v),
      cmocka_unit_test(a_long_step_waits_as_it_is_played),
      cmocka_unit_test(passes_are_in_order),
      cmocka_unit_test(of_many_micro_batches_the_first_are_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
