/* SPDX-License-Identifier: Apache-2.0 */
/* What is compiled more than once is read and followed once. */
#include "compiler/config/compile_settings.h"
#include "compiler/config/front/shell/script.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_finding(const nxc_sink *sink, const char *id) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++)
    if (strcmp(nxc_sink_finding(sink, i)->id, id) == 0) return true;
  return false;
}

/* Two trainings; the end of a line warns, and the environment tells the layers. */
static const char *const script = "torchrun pretrain_gpt.py --num-layers $LAYERS --hidden-size 64\r\n"
                                  "torchrun pretrain_gpt.py --num-layers $LAYERS --hidden-size 128\n";

static int64_t layers_of_launch(const nxc_request *request, size_t launch, int64_t hidden) {
  nxc_arena *arena = nxc_arena_new();
  nxc_request one = *request;
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_compiled compiled;
  one.launch = launch;
  nxc_compile_settings(arena, &one, sink, &compiled);
  assert_true(has_finding(sink, "NX5927"));
  assert_int_equal(compiled.document->n_launches, 2);
  assert_int_equal(nxc_int(compiled.settings, NX_SETTING_MODEL_HIDDEN), hidden);
  int64_t layers = nxc_int(compiled.settings, NX_SETTING_MODEL_LAYERS);
  nxc_arena_free(arena);
  return layers;
}

static void programs_of_a_script_are_of_one_reading(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_request request = {.file = "two.sh",
                         .text = nxc_source_new(arena, "two.sh", script, strlen(script)),
                         .dialect = "megatron",
                         .judges_only = true};
  nxc_request kept = request;
  nxc_request_keep(arena, &kept);
  setenv("LAYERS", "4", 1);
  assert_int_equal(layers_of_launch(&kept, 2, 128), 4);
  setenv("LAYERS", "8", 1);
  assert_int_equal(layers_of_launch(&kept, 1, 64), 4);
  assert_int_equal(layers_of_launch(&kept, 2, 128), 4);
  assert_int_equal(layers_of_launch(&request, 2, 128), 8);
  kept.text = nxc_source_new(arena, "two.sh", script, strlen(script)); /* another text, as one that was edited */
  assert_int_equal(layers_of_launch(&kept, 2, 128), 8);
  nxc_arena_free(arena);
}

static void a_pipe_is_read_once(void **state) {
  (void)state;
  static const char text[] = "model: {layers: 4}\n";
  nxc_arena *arena = nxc_arena_new();
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
  close(ends[1]);
  nxc_request request = {.file = nxc_arena_printf(arena, "/dev/fd/%d", ends[0]), .dialect = "nx"};
  nxc_request_keep(arena, &request);
  for (int i = 0; i < 2; i++) {
    nxc_compiled compiled;
    nxc_compile_settings(arena, &request, nxc_sink_new(arena), &compiled);
    assert_int_equal(nxc_int(compiled.settings, NX_SETTING_MODEL_LAYERS), 4);
  }
  close(ends[0]);
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs_of_a_script_are_of_one_reading),
                                     cmocka_unit_test(a_pipe_is_read_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
