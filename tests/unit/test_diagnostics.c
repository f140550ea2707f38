/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics.h"
#include "compiler/render.h"
#include "tests/unit/cmocka_all.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_source *source;
} fixture;

static const char text[] = "a: 1\n"
                           "b: 2 # nxcfg: allow NX2001 we know\n"
                           "# nxcfg: allow NX2002, NX2003 both known\n"
                           "c: 3\n"
                           "d: 4 # nxcfg: allow NX2001 not for the next line\n"
                           "e: 5\n"
                           "api_key: hunter2 # x\n"
                           "\xC3\xA9t\xC3\xA9: \x01 here\n";

static int set_up(void **state) {
  static fixture f;
  f.arena = nxc_arena_new();
  f.sink = nxc_sink_new(f.arena);
  f.source = nxc_source_new(f.arena, "case.yaml", text, sizeof text - 1);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  nxc_arena_free(((fixture *)*state)->arena);
  return 0;
}

static void report(fixture *f, const char *id, nxc_severity severity, uint32_t line, uint32_t column) {
  nxc_span at = {.source = line ? f->source : NULL, .line = line, .column = column, .length = 1};
  nxc_report(f->sink, id, severity, at, "do so", "message of %s", id);
}

static char *printed(fixture *f, nxc_format format) {
  char *bytes = NULL;
  size_t n_bytes = 0;
  FILE *out = open_memstream(&bytes, &n_bytes);
  const nxc_render render = {.format = format, .notes = true};
  nxc_sink_print(f->sink, &render, out);
  fclose(out);
  char *kept = nxc_arena_strdup(f->arena, bytes);
  free(bytes);
  return kept;
}

static void test_order(void **state) {
  fixture *f = *state;
  report(f, "NX2009", NXC_SEVERITY_ERROR, 0, 0);
  report(f, "NX2008", NXC_SEVERITY_WARNING, 6, 1);
  report(f, "NX2007", NXC_SEVERITY_WARNING, 1, 4);
  report(f, "NX2006", NXC_SEVERITY_NOTE, 1, 1);
  report(f, "NX2008", NXC_SEVERITY_WARNING, 6, 1); /* the same again counts once */
  static const char *const order[] = {"NX2006", "NX2007", "NX2008", "NX2009"};
  assert_int_equal(nxc_sink_n_findings(f->sink), 4);
  for (size_t i = 0; i < 4; i++) assert_string_equal(nxc_sink_finding(f->sink, i)->id, order[i]);
  assert_int_equal(nxc_sink_count(f->sink, NXC_SEVERITY_WARNING), 2);
  nxc_sink_warnings_are_errors(f->sink);
  assert_int_equal(nxc_sink_count(f->sink, NXC_SEVERITY_WARNING), 0);
  assert_int_equal(nxc_sink_count(f->sink, NXC_SEVERITY_ERROR), 3);
  assert_int_equal(nxc_sink_count(f->sink, NXC_SEVERITY_NOTE), 1);
}

static void test_suppression(void **state) {
  fixture *f = *state;
  report(f, "NX2001", NXC_SEVERITY_ERROR, 2, 1); /* beside the line */
  report(f, "NX2002", NXC_SEVERITY_ERROR, 4, 1); /* alone above it, first of two */
  report(f, "NX2003", NXC_SEVERITY_ERROR, 4, 1); /* second of two */
  assert_int_equal(nxc_sink_n_findings(f->sink), 0);
  report(f, "NX2001", NXC_SEVERITY_ERROR, 6, 1); /* a comment beside another line does not count */
  report(f, "NX2004", NXC_SEVERITY_ERROR, 4, 1); /* another id */
  report(f, "NX1001", NXC_SEVERITY_ERROR, 2, 1);
  assert_int_equal(nxc_sink_n_findings(f->sink), 3);
}

static void test_reading_errors_stay(void **state) {
  fixture *f = *state;
  const char *own = "x: [ # nxcfg: allow NX1001 no\n";
  const nxc_source *source = nxc_source_new(f->arena, "own", own, strlen(own));
  nxc_report(f->sink, "NX1001", NXC_SEVERITY_ERROR, (nxc_span){source, 1, 1, 1}, NULL, "broken");
  assert_int_equal(nxc_sink_n_findings(f->sink), 1);
}

static void test_text(void **state) {
  fixture *f = *state;
  const nxc_remark remark = {{f->source, 1, 1, 1}, "a is 1"};
  nxc_sink_report(f->sink, &(nxc_finding){.id = "NX2104",
                                          .severity = NXC_SEVERITY_ERROR,
                                          .message = "c is wrong",
                                          .at = {f->source, 4, 4, 1},
                                          .label = "this",
                                          .fix = "set c to 4",
                                          .remarks = &remark,
                                          .n_remarks = 1});
  assert_string_equal(printed(f, NXC_FORMAT_TEXT), "error[NX2104]: c is wrong\n"
                                                   " --> case.yaml:4:4\n"
                                                   "  |\n"
                                                   "4 | c: 3\n"
                                                   "  |    ^ this\n"
                                                   "  = note: a is 1 (case.yaml:1)\n"
                                                   "  = fix: set c to 4\n\n");
}

/* Secrets, control characters and wide characters. */
static void test_careful_text(void **state) {
  fixture *f = *state;
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_ERROR, (nxc_span){f->source, 7, 1, 7}, NULL, "bad\x1b[31m key");
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_ERROR, (nxc_span){f->source, 8, 1, 3}, NULL, "odd");
  const char *out = printed(f, NXC_FORMAT_TEXT);
  assert_null(strstr(out, "hunter2"));
  assert_null(strchr(out, '\x1b'));
  assert_null(strchr(out, '\x01'));
  assert_non_null(strstr(out, "\xC3\xA9t\xC3\xA9: ? here\n  | ^^^\n"));
}

static void test_json(void **state) {
  fixture *f = *state;
  report(f, "NX2001", NXC_SEVERITY_WARNING, 1, 4);
  report(f, "NX2002", NXC_SEVERITY_ERROR, 0, 0);
  json_t *findings = json_loads(printed(f, NXC_FORMAT_JSON), 0, NULL);
  assert_int_equal(json_array_size(findings), 2);
  const json_t *first = json_array_get(findings, 0), *second = json_array_get(findings, 1);
  assert_string_equal(json_string_value(json_object_get(first, "id")), "NX2001");
  assert_string_equal(json_string_value(json_object_get(first, "severity")), "warning");
  assert_string_equal(json_string_value(json_object_get(first, "message")), "message of NX2001");
  assert_string_equal(json_string_value(json_object_get(first, "file")), "case.yaml");
  assert_int_equal(json_integer_value(json_object_get(first, "line")), 1);
  assert_int_equal(json_integer_value(json_object_get(first, "column")), 4);
  assert_string_equal(json_string_value(json_object_get(first, "fix")), "do so");
  assert_true(json_is_null(json_object_get(second, "file")));
  json_decref(findings);
}

static void test_github(void **state) {
  fixture *f = *state;
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_WARNING, (nxc_span){f->source, 4, 1, 1}, "use 100%", "a,b: c");
  assert_string_equal(printed(f, NXC_FORMAT_GITHUB),
                      "::warning file=case.yaml,line=4,col=1,title=NX2001::a,b: c%0Afix: use 100%25\n");
}

static void test_nearest(void **state) {
  (void)state;
  static const char *const names[] = {"learned_absolute", "rope", "num_layers", "zero1",
                                      "tensor_model_parallel_size"};
  assert_string_equal(nxc_nearest("rop", names, 5), "rope");
  assert_string_equal(nxc_nearest("num_layer", names, 5), "num_layers");
  assert_string_equal(nxc_nearest("num-layers", names, 5), "num_layers");
  /* two letters swapped are one edit */
  assert_string_equal(nxc_nearest("nmu_layers", names, 5), "num_layers");
  assert_string_equal(nxc_nearest("Zero1", names, 5), "zero1");
  assert_string_equal(nxc_nearest("tensor_model_paralel_sise", names, 5), "tensor_model_parallel_size");
  assert_null(nxc_nearest("hidden_size", names, 5));
  assert_null(nxc_nearest("x", names, 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_suppression, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_reading_errors_stay, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_careful_text, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_github, set_up, tear_down),
      cmocka_unit_test(test_nearest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
