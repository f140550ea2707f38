/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/render_document.h"

#include "compiler/render/render.h"

#include <jansson.h>
#include <string.h>

struct nxc_document_format {
  json_t *(*begin)(void);
  void (*add)(json_t *document, const nxc_sink *sink, const char *file);
  void (*print)(const json_t *document, FILE *out);
};

static json_t *begin_array(void) {
  return json_array();
}

static void print_json(const json_t *document, FILE *out) {
  json_dumpf(document, out, JSON_INDENT(2));
  fputc('\n', out);
}

static void add_json(json_t *document, const nxc_sink *sink, const char *file) {
  json_t *own = nxc_findings_to_json(sink), *finding;
  size_t i;
  json_array_foreach(own, i, finding) {
    bool placed = !json_is_null(json_object_get(finding, "file"));
    if (!placed) json_object_set_new(finding, "file", nxc_json_text(file));
  }
  json_array_extend(document, own);
  json_decref(own);
}

/* -- GitLab: https://docs.gitlab.com/ci/testing/code_quality, "Code Quality report format" --------------- */

/* How many findings before this one have its id and message in its file. */
static unsigned count_same(const nxc_sink *sink, size_t index) {
  const nxc_finding *finding = nxc_sink_finding(sink, index);
  unsigned n_same = 0;
  for (size_t i = 0; i < index; i++) {
    const nxc_finding *other = nxc_sink_finding(sink, i);
    n_same += other->at.source == finding->at.source && strcmp(other->id, finding->id) == 0 &&
              strcmp(other->message, finding->message) == 0;
  }
  return n_same;
}

static void add_gitlab(struct json_t *document, const nxc_sink *sink, const char *file) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity == NXC_SEVERITY_NOTE) continue;
    const char *path = finding->at.source ? finding->at.source->name : file;
    char hex[65];
    nxc_finding_fingerprint(finding, path, count_same(sink, i), hex);
    nxc_arena *arena = nxc_sink_arena(sink);
    const char *fix = finding->fix ? nxc_arena_printf(arena, "; %s", finding->fix) : "";
    const char *text = nxc_arena_printf(arena, "%s: %s%s", finding->id, finding->message, fix);
    bool error = finding->severity == NXC_SEVERITY_ERROR;
    json_array_append_new(document, json_pack("{s:o, s:s, s:s, s:s, s:{s:o, s:{s:i}}}", "description",
                                              nxc_json_text(text), "check_name", finding->id, "fingerprint",
                                              hex, "severity", error ? "major" : "minor", "location", "path",
                                              nxc_json_text(path), "lines", "begin",
                                              finding->at.source ? (int)finding->at.line : 1));
  }
}

/* -- all of them ----------------------------------------------------------------------------------------- */

const nxc_document_format *nxc_document_format_of(nxc_format format) {
  static const nxc_document_format formats[] = {
      [NXC_FORMAT_JSON] = {begin_array, add_json, print_json},
      [NXC_FORMAT_SARIF] = {nxc_sarif_begin, nxc_sarif_add, print_json},
      [NXC_FORMAT_GITLAB] = {begin_array, add_gitlab, print_json},
      [NXC_FORMAT_JUNIT] = {begin_array, nxc_junit_add, nxc_junit_print},
  };
  return formats[format].begin ? &formats[format] : NULL;
}

struct json_t *nxc_findings_begin(const nxc_document_format *format) {
  return format->begin();
}

void nxc_findings_add(const nxc_document_format *format, struct json_t *document, const nxc_sink *sink,
                      const char *file) {
  format->add(document, sink, file);
}

void nxc_findings_end(const nxc_document_format *format, struct json_t *document, FILE *out) {
  format->print(document, out);
  json_decref(document);
}
