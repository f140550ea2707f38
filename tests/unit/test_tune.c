/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts that tune goes over, the best of them, and how a file says one. */
#include "compiler/machine/machine.h"
#include "compiler/tune/difference.h"
#include "compiler/tune/search.h"
#include "tests/unit/compile_text.h"

static const char nx[] =
    "mesh: {world: 8, tensor: 2}\n"
    "batch: {micro: 1, global: 32} # a comment\n"
    "model: {layers: 8, hidden: 1024, ffn_hidden: 4096, heads: 8, sequence: 2048, vocab: 8192}\n"
    "optimizer: {lr: 1e-3}\n"
    "schedule: {max_steps: 10}\n"
    "data: {path: [text]}\n";

static const char device[] =
    "name: device\nranks_per_host: 8\nmemory: 80GiB\n"
    "device: {peak: 1.0e+15, efficiency: 0.6, attention: [0.5, 0.4], tile: [128, 256],\n"
    "  units: 132, depth: 300, memory_bandwidth: 3.0e+12, launch: 4e-6, domain: 8,\n"
    "  allocator: 1.1, reserved: 2GiB}\n"
    "inside: {bandwidth: 3.0e+11, start: 8.4e-6, latency: 3.4e-6}\n"
    "between: {bandwidth: 4.0e+10, start: 8.4e-6, latency: 1.4e-5}\n";

typedef struct tuning {
  trial t;
  nxc_training training;
  bool varies[NXC_N_KNOBS];
  nxc_tune_request request;
} tuning;

static const nxc_machine *read_machine(nxc_arena *arena) {
  char path[] = "/tmp/nx-machine-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, device, strlen(device)), (ssize_t)strlen(device));
  close(file);
  const nxc_machine *machine = nxc_machine_read(arena, path, nxc_sink_new(arena));
  unlink(path);
  assert_non_null(machine);
  return machine;
}

static void begin(tuning *u, const char *text, const char *vary) {
  const char *wrong;
  trial_begin(&u->t, text);
  trial_run(&u->t);
  assert_true(u->t.ok);
  assert_true(nxc_training_read(u->t.out.settings, u->t.sink, &u->training));
  assert_true(nxc_knobs_parse(u->t.arena, vary, u->varies, &wrong));
  u->request = (nxc_tune_request){.request = &u->t.request,
                                  .compiled = &u->t.out,
                                  .training = &u->training,
                                  .system = nxc_system_open(u->t.arena, u->t.out.dialect->name),
                                  .machine = read_machine(u->t.arena),
                                  .varies = u->varies,
                                  .top = 5};
}

/* ---- the space ---- */

static void every_layout_comes_once(void **state) {
  (void)state;
  tuning u;
  begin(&u, nx, "mesh,batch,zero,recompute");
  nxc_space space = nxc_space_make(u.t.arena, &u.training, u.t.out.settings, u.varies);
  size_t n = 0, most = (size_t)nxc_space_size(&space);
  nxc_choice *all = nxc_arena_array(u.t.arena, most + 1, sizeof *all), choice = {{0}};
  do {
    for (size_t i = 0; i < n; i++) assert_memory_not_equal(&all[i], &choice, sizeof choice);
    assert_true(n < most);
    all[n++] = choice;
  } while (nxc_space_next(&space, &choice));
  assert_int_equal(n, most);
  for (int knob = 0; knob < NXC_N_KNOBS; knob++) assert_int_equal(choice.at[knob], 0); /* and begins anew */
  trial_end(&u.t);
}

/* Against degrees counted straight from their definition. */
static void layouts_divide_as_counted(void **state) {
  (void)state;
  tuning u;
  begin(&u, nx, "tensor,pipeline,batch,zero");
  nxc_space space = nxc_space_make(u.t.arena, &u.training, u.t.out.settings, u.varies);
  size_t n = 0, counted = 0;
  nxc_choice choice = {{0}};
  do n += nxc_choice_divides(&space, &choice);
  while (nxc_space_next(&space, &choice));
  for (int tensor = 1; tensor <= 8; tensor *= 2)
    for (int stages = 1; tensor * stages <= 8; stages *= 2)
      for (int chunks = 1; chunks <= (stages > 1 ? 8 / stages : 1); chunks++)
        for (int micro = 1; micro <= 32; micro *= 2) {
          int data = 8 / tensor / stages;
          bool good = 8 / stages % chunks == 0 && 32 % (micro * data) == 0;
          int stages_of_zero = data > 1 ? 4 : 1; /* one replica has nothing to divide */
          counted += good * (tensor > 1 ? 2 : 1) * stages_of_zero; /* sequences divided, or not */
        }
  assert_int_equal(n, counted);
  trial_end(&u.t);
}

static void what_is_not_varied_stays(void **state) {
  (void)state;
  tuning u;
  begin(&u, nx, "zero");
  nxc_space space = nxc_space_make(u.t.arena, &u.training, u.t.out.settings, u.varies);
  nxc_choice choice = {{0}};
  size_t n = 0;
  do {
    nxc_training t;
    nxc_choice_read(&space, &choice, &t);
    assert_int_equal(t.layout.tensor, 2);
    assert_int_equal(t.batch.global, 32);
    n++;
  } while (nxc_space_next(&space, &choice));
  assert_int_equal(n, 4);
  trial_end(&u.t);
}

static void a_word_names_a_knob_or_several(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  bool varies[NXC_N_KNOBS];
  const char *wrong;
  assert_true(nxc_knobs_parse(arena, "mesh", varies, &wrong));
  assert_true(varies[NXC_KNOB_TENSOR] && varies[NXC_KNOB_EXPERT] && !varies[NXC_KNOB_MICRO]);
  assert_true(nxc_knobs_parse(arena, "pipeline,batch", varies, &wrong));
  assert_true(varies[NXC_KNOB_STAGES] && varies[NXC_KNOB_MICRO] && !varies[NXC_KNOB_TENSOR]);
  assert_false(nxc_knobs_parse(arena, "mesh,speed,zero", varies, &wrong));
  assert_string_equal(wrong, "speed");
  nxc_arena_free(arena);
}

/* ---- the search ---- */

/* Every layout of the space estimated and sorted, without bounds, is what the search finds with them. */
static void brute_force_finds_the_same(void **state) {
  (void)state;
  tuning u;
  nxc_tune_result all, few;
  begin(&u, nx, "mesh,batch,zero,recompute");
  u.request.kept = 1 << 16;
  nxc_tune(u.t.arena, &u.request, &all);
  u.request.kept = 5;
  nxc_tune(u.t.arena, &u.request, &few);
  assert_int_equal(all.n_estimated, all.n_fit);
  assert_true(few.n_estimated < all.n_estimated); /* the bound spares some */
  assert_int_equal(few.n_fit, all.n_fit);
  assert_int_equal(all.n_best, 5);
  assert_int_equal(few.n_best, 5);
  for (size_t i = 0; i < 5; i++)
    assert_memory_equal(&few.best[i].choice, &all.best[i].choice, sizeof(nxc_choice));
  for (size_t i = 1; i < 5; i++) /* within half a percent what needs less memory comes first */
    assert_true(all.best[i].tokens_per_s <= 1.005 * all.best[i - 1].tokens_per_s);
  trial_end(&u.t);
}

static void what_does_not_fit_is_not_there(void **state) {
  (void)state;
  tuning u;
  nxc_tune_result result;
  begin(&u, nx, "mesh,batch,zero,recompute");
  nxc_tune(u.t.arena, &u.request, &result);
  double least = result.least_bytes;
  u.request.memory_bytes = least;
  nxc_tune(u.t.arena, &u.request, &result);
  assert_true(result.n_best > 0);
  for (size_t i = 0; i < result.n_best; i++) assert_true(result.best[i].memory_bytes <= least);
  u.request.memory_bytes = least - 1;
  nxc_tune(u.t.arena, &u.request, &result);
  assert_int_equal(result.n_best, 0);
  assert_int_equal(result.n_fit, 0);
  trial_end(&u.t);
}

static void estimates_of_records_are_those_of_texts(void **state) {
  (void)state;
  tuning u;
  nxc_tune_result result;
  begin(&u, nx, "mesh,batch,zero,recompute");
  nxc_tune(u.t.arena, &u.request, &result);
  for (size_t i = 0; i < result.n_best; i++) {
    nxc_training t;
    nxc_choice_read(&result.space, &result.best[i].choice, &t);
    nxc_sizes sizes = nxc_sizes_read(&t, u.t.out.settings);
    nxc_own_time time = nxc_own_time_of(u.request.system, &sizes, &t, u.request.machine, u.t.arena);
    assert_true(time.tokens_per_s == result.best[i].tokens_per_s);
    assert_true(nxc_own_time_least(&sizes, &t.layout, u.request.machine) <= time.step_s);
  }
  trial_end(&u.t);
}

/* Hosts of eight: sixteen tensor-parallel ranks leave them, against which a rule warns. */
static const char hosts[] =
    "mesh: {world: 32, nodes: 4, tensor: 2}\n"
    "batch: {micro: 1, global: 64}\n"
    "model: {layers: 8, hidden: 8192, ffn_hidden: 32768, heads: 64, sequence: 8192, vocab: 131072}\n"
    "optimizer: {lr: 1e-3}\n"
    "schedule: {max_steps: 10}\n"
    "data: {path: [text]}\n";

static void what_is_refused_alike_is_judged_twice(void **state) {
  (void)state;
  tuning u;
  nxc_tune_result result;
  begin(&u, hosts, "tensor,recompute,micro,pipeline");
  u.request.memory_bytes = 22 * 0x1p30;
  nxc_tune(u.t.arena, &u.request, &result);
  assert_int_equal(result.n_best, 0);
  assert_int_equal(result.n_judged, 2);
  assert_true(result.n_fit > 2);
  assert_int_equal(result.n_refused, result.n_fit);
  assert_int_equal(result.n_reasons, 1);
  assert_string_equal(result.reasons[0].id, "NX2950");
  assert_non_null(result.reasons[0].remedy);
  trial_end(&u.t);
}

/* Each layout that is spared would be refused. */
static void nothing_is_spared_that_is_accepted(void **state) {
  (void)state;
  tuning u;
  begin(&u, hosts, "tensor,recompute,pipeline");
  nxc_space space = nxc_space_make(u.t.arena, &u.training, u.t.out.settings, u.varies);
  nxc_speaker *speaker = nxc_speaker_new(u.t.arena, &u.t.request, &u.t.out, u.t.sink);
  nxc_reasons *reasons = nxc_reasons_new(u.t.arena, &space, &u.t.out);
  nxc_arena *scratch = nxc_arena_new();
  size_t n_spared = 0, n_accepted = 0;
  nxc_choice choice = {{0}};
  do {
    if (!nxc_choice_divides(&space, &choice)) continue;
    nxc_arena_mark mark = nxc_arena_mark_now(scratch);
    bool spared = nxc_reasons_refuse(reasons, &choice);
    nxc_said said = nxc_say(speaker, &space, &choice, scratch);
    if (spared) assert_non_null(said.refused.message);
    else if (said.refused.message != NULL) nxc_reasons_add(reasons, &choice, &said.refused);
    n_spared += spared;
    n_accepted += said.refused.message == NULL;
    nxc_arena_rewind(scratch, mark);
  } while (nxc_space_next(&space, &choice));
  assert_true(n_spared > 5 && n_accepted > 20);
  nxc_arena_free(scratch);
  trial_end(&u.t);
}

static void behind_a_list_that_is_refused_the_slower_are_judged(void **state) {
  (void)state;
  tuning u;
  nxc_tune_result few, all;
  begin(&u, hosts, "tensor,recompute,micro,pipeline");
  nxc_device joined = *u.request.machine->device; /* by pairs of hosts, and what leaves a pair is slow */
  nxc_machine machine = *u.request.machine;
  const nxc_rate_point slow = {1, 1e8};
  joined.domain = 16;
  machine.device = &joined;
  machine.between.bandwidth = (nxc_rate){&slow, 1};
  u.request.machine = &machine;
  u.request.memory_bytes = 27 * 0x1p30;
  nxc_tune(u.t.arena, &u.request, &all);
  u.request.kept = 1;
  nxc_tune(u.t.arena, &u.request, &few);
  assert_true(all.n_best > 0 && few.n_best > 0);
  assert_memory_equal(&few.best[0].choice, &all.best[0].choice, sizeof(nxc_choice));
  assert_true(few.n_judged > few.n_best && few.n_refused >= 2);
  assert_true(few.n_refused <= few.n_fit);
  trial_end(&u.t);
}

/* ---- texts ---- */

static void a_difference_has_the_lines_around(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  assert_string_equal(nxc_difference(arena, "f", "a\nb\n", "a\nb\n"), "");
  assert_string_equal(nxc_difference(arena, "f", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n"),
                      "--- f\n+++ f\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+x\n 6\n");
  assert_string_equal(nxc_difference(arena, "f", "a\n", "new\na\n"),
                      "--- f\n+++ f\n@@ -1,1 +1,2 @@\n+new\n a\n");
  assert_string_equal(nxc_difference(arena, "f", "a\nold\n", "a\n"),
                      "--- f\n+++ f\n@@ -1,2 +1,1 @@\n a\n-old\n");
  nxc_arena_free(arena);
}

static void a_layout_is_an_edit_of_the_text(void **state) {
  (void)state;
  tuning u;
  begin(&u, nx, "tensor,zero");
  nxc_space space = nxc_space_make(u.t.arena, &u.training, u.t.out.settings, u.varies);
  nxc_speaker *speaker = nxc_speaker_new(u.t.arena, &u.t.request, &u.t.out, 0);
  nxc_choice choice = {{0}};
  nxc_said said = nxc_say(speaker, &space, &choice, u.t.arena);
  assert_null(said.refused.message);
  assert_string_equal(said.text, nx); /* the file as it is */
  while (nxc_choice_value(&space, &choice, NXC_KNOB_ZERO).first != 3) choice.at[NXC_KNOB_ZERO]++;
  said = nxc_say(speaker, &space, &choice, u.t.arena);
  assert_null(said.refused.message);
  assert_int_equal(said.training.sharding.stage, 3);
  assert_non_null(strstr(said.text, "zero_stage: 3"));
  assert_non_null(strstr(said.text, "# a comment"));
  trial_end(&u.t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout_comes_once),
      cmocka_unit_test(layouts_divide_as_counted),
      cmocka_unit_test(what_is_not_varied_stays),
      cmocka_unit_test(a_word_names_a_knob_or_several),
      cmocka_unit_test(brute_force_finds_the_same),
      cmocka_unit_test(what_does_not_fit_is_not_there),
      cmocka_unit_test(estimates_of_records_are_those_of_texts),
      cmocka_unit_test(what_is_refused_alike_is_judged_twice),
      cmocka_unit_test(nothing_is_spared_that_is_accepted),
      cmocka_unit_test(behind_a_list_that_is_refused_the_slower_are_judged),
      cmocka_unit_test(a_difference_has_the_lines_around),
      cmocka_unit_test(a_layout_is_an_edit_of_the_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
