/* SPDX-License-Identifier: Apache-2.0 */
/* JUnit's XML, as continuous integration reads it: each file is a test, each error a failure of it, and
 * warnings are what it printed. */
#include "compiler/render/render.h"
#include "compiler/render/render_document.h"
#include "schema/characters.h"

#include <jansson.h>
#include <string.h>

void nxc_junit_add(struct json_t *document, const nxc_sink *sink, const char *file) {
  nxc_arena *arena = nxc_sink_arena(sink);
  json_t *failures = json_array(), *warnings = json_array();
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity == NXC_SEVERITY_NOTE) continue;
    const char *name = finding->at.source ? finding->at.source->name : file, *place = "";
    if (finding->at.source != NULL)
      place = nxc_arena_printf(arena, ":%u:%u", finding->at.line, finding->at.column);
    const char *fix = finding->fix ? nxc_arena_printf(arena, "; %s", finding->fix) : "";
    const char *text = nxc_arena_printf(arena, "%s%s: %s%s", name, place, finding->message, fix);
    bool error = finding->severity == NXC_SEVERITY_ERROR;
    json_array_append_new(error ? failures : warnings,
                          json_pack("{s:s, s:o}", "id", finding->id, "text", nxc_json_text(text)));
  }
  json_array_append_new(document, json_pack("{s:o, s:o, s:o}", "file", nxc_json_text(file), "failures",
                                            failures, "warnings", warnings));
}

static void print_escaped(const char *text, FILE *out) {
  for (size_t n, n_left = strlen(text); n_left > 0; text += n, n_left -= n) {
    bool shown;
    n = nx_character_next(text, n_left, &shown);
    if (!shown) fputc('?', out);
    else if (*text == '<') fputs("&lt;", out);
    else if (*text == '>') fputs("&gt;", out);
    else if (*text == '&') fputs("&amp;", out);
    else if (*text == '"') fputs("&quot;", out);
    else fwrite(text, 1, n, out);
  }
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static void print_file(const json_t *file, FILE *out) {
  const json_t *failures = json_object_get(file, "failures"), *warnings = json_object_get(file, "warnings");
  fputs("    <testcase classname=\"nxcfg.validate\" name=\"", out);
  print_escaped(text_of(file, "file"), out);
  fputs("\">\n", out);
  for (size_t i = 0; i < json_array_size(failures); i++) {
    const json_t *finding = json_array_get(failures, i);
    fprintf(out, "      <failure type=\"%s\" message=\"", text_of(finding, "id"));
    print_escaped(text_of(finding, "text"), out);
    fputs("\"/>\n", out);
  }
  if (json_array_size(warnings) > 0) fputs("      <system-out>", out);
  for (size_t i = 0; i < json_array_size(warnings); i++) {
    const json_t *finding = json_array_get(warnings, i);
    fprintf(out, "%swarning[%s]: ", i ? "\n" : "", text_of(finding, "id"));
    print_escaped(text_of(finding, "text"), out);
  }
  if (json_array_size(warnings) > 0) fputs("</system-out>\n", out);
  fputs("    </testcase>\n", out);
}

void nxc_junit_print(const struct json_t *document, FILE *out) {
  size_t n_files = json_array_size(document), n_failed = 0;
  for (size_t i = 0; i < n_files; i++)
    n_failed += json_array_size(json_object_get(json_array_get(document, i), "failures")) > 0;
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
          "  <testsuite name=\"nxcfg\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
          n_files, n_failed);
  for (size_t i = 0; i < n_files; i++) print_file(json_array_get(document, i), out);
  fputs("  </testsuite>\n</testsuites>\n", out);
}
