/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates: named schedules, lowered to segments, and evaluated by ref. argv[1]: schedules.json, rates
 * recorded from other code. */
#include "compiler/config/rules/assignment.h"
#include "compiler/program/records/learning_rate.h"
#include "tests/kernels/ref_run.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *schedules_path;

typedef struct schedule {
  const char *name, *rise;
  double lr, min_lr;
  int64_t warmup, constant, max;
} schedule;

static nxc_learning_rate lowered(nxc_arena *arena, const schedule *of) {
  nxc_settings *settings = nxc_settings_new(arena);
  nxc_sink *sink = nxc_sink_new(arena);
  const struct {
    const char *path, *text;
  } given[] = {{"schedule.name", of->name},
               {"schedule.rise", of->rise},
               {"optimizer.lr", nxc_arena_printf(arena, "%.17g", of->lr)},
               {"schedule.min_lr", nxc_arena_printf(arena, "%.17g", of->min_lr)},
               {"schedule.warmup_steps", nxc_arena_printf(arena, "%lld", (long long)of->warmup)},
               {"schedule.constant_steps", nxc_arena_printf(arena, "%lld", (long long)of->constant)},
               {"schedule.max_steps", nxc_arena_printf(arena, "%lld", (long long)of->max)}};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    assert_true(nxc_settings_set_text(settings, given[i].path, given[i].text, sink));
  return nxc_learning_rate_read(settings);
}

static double rate_of(int64_t step, const schedule *of) {
  nxc_arena *arena = nxc_arena_new();
  const nxc_learning_rate rate = lowered(arena, of);
  tensor args[3] = {tensor_of(NX_i64, 1, 0, 0, 0), tensor_of(NX_f64, 1, 0, 0, 0),
                    tensor_of(NX_f64, 1, 0, 0, 0)};
  tensor_set(&args[0], 0, (double)step);
  assert_true(rate.n_segments > 0 && rate.segments[0].first == 0);
  for (size_t i = 0; i < rate.n_segments; i++) {
    const nx_segment *s = &rate.segments[i];
    ref_run(NX_OP_segment, 2, 1, args,
            (nxk_attr[]){whole(s->kind), whole(s->first), whole(s->every), real(s->origin), real(s->span),
                         real(s->from), real(s->to), real(s->exponent), real(s->towards), real(s->least)});
    tensor_set(&args[1], 0, tensor_get(&args[2], 0));
  }
  double found = tensor_get(&args[2], 0);
  tensors_free(args, 3);
  nxc_arena_free(arena);
  return found;
}

static int64_t integer_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* core/optimizer_param_scheduler.py of Megatron by hand: lr k / warm-up while k <= warm-up, then down to
 * min_lr at the end of the decay, which may lie behind the end of the training. */
static void megatron_rises_from_zero(void **state) {
  (void)state;
  const schedule cosine = {"cosine", "zero", 1, 0.5, 4, 0, 20},
                 constant = {"constant", "zero", 1, 0.5, 4, 0, 20};
  for (int64_t step = 0; step <= 4; step++) {
    assert_true(rate_of(step, &cosine) == (double)step / 4);
    assert_true(rate_of(step, &constant) == (double)step / 4);
  }
  assert_true(fabs(rate_of(12, &cosine) - 0.75) < 1e-15);
  assert_true(rate_of(20, &cosine) == 0.5 && rate_of(21, &cosine) == 0.5);
  assert_true(fabs(rate_of(20, &(schedule){"cosine", "zero", 1, 0.5, 4, -16, 20}) - 0.75) < 1e-15);
  assert_true(rate_of(16, &(schedule){"cosine", "zero", 1, 0.5, 4, 6, 20}) == 0.5);
  assert_true(rate_of(25, &constant) == 1 &&
              rate_of(0, &(schedule){"constant", "zero", 1, 0.5, 0, 0, 20}) == 1);
  assert_true(rate_of(0, &(schedule){"cosine", "zero", 1, 0.5, 0, 0, 20}) == 1);
}

/* Constant steps at the end change nothing at the beginning. */
static void a_rise_is_as_asked(void **state) {
  (void)state;
  for (int64_t constant = 0; constant <= 6; constant += 3) {
    assert_true(rate_of(0, &(schedule){"cosine", "first_step", 1, 0.5, 4, constant, 20}) == 0.2);
    assert_true(rate_of(0, &(schedule){"cosine", "zero", 1, 0.5, 4, constant, 20}) == 0);
  }
}

static void check_schedule(const json_t *entry) {
  static const char *const names[][2] = {{"LinearAnnealingWithWarmUp", "linear"},
                                         {"CosineAnnealing", "cosine"},
                                         {"WarmupAnnealing", "annealing"}};
  const json_t *given = json_object_get(entry, "schedule"), *rates = json_object_get(entry, "rates"), *rate;
  const char *name = json_string_value(json_object_get(given, "name"));
  schedule of = {.rise = "first_step",
                 .lr = json_number_value(json_object_get(entry, "lr")),
                 .min_lr = json_number_value(json_object_get(given, "min_lr")),
                 .warmup = integer_of(given, "warmup_steps"),
                 .constant = integer_of(given, "constant_steps"),
                 .max = integer_of(given, "max_steps")};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i][0]) == 0) of.name = names[i][1];
  if (of.constant > 0) of.rise = "zero"; /* NeMo's, as rule NX2331 has it */
  size_t step;
  assert_non_null(of.name);
  assert_true(json_array_size(rates) > 20);
  json_array_foreach(rates, step, rate) {
    double expected = json_number_value(rate), found = rate_of((int64_t)step, &of);
    if (fabs(found - expected) > 1e-15)
      fail_msg("%s, step %zu: %.17g, recorded %.17g", name, step, found, expected);
  }
}

static void rates_agree_with_the_recorded(void **state) {
  (void)state;
  json_t *entries = json_load_file(schedules_path, 0, NULL);
  const json_t *entry;
  size_t index;
  assert_non_null(entries);
  assert_true(json_array_size(entries) >= 7);
  json_array_foreach(entries, index, entry) check_schedule(entry);
  json_decref(entries);
}

/* First NeMo's WarmupPolicy: up to lr, then lr. */
static void rates_at_the_edges(void **state) {
  (void)state;
  const schedule constant = {"constant", "first_step", 1, 0.1, 4, 0, 6};
  static const double expected[] = {0.2, 0.4, 0.6, 0.8, 1, 1, 1};
  for (int64_t step = 0; step < 7; step++)
    assert_true(fabs(rate_of(step, &constant) - expected[step]) < 1e-15);
  assert_true(rate_of(0, &(schedule){"constant", "first_step", 1, 0.1, 0, 0, 6}) == 1);
  assert_true(rate_of(0, &(schedule){"cosine", "first_step", 1, 0.1, 0, 6, 6}) == 0.1); /* no decay is left */
  assert_true(rate_of(7, &(schedule){"linear", "first_step", 1, 0.1, 6, 0, 6}) == 0.1);
  const schedule held = {"linear", "first_step", 1, 0.1, 0, 2, 6}; /* linear, constant for the last two */
  assert_true(fabs(rate_of(2, &held) - 0.55) < 1e-15);
  assert_true(rate_of(4, &held) == 0.1);
}

/* A training that ends within its warm-up, or right behind it, or has one step, or whose decay would go on:
 * the rate is a number between 0 and the peak, and rises while it warms up. */
static void schedules_hold_at_their_limits(void **state) {
  (void)state;
  static const char *const names[] = {
#define SCHEDULE(name, rise, kind, clock, target, end, exponent, meaning) #name,
#include "schema/schedules.def"
  };
  static const struct {
    int64_t warmup, constant, max;
  } lengths[] = {{0, 0, 1}, {1, 0, 1}, {4, 0, 4},   {9, 0, 4}, {3, 0, 4},
                 {0, 4, 4}, {2, 9, 4}, {0, -20, 4}, {3, 1, 4}};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
      const schedule of = {names[n], "first_step", 1, 0, lengths[l].warmup, lengths[l].constant,
                           lengths[l].max};
      for (int64_t step = 0; step < of.max + 2; step++) {
        double rate = rate_of(step, &of);
        bool warms = step + 1 < of.warmup && strcmp(of.name, "inverse_sqrt_of_steps") != 0;
        bool rises = !warms || rate < rate_of(step + 1, &of);
        if (!(rate >= 0 && rate <= 1) || !rises)
          fail_msg("%s, warm-up %lld, constant %lld, %lld steps, step %lld: %.17g", of.name,
                   (long long)of.warmup, (long long)of.constant, (long long)of.max, (long long)step, rate);
      }
    }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_agree_with_the_recorded),
      cmocka_unit_test(rates_at_the_edges),
      cmocka_unit_test(schedules_hold_at_their_limits),
      cmocka_unit_test(megatron_rises_from_zero),
      cmocka_unit_test(a_rise_is_as_asked),
  };
  schedules_path = argc > 1 ? argv[1] : "";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
