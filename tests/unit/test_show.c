/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of plans: texts without control characters, and pictures of schedules. */
#include "tests/unit/schedule_case.h"

#include "compiler/show/plan_dump.h"

/* A terminal obeys control characters, and a line break makes one text look like two. */
static void strings_are_shown_without_control_characters(void **state) {
  (void)state;
  static nxc_plan_dump *const dumps[] = {nxc_dump_summary, nxc_dump_settings, nxc_dump_ops, nxc_dump_memory,
                                         nxc_dump_tensors};
  schedule s = begin(pipeline2);
  char *strings = malloc(s.plan.n[NX_SECTION_STRINGS]), *texts = malloc(s.plan.n[NX_SECTION_PROVENANCE_TEXT]);
  for (uint32_t i = 0; i < s.plan.n[NX_SECTION_STRINGS]; i++) strings[i] = s.plan.strings[i] ? '\033' : '\0';
  for (uint32_t i = 0; i < s.plan.n[NX_SECTION_PROVENANCE_TEXT]; i++)
    texts[i] = s.plan.provenance_text[i] ? '\r' : '\0';
  s.plan.strings = strings, s.plan.provenance_text = texts;
  for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    dumps[i](&s.plan, out);
    fclose(out);
    for (size_t at = 0; at < n_bytes; at++)
      if (text[at] == '\033' || text[at] == '\r') fail_msg("dump %zu prints a control character", i);
    free(text);
  }
  free(strings), free(texts);
  end(&s);
}

typedef struct drawing {
  char *text;
  size_t n_bytes;
} drawing;

static void draw(const nx_plan *plan, bool svg, drawing *to) {
  FILE *out = open_memstream(&to->text, &to->n_bytes);
  assert_non_null(out);
  if (svg)
    assert_true(nxc_draw_svg(plan, out));
  else
    nxc_dump_schedule(plan, out);
  fclose(out);
}

static void a_schedule_is_drawn(void **state) {
  (void)state;
  schedule s = begin("mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=2 pipeline.schedule=gpipe");
  drawing lines = {0}, boxes = {0};
  draw(&s.plan, false, &lines);
  draw(&s.plan, true, &boxes);
  uint32_t n_boxes = 0;
  static const char *const parts[] = {"chunk 1    stage 1, layers 1 to 1, 2 slots\n", "\nstage 0    F0",
                                      "\nstage 1    ...", "\nbubble "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(lines.text, parts[i])) fail_msg("%s lacks %s", lines.text, parts[i]);
  double share = strtod(strstr(lines.text, "\nbubble ") + 8, NULL);
  /* (stages - 1) / (micro-batches + stages - 1), if all passes were equal */
  assert_true(share > 100.0 / 4 && share < 100.0 / 2);
  for (const char *at = boxes.text; (at = strstr(at, "stroke=\"#ffffff\"")) != NULL; at++) n_boxes++;
  static const char *const words[] = {">F forward pass<", ">B backward pass<", ">the stage waits<",
                                      ">stage 1<", ">time, in "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_non_null(strstr(boxes.text, words[i]));
  assert_int_equal(n_boxes, 8); /* 2 micro-batches forward and back on 2 stages */
  free(lines.text);
  free(boxes.text);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings_are_shown_without_control_characters),
      cmocka_unit_test(a_schedule_is_drawn),
  };
  return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
