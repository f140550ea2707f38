/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/render/render.h"
#include "compiler/render/render_document.h"
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

static json_t *document(fixture *f, nxc_format format) {
  const nxc_document_format *row = nxc_document_format_of(format);
  json_t *made = nxc_findings_begin(row);
  nxc_findings_add(row, made, f->sink, "unplaced.yaml");
  char *bytes = NULL;
  size_t n_bytes = 0;
  FILE *out = open_memstream(&bytes, &n_bytes);
  nxc_findings_end(row, made, out);
  fclose(out);
  json_t *read = json_loads(bytes, JSON_REJECT_DUPLICATES, NULL);
  free(bytes);
  assert_non_null(read);
  return read;
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
  json_t *findings = document(f, NXC_FORMAT_JSON);
  assert_int_equal(json_array_size(findings), 2);
  const json_t *first = json_array_get(findings, 0), *second = json_array_get(findings, 1);
  assert_string_equal(json_string_value(json_object_get(first, "id")), "NX2001");
  assert_string_equal(json_string_value(json_object_get(first, "severity")), "warning");
  assert_string_equal(json_string_value(json_object_get(first, "message")), "message of NX2001");
  assert_string_equal(json_string_value(json_object_get(first, "file")), "case.yaml");
  assert_int_equal(json_integer_value(json_object_get(first, "line")), 1);
  assert_int_equal(json_integer_value(json_object_get(first, "column")), 4);
  assert_string_equal(json_string_value(json_object_get(first, "fix")), "do so");
  assert_string_equal(json_string_value(json_object_get(second, "file")), "unplaced.yaml");
  json_decref(findings);
}

static void test_github(void **state) {
  fixture *f = *state;
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_WARNING, (nxc_span){f->source, 4, 1, 1}, "use 100%", "a,b: c");
  assert_string_equal(printed(f, NXC_FORMAT_GITHUB),
                      "::warning file=case.yaml,line=4,col=1,title=NX2001::a,b: c%0Afix: use 100%25\n");
}

static void test_short(void **state) {
  fixture *f = *state;
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_WARNING, (nxc_span){f->source, 4, 1, 1}, "use d", "c is wrong");
  nxc_report(f->sink, "NX2009", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "nowhere");
  assert_string_equal(printed(f, NXC_FORMAT_SHORT), "case.yaml:4:1: warning[NX2001]: c is wrong; use d\n"
                                                    "error[NX2009]: nowhere\n");
}

static void test_gitlab(void **state) {
  fixture *f = *state;
  report(f, "NX2001", NXC_SEVERITY_WARNING, 1, 4);
  report(f, "NX2001", NXC_SEVERITY_WARNING, 6,
         1); /* the same words on another line: a fingerprint of its own */
  report(f, "NX2002", NXC_SEVERITY_ERROR, 0, 0);
  report(f, "NX2003", NXC_SEVERITY_NOTE, 1, 1);
  json_t *findings = document(f, NXC_FORMAT_GITLAB);
  assert_int_equal(json_array_size(findings), 3);
  const char *fingerprints[3], *severity, *path, *name;
  int line;
  for (size_t i = 0; i < 3; i++)
    fingerprints[i] = json_string_value(json_object_get(json_array_get(findings, i), "fingerprint"));
  assert_string_not_equal(fingerprints[0], fingerprints[1]);
  assert_int_equal(strlen(fingerprints[2]), 64);
  assert_int_equal(json_unpack(json_array_get(findings, 1), "{s:s, s:s, s:{s:s, s:{s:i}}}", "severity",
                               &severity, "check_name", &name, "location", "path", &path, "lines", "begin",
                               &line),
                   0);
  assert_string_equal(severity, "minor");
  assert_string_equal(name, "NX2001");
  assert_string_equal(path, "case.yaml");
  assert_int_equal(line, 6);
  assert_int_equal(json_unpack(json_array_get(findings, 2), "{s:s, s:{s:s}}", "severity", &severity,
                               "location", "path", &path),
                   0);
  assert_string_equal(severity, "major");
  assert_string_equal(path, "unplaced.yaml");
  json_decref(findings);
}

/* -- SARIF: what section 3 of the standard demands of what we write -------------------------------------- */

static void check_region(const json_t *region) {
  json_int_t line, column, end, offset, length;
  assert_int_equal(json_unpack((json_t *)(uintptr_t)region, "{s:I, s:I, s:I, s:I, s:I !}", "startLine", &line,
                               "startColumn", &column, "endColumn", &end, "charOffset", &offset, "charLength",
                               &length), 0);
  assert_true(line >= 1 && column >= 1 && end >= column && offset >= 0 && length == end - column);
}

static void check_location(const json_t *location) {
  const json_t *place = json_object_get(location, "physicalLocation");
  assert_true(json_is_string(json_object_get(json_object_get(place, "artifactLocation"), "uri")));
  if (json_object_get(place, "region")) check_region(json_object_get(place, "region"));
}

static void check_result(const json_t *result, const json_t *rules) {
  const char *id, *level, *words;
  json_int_t index;
  assert_int_equal(json_unpack((json_t *)(uintptr_t)result, "{s:s, s:I, s:s, s:{s:s}}", "ruleId", &id,
                               "ruleIndex", &index, "level", &level, "message", "text", &words),
                   0);
  assert_string_equal(json_string_value(json_object_get(json_array_get(rules, (size_t)index), "id")), id);
  assert_true(strcmp(level, "error") == 0 || strcmp(level, "warning") == 0 || strcmp(level, "note") == 0);
  assert_int_equal(json_array_size(json_object_get(result, "locations")), 1);
  check_location(json_array_get(json_object_get(result, "locations"), 0));
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(result, "relatedLocations"), i, item) check_location(item);
}

static json_t *check_sarif(fixture *f, json_t **results) {
  json_t *log = document(f, NXC_FORMAT_SARIF), *driver, *rules;
  const char *version, *name, *columns;
  assert_int_equal(json_unpack(log, "{s:s, s:s, s:[{s:{s:o}, s:s, s:o !}] !}", "$schema", &name, "version",
                               &version, "runs", "tool", "driver", &driver, "columnKind", &columns, "results",
                               results),
                   0);
  assert_string_equal(version, "2.1.0");
  assert_string_equal(columns, "unicodeCodePoints");
  assert_int_equal(json_unpack(driver, "{s:s, s:o}", "name", &name, "rules", &rules), 0);
  assert_string_equal(name, "nxcfg");
  size_t i;
  json_t *result;
  json_array_foreach(*results, i, result) check_result(result, rules);
  return log;
}

static void test_sarif(void **state) {
  fixture *f = *state;
  nxc_source file = *f->source; /* as if it had been read from one */
  file.editable = true;
  const nxc_source *editable = &file;
  const nxc_remark remarks[] = {{{f->source, 1, 1, 1}, "a is 1"}, {{0}, "nowhere"}};
  nxc_sink_report(
      f->sink, &(nxc_finding){.id = "NX1301",
                              .severity = NXC_SEVERITY_ERROR,
                              .message = "odd",
                              .at = {f->source, 8, 1, 3},
                              .fix = "did you mean ete?",
                              .repair = nxc_repair_span(f->arena, (nxc_span){editable, 8, 1, 3}, "ete", true),
                              .remarks = remarks,
                              .n_remarks = 2});
  report(f, "NX2001", NXC_SEVERITY_WARNING, 2, 1); /* suppressed by a comment */
  report(f, "NX2009", NXC_SEVERITY_NOTE, 0, 0);
  json_t *results, *log = check_sarif(f, &results);
  assert_int_equal(json_array_size(results), 3);
  const json_t *odd = json_array_get(results, 0), *suppressed = json_array_get(results, 2);
  json_int_t offset, related_line;
  const char *inserted, *words, *kind, *why, *where;
  assert_int_equal(json_unpack((json_t *)(uintptr_t)odd,
                               "{s:{s:s}, s:[{s:{s:{s:I}}}], s:[{s:{s:{s:I}}}], s:[{s:[{s:[{s:{s:s}}]}]}]}",
                               "message", "text", &words, "locations", "physicalLocation", "region",
                               "charOffset", &offset, "relatedLocations", "physicalLocation", "region",
                               "startLine", &related_line, "fixes", "artifactChanges", "replacements",
                               "insertedContent", "text", &inserted),
                   0);
  assert_string_equal(words, "odd\nnote: nowhere\nfix: did you mean ete?");
  assert_string_equal(inserted, "ete");
  assert_int_equal(related_line, 1);
  assert_int_equal(offset, nxc_span_offset((nxc_span){f->source, 8, 1, 3}, false)); /* ASCII before it */
  assert_int_equal(json_unpack((json_t *)(uintptr_t)suppressed, "{s:[{s:s, s:s !}]}", "suppressions", "kind",
                               &kind, "justification", &why),
                   0);
  assert_string_equal(kind, "inSource");
  assert_string_equal(why, "we know");
  assert_int_equal(json_unpack(json_array_get(results, 1), "{s:[{s:{s:{s:s}}}]}", "locations",
                               "physicalLocation", "artifactLocation", "uri", &where),
                   0);
  assert_string_equal(where, "unplaced.yaml");
  json_decref(log);
}

/* Columns, offsets and lengths count characters: two letters of the last line have two bytes each. */
static void test_sarif_characters(void **state) {
  fixture *f = *state;
  nxc_report(f->sink, "NX2001", NXC_SEVERITY_ERROR, (nxc_span){f->source, 8, 1, 3}, NULL, "wide");
  nxc_report(f->sink, "NX2002", NXC_SEVERITY_ERROR, (nxc_span){f->source, 8, 8, 4}, NULL, "behind");
  json_t *results, *log = check_sarif(f, &results);
  json_int_t offsets[2], lengths[2];
  for (size_t i = 0; i < 2; i++) {
    json_t *result = json_array_get(results, i);
    assert_int_equal(json_unpack(result, "{s:[{s:{s:{s:I, s:I}}}]}", "locations", "physicalLocation",
                                 "region", "charOffset", &offsets[i], "charLength", &lengths[i]),
                     0);
  }
  assert_int_equal(lengths[0], 3);
  assert_int_equal(lengths[1], 4);
  assert_int_equal(offsets[1] - offsets[0], 7);
  assert_int_equal(nxc_span_offset((nxc_span){f->source, 8, 8, 4}, false) - (size_t)offsets[0], 9);
  json_decref(log);
}

/* -- comments -------------------------------------------------------------------------------------------- */

static bool excused(const void *context, const char *id) {
  return strcmp(context, id) == 0;
}

static void test_unused_comments(void **state) {
  fixture *f = *state;
  report(f, "NX2001", NXC_SEVERITY_ERROR, 2, 1);
  report(f, "NX2002", NXC_SEVERITY_ERROR, 4, 1);
  nxc_allow_report_unused(f->sink, f->source, excused, "NX2003");
  assert_int_equal(nxc_sink_n_findings(f->sink), 1);
  const nxc_finding *finding = nxc_sink_finding(f->sink, 0);
  assert_string_equal(finding->id, "NX1510");
  assert_int_equal(finding->at.line, 5);
  assert_int_equal(finding->at.column, 6);
  assert_int_equal(finding->severity, NXC_SEVERITY_WARNING);
  assert_string_equal(finding->message, "this comment allows NX2001, which is not found here");
}

static void test_ids(void **state) {
  (void)state;
  static const char *const good[] = {"NX1234", "ACME001", "AB12345"};
  static const char *const bad[] = {"NX123", "NX12345", "A100", "BF16", "acme001", "ACME", "ACME001x", ""};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(nxc_allow_is_id(good[i], strlen(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(nxc_allow_is_id(bad[i], strlen(bad[i])));
}

static void test_project_allows(void **state) {
  fixture *f = *state;
  report(f, "NX2009", NXC_SEVERITY_ERROR, 0, 0);
  report(f, "NX1001", NXC_SEVERITY_ERROR, 1, 1);
  nxc_sink_allow(f->sink, "NX2009");
  nxc_sink_allow(f->sink, "NX1001"); /* what cannot be read stays */
  assert_int_equal(nxc_sink_n_findings(f->sink), 1);
  assert_string_equal(nxc_sink_finding(f->sink, 0)->id, "NX1001");
  assert_int_equal(nxc_sink_n_suppressed(f->sink), 1);
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
      cmocka_unit_test_setup_teardown(test_short, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_gitlab, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sarif, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sarif_characters, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_unused_comments, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_project_allows, set_up, tear_down),
      cmocka_unit_test(test_ids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
