/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/render.h"

#include "compiler/diagnostics/characters.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* -- GitHub annotations: https://docs.github.com/actions, "Workflow commands" ---------------------------- */

static void print_escaped(const char *text, bool property, FILE *out) {
  for (; *text != '\0'; text++) {
    bool escape =
        *text == '%' || *text == '\r' || *text == '\n' || (property && (*text == ':' || *text == ','));
    if (escape) fprintf(out, "%%%02X", (unsigned)*text);
    else fputc(*text, out);
  }
}

static void print_github(const nxc_finding *finding, const char *file, FILE *out) {
  static const char *const commands[] = {
      [NXC_SEVERITY_NOTE] = "notice", [NXC_SEVERITY_WARNING] = "warning", [NXC_SEVERITY_ERROR] = "error"};
  fprintf(out, "::%s ", commands[finding->severity]);
  const nxc_span at = finding->at;
  if (at.source != NULL || file != NULL) {
    fputs("file=", out);
    print_escaped(at.source ? at.source->name : file, true, out);
    if (at.source) fprintf(out, ",line=%u,col=%u", at.line, at.column);
    fputc(',', out);
  }
  fprintf(out, "title=%s::", finding->id);
  print_escaped(finding->message, false, out);
  for (size_t i = 0; i < finding->n_remarks; i++) {
    fputs("%0A", out);
    print_escaped(finding->remarks[i].text, false, out);
  }
  if (finding->fix != NULL) {
    fputs("%0Afix: ", out);
    print_escaped(finding->fix, false, out);
  }
  fputc('\n', out);
}

/* -- JSON ------------------------------------------------------------------------------------------------ */

struct json_t *nxc_json_text(const char *text) {
  if (text == NULL) return json_null();
  json_t *json = json_string(text);
  if (json != NULL) return json;
  size_t n_bytes = 0;
  char *plain = malloc(strlen(text) + 1);
  if (plain == NULL) return json_null();
  for (; *text != '\0'; text++) plain[n_bytes++] = (unsigned char)*text < 128 ? *text : '?';
  json = json_stringn(plain, n_bytes);
  free(plain);
  return json;
}

static void set_place(json_t *object, nxc_span at) {
  bool placed = at.source != NULL;
  json_object_set_new(object, "file", nxc_json_text(placed ? at.source->name : NULL));
  json_object_set_new(object, "line", placed ? json_integer(at.line) : json_null());
  json_object_set_new(object, "column", placed ? json_integer(at.column) : json_null());
}

static json_t *place_to_json(nxc_place at) {
  return json_pack("{s:I, s:I}", "line", (json_int_t)at.line, "column", (json_int_t)at.column);
}

static json_t *repair_to_json(const nxc_repair *repair) {
  json_t *edits = json_array();
  for (size_t i = 0; i < repair->n_edits; i++) {
    const nxc_edit *edit = &repair->edits[i];
    json_t *begin = place_to_json(nxc_source_place(edit->source, edit->begin)),
           *end = place_to_json(nxc_source_place(edit->source, edit->end));
    json_array_append_new(edits, json_pack("{s:o, s:o, s:o, s:o}", "file", nxc_json_text(edit->source->name),
                                           "begin", begin, "end", end, "text", nxc_json_text(edit->text)));
  }
  return json_pack("{s:b, s:o}", "safe", repair->safe, "edits", edits);
}

static json_t *finding_to_json(const nxc_finding *finding) {
  json_t *object = json_object();
  json_object_set_new(object, "id", nxc_json_text(finding->id));
  json_object_set_new(object, "severity", nxc_json_text(nxc_severity_name(finding->severity)));
  json_object_set_new(object, "message", nxc_json_text(finding->message));
  set_place(object, finding->at);
  if (finding->at.source != NULL) json_object_set_new(object, "length", json_integer(finding->at.length));
  if (finding->label != NULL) json_object_set_new(object, "label", nxc_json_text(finding->label));
  json_object_set_new(object, "fix", nxc_json_text(finding->fix));
  json_t *remarks = json_array();
  for (size_t i = 0; i < finding->n_remarks; i++) {
    json_t *remark = json_object();
    json_object_set_new(remark, "message", nxc_json_text(finding->remarks[i].text));
    set_place(remark, finding->remarks[i].at);
    json_array_append_new(remarks, remark);
  }
  json_object_set_new(object, "notes", remarks);
  if (finding->repair.n_edits > 0) json_object_set_new(object, "repair", repair_to_json(&finding->repair));
  return object;
}

struct json_t *nxc_findings_to_json(const nxc_sink *sink) {
  json_t *findings = json_array();
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    json_array_append_new(findings, finding_to_json(nxc_sink_finding(sink, i)));
  }
  return findings;
}

/* -- all ------------------------------------------------------------------------------------------------- */

/* One line, as compilers print them: FILE:LINE:COLUMN: error[NX1234]: message; fix. */
static void print_short(const nxc_finding *finding, const char *file, FILE *out) {
  const nxc_span at = finding->at;
  if (at.source != NULL || file != NULL) nxc_characters_print(at.source ? at.source->name : file, out);
  if (at.source != NULL) fprintf(out, ":%u:%u: ", at.line, at.column);
  else if (file != NULL) fputs(": ", out);
  fprintf(out, "%s[%s]: %s", nxc_severity_name(finding->severity), finding->id, finding->message);
  fprintf(out, "%s%s\n", finding->fix ? "; " : "", finding->fix ? finding->fix : "");
}

void nxc_sink_print(nxc_sink *sink, const nxc_render *render, FILE *out) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity == NXC_SEVERITY_NOTE && !render->notes) continue;
    if (render->format == NXC_FORMAT_GITHUB) print_github(finding, render->file, out);
    else if (render->format == NXC_FORMAT_SHORT) print_short(finding, render->file, out);
    else nxc_render_text(finding, render->colour, out);
  }
}
