/* SPDX-License-Identifier: Apache-2.0 */
/* SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"): one run over all files. */
#include "compiler/diagnostics/allow.h"
#include "compiler/settings/catalogue.h"
#include "compiler/render/render.h"
#include "compiler/render/render_document.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

struct json_t *nxc_sarif_begin(void) {
  return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:s, s:[]}}, s:s, s:[]}]}", "$schema",
                   "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                   "driver", "name", "nxcfg", "version", NX_VERSION, "semanticVersion", NX_VERSION, "rules",
                   "columnKind", "unicodeCodePoints", "results");
}

/* -- rules ----------------------------------------------------------------------------------------------- */

static json_t *rule_to_json(nxc_arena *arena, const char *id) {
  const nxc_rule_row *rule = nxc_rule_find(id);
  const nxc_diagnostic_row *diagnostic = nxc_diagnostic_find(id);
  json_t *object = json_pack("{s:s}", "id", id);
  const char *title = diagnostic ? diagnostic->title
                      : rule     ? nxc_message_readable(arena, rule->message)
                                 : NULL;
  const char *more = diagnostic ? diagnostic->explain : rule ? rule->explain : NULL;
  if (title != NULL) json_object_set_new(object, "shortDescription", json_pack("{s:s}", "text", title));
  if (more != NULL) json_object_set_new(object, "fullDescription", json_pack("{s:s}", "text", more));
  const char *help = "A rule of this site.";
  if (rule || diagnostic) help = nxc_arena_printf(arena, "nxcfg explain %s tells more.", id);
  json_object_set_new(object, "help", json_pack("{s:s}", "text", help));
  return object;
}

/* The place of a rule in the run's list, which holds each id once. */
static size_t rule_index(json_t *run, nxc_arena *arena, const char *id) {
  json_t *rules = json_object_get(json_object_get(json_object_get(run, "tool"), "driver"), "rules");
  for (size_t i = 0; i < json_array_size(rules); i++)
    if (strcmp(json_string_value(json_object_get(json_array_get(rules, i), "id")), id) == 0) return i;
  json_array_append_new(rules, rule_to_json(arena, id));
  return json_array_size(rules) - 1;
}

/* -- places ---------------------------------------------------------------------------------------------- */

/* A file's name as a relative or file URI. */
static json_t *uri(nxc_arena *arena, const char *name) {
  static const char plain[] = "-._~/!$&'()*+,;=@"; /* a colon would end a scheme */
  char *text = nxc_arena_alloc(arena, 3 * strlen(name) + 8), *at = text;
  if (*name == '/') at = stpcpy(at, "file://");
  for (const char *byte = name; *byte != '\0'; byte++) {
    bool kept = isalnum((unsigned char)*byte) || strchr(plain, *byte) != NULL;
    if (kept) *at++ = *byte;
    else at += sprintf(at, "%%%02X", (unsigned)(unsigned char)*byte);
  }
  return json_string(text);
}

static json_t *region(nxc_span at) {
  size_t start = nxc_source_characters(at.source, nxc_span_offset(at, false)),
         end = nxc_source_characters(at.source, nxc_span_offset(at, true));
  return json_pack("{s:I, s:I, s:I, s:I, s:I}", "startLine", (json_int_t)at.line, "startColumn",
                   (json_int_t)at.column, "endColumn", (json_int_t)(at.column + end - start), "charOffset",
                   (json_int_t)start, "charLength", (json_int_t)(end - start));
}

static json_t *edited_region(const nxc_edit *edit) {
  nxc_place from = nxc_source_place(edit->source, edit->begin),
            to = nxc_source_place(edit->source, edit->end);
  size_t start = nxc_source_characters(edit->source, edit->begin),
         end = nxc_source_characters(edit->source, edit->end);
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "startLine", (json_int_t)from.line, "startColumn",
                   (json_int_t)from.column, "endLine", (json_int_t)to.line, "endColumn",
                   (json_int_t)to.column, "charOffset", (json_int_t)start, "charLength",
                   (json_int_t)(end - start));
}

static json_t *location(nxc_arena *arena, nxc_span at, const char *file) {
  const char *name = at.source ? at.source->name : file;
  json_t *place = json_pack("{s:{s:o}}", "artifactLocation", "uri", uri(arena, name));
  if (at.source != NULL) json_object_set_new(place, "region", region(at));
  return json_pack("{s:o}", "physicalLocation", place);
}

/* -- results --------------------------------------------------------------------------------------------- */

/* Remarks with a place become related locations; the others stand in the message. */
static json_t *message(nxc_arena *arena, const nxc_finding *finding) {
  const char *text = finding->message;
  for (size_t i = 0; i < finding->n_remarks; i++)
    if (finding->remarks[i].at.source == NULL)
      text = nxc_arena_printf(arena, "%s\nnote: %s", text, finding->remarks[i].text);
  if (finding->fix != NULL) text = nxc_arena_printf(arena, "%s\nfix: %s", text, finding->fix);
  return json_pack("{s:o}", "text", nxc_json_text(text));
}

static json_t *related(nxc_arena *arena, const nxc_finding *finding) {
  json_t *list = json_array();
  for (size_t i = 0; i < finding->n_remarks; i++) {
    const nxc_remark *remark = &finding->remarks[i];
    if (remark->at.source == NULL) continue;
    json_t *place = location(arena, remark->at, "");
    json_object_set_new(place, "message", json_pack("{s:o}", "text", nxc_json_text(remark->text)));
    json_array_append_new(list, place);
  }
  return list;
}

static json_t *replacement(const nxc_edit *edit) {
  json_t *object = json_pack("{s:o}", "deletedRegion", edited_region(edit));
  if (*edit->text != '\0')
    json_object_set_new(object, "insertedContent", json_pack("{s:o}", "text", nxc_json_text(edit->text)));
  return object;
}

/* The edits of each source, in the order in which the sources come first. */
static json_t *changes(nxc_arena *arena, const nxc_repair *repair) {
  json_t *list = json_array();
  for (size_t i = 0; i < repair->n_edits; i++) {
    const nxc_source *source = repair->edits[i].source;
    size_t first = 0;
    while (repair->edits[first].source != source) first++;
    if (first < i) continue;
    json_t *replacements = json_array();
    for (size_t k = i; k < repair->n_edits; k++)
      if (repair->edits[k].source == source)
        json_array_append_new(replacements, replacement(&repair->edits[k]));
    json_array_append_new(list, json_pack("{s:{s:o}, s:o}", "artifactLocation", "uri",
                                          uri(arena, source->name), "replacements", replacements));
  }
  return list;
}

static json_t *fixes(nxc_arena *arena, const nxc_finding *finding) {
  return json_pack("[{s:{s:o}, s:o, s:{s:b}}]", "description", "text",
                   nxc_json_text(finding->fix ? finding->fix : "replace"), "artifactChanges",
                   changes(arena, &finding->repair), "properties", "safe", finding->repair.safe);
}

static json_t *suppressions(nxc_arena *arena, const nxc_finding *finding) {
  nxc_allow allow = {.reason = ""};
  bool comment = nxc_allow_find(arena, finding, &allow);
  json_t *object = json_pack("{s:s}", "kind", comment ? "inSource" : "external");
  if (*allow.reason) json_object_set_new(object, "justification", nxc_json_text(allow.reason));
  return json_pack("[o]", object);
}

static void add_result(json_t *run, nxc_arena *arena, const nxc_finding *finding, const char *file,
                       bool suppressed) {
  json_t *results = json_object_get(run, "results");
  json_t *result = json_pack("{s:s, s:I, s:s, s:o, s:[o]}", "ruleId", finding->id, "ruleIndex",
                             (json_int_t)rule_index(run, arena, finding->id), "level",
                             nxc_severity_name(finding->severity), "message", message(arena, finding),
                             "locations", location(arena, finding->at, file));
  json_t *places = related(arena, finding);
  if (json_array_size(places) > 0) json_object_set(result, "relatedLocations", places);
  json_decref(places);
  char hex[65];
  nxc_finding_fingerprint(finding, finding->at.source ? finding->at.source->name : file, 0, hex);
  json_object_set_new(result, "partialFingerprints", json_pack("{s:s}", "nxcfgFinding/v1", hex));
  if (finding->repair.n_edits > 0)
    json_object_set_new(result, "fixes", fixes(arena, finding));
  if (suppressed) json_object_set_new(result, "suppressions", suppressions(arena, finding));
  json_array_append_new(results, result);
}

/* Of those that comments and the project allow so many, for the record. */
enum { SUPPRESSED_MAX = 500 };

void nxc_sarif_add(struct json_t *document, const nxc_sink *sink, const char *file) {
  json_t *run = json_array_get(json_object_get(document, "runs"), 0);
  nxc_arena *arena = nxc_sink_arena(sink);
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++)
    add_result(run, arena, nxc_sink_finding(sink, i), file, false);
  for (size_t i = 0; i < nxc_sink_n_suppressed(sink) && i < SUPPRESSED_MAX; i++)
    add_result(run, arena, nxc_sink_suppressed(sink, i), file, true);
}
