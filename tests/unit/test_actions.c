/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a stage goes forward and back: as PyTorch's schedules do (recorded by
 * tests/parity/record_pipelines.py), and which stage has which chunk. */
#include "compiler/program/pipeline/actions.h"
#include "tests/unit/program_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A recorded line's fields in front of its passes. */
typedef struct line {
  char order[24];
  unsigned ranks, chunks, micro_batches, rank;
  int length; /* of these fields */
} line;

static nxc_layout layout_of(const line *l) {
  char text[200];
  snprintf(text, sizeof text, "mesh.world=%u mesh.pipeline=%u mesh.virtual_pipeline=%u pipeline.schedule=%s",
           l->ranks, l->ranks, l->chunks, l->order);
  program_case c = program_settings(text);
  nxc_layout layout = nxc_layout_read(c.settings);
  program_end(&c);
  return layout;
}

static char *show(const nxc_actions *actions) {
  char *text = calloc(actions->n + 1, 16), *at = text;
  assert_non_null(text);
  for (size_t i = 0; i < actions->n; i++) {
    const nxc_action *a = &actions->list[i];
    at += sprintf(at, "%s%c%u.%u", i ? " " : "", "FBIW"[a->kind], a->chunk, a->micro_batch);
  }
  return text;
}

static void passes_are_in_the_order_of_torch(void **state) {
  (void)state;
  char path[512], *text = NULL;
  size_t room = 0, n_lines = 0;
  snprintf(path, sizeof path, "%s/tests/parity/recorded/pipelines.txt", getenv("NX_SOURCE_ROOT"));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  for (; getline(&text, &room, file) > 0; n_lines++) {
    line l;
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(sscanf(text, "%23s %u %u %u %u %n", l.order, &l.ranks, &l.chunks, &l.micro_batches,
                            &l.rank, &l.length), 5);
    nxc_layout layout = layout_of(&l);
    nxc_arena *arena = nxc_arena_new();
    nxc_actions actions = nxc_actions_of(arena, &layout, l.micro_batches, l.rank);
    char *own = show(&actions);
    if (strcmp(own, text + l.length) != 0) fail_msg("wanted %s\nhere   %.*s%s", text, l.length, text, own);
    free(own);
    nxc_arena_free(arena);
  }
  assert_true(n_lines > 500);
  free(text);
  fclose(file);
}

static void every_chunk_has_a_stage(void **state) {
  (void)state;
  static const struct {
    const char *order;
    unsigned chunks, stages[6];
  } rows[] = {{"1f1b", 2, {0, 1, 2, 0, 1, 2}},
              {"zero_bubble", 2, {0, 1, 2, 0, 1, 2}},
              {"zbv", 2, {0, 1, 2, 2, 1, 0}},
              {"dualpipev", 2, {0, 1, 2, 2, 1, 0}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    line l = {.ranks = 3, .chunks = rows[i].chunks};
    snprintf(l.order, sizeof l.order, "%s", rows[i].order);
    nxc_layout layout = layout_of(&l);
    assert_int_equal(layout.n_chunks, 6);
    for (uint32_t c = 0; c < 6; c++) assert_int_equal(nxc_layout_stage_of(&layout, c), rows[i].stages[c]);
  }
}

/* A step may have fewer micro-batches than fill the pipeline, as while the batch grows. */
static void every_pass_is_there_once(void **state) {
  (void)state;
  static const char *const names[] = {"1f1b", "gpipe", "zero_bubble", "zbv", "dualpipev"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (unsigned ranks = 2; ranks < 7; ranks++)
      for (unsigned n = 1; n < 15; n++) {
        line l = {.ranks = ranks, .chunks = 2};
        snprintf(l.order, sizeof l.order, "%s", names[i]);
        nxc_layout layout = layout_of(&l);
        nxc_arena *arena = nxc_arena_new();
        for (unsigned rank = 0; rank < ranks; rank++) {
          unsigned there[4] = {0};
          nxc_actions actions = nxc_actions_of(arena, &layout, n, rank);
          for (size_t a = 0; a < actions.n; a++) there[actions.list[a].kind]++;
          assert_int_equal(there[NXC_ACTION_FORWARD], 2 * n);
          assert_int_equal(there[NXC_ACTION_BACKWARD] + there[NXC_ACTION_INPUTS], 2 * n);
          assert_int_equal(there[NXC_ACTION_INPUTS], there[NXC_ACTION_WEIGHTS]);
        }
        nxc_arena_free(arena);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(passes_are_in_the_order_of_torch),
      cmocka_unit_test(every_chunk_has_a_stage),
      cmocka_unit_test(every_pass_is_there_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
