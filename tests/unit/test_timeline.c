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
      cmocka_unit_test(passes_are_in_order),
      cmocka_unit_test(of_many_micro_batches_the_first_are_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
