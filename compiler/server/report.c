/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as diagnostics of the protocol, and their repairs as code actions. */
#include "compiler/render/render.h"
#include "compiler/server/answers.h"

#include <stdlib.h>
#include <string.h>

/* At the top where it stands nowhere, or in another file: the message then says which. */
static json_t *range_of(const nxc_analysis *analysis, nxc_span at) {
  if (nxc_analysis_has(analysis, at)) return nxc_analysis_range(analysis, at);
  return nxc_text_range(analysis->open->text, analysis->open->n_bytes, 0, 0);
}

static const char *message_of(const nxc_analysis *analysis, const nxc_finding *finding) {
  nxc_arena *arena = analysis->judged.arena;
  const char *text = finding->message;
  if (finding->at.source != NULL && !nxc_analysis_has(analysis, finding->at))
    text = nxc_arena_printf(arena, "%s:%u: %s", finding->at.source->name, finding->at.line, text);
  for (size_t i = 0; i < finding->n_remarks; i++)
    text = nxc_arena_printf(arena, "%s\nnote: %s", text, finding->remarks[i].text);
  return finding->fix ? nxc_arena_printf(arena, "%s\nfix: %s", text, finding->fix) : text;
}

static json_t *related_of(const nxc_analysis *analysis, const nxc_finding *finding) {
  json_t *list = json_array();
  for (size_t i = 0; i < finding->n_remarks; i++) {
    const nxc_remark *remark = &finding->remarks[i];
    if (!nxc_analysis_has(analysis, remark->at)) continue;
    json_t *range = nxc_analysis_range(analysis, remark->at);
    json_array_append_new(list, json_pack("{s:{s:s, s:o}, s:o}", "location", "uri", analysis->open->uri,
                                          "range", range, "message", nxc_json_text(remark->text)));
  }
  return list;
}

static json_t *diagnostic_of(const nxc_analysis *analysis, const nxc_finding *finding) {
  static const int severities[] = {
      [NXC_SEVERITY_ERROR] = 1, [NXC_SEVERITY_WARNING] = 2, [NXC_SEVERITY_NOTE] = 3};
  return json_pack("{s:o, s:i, s:s, s:s, s:o, s:o}", "range", range_of(analysis, finding->at), "severity",
                   severities[finding->severity], "code", finding->id, "source", "nxcfg", "message",
                   nxc_json_text(message_of(analysis, finding)), "relatedInformation",
                   related_of(analysis, finding));
}

json_t *nxc_answer_diagnostics(const nxc_analysis *analysis) {
  json_t *list = json_array();
  const nxc_sink *sink = analysis->judged.sink;
  for (size_t i = 0; !analysis->judged.compiled.foreign && i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity > NXC_SEVERITY_NOTE) json_array_append_new(list, diagnostic_of(analysis, finding));
  }
  return json_pack("{s:s, s:I, s:o}", "uri", analysis->open->uri, "version", analysis->open->version,
                   "diagnostics", list);
}

/* -- repairs --------------------------------------------------------------------------------------------- */

static bool is_own(const nxc_analysis *analysis, const nxc_edit *edit) {
  return strcmp(edit->source->name, analysis->open->path) == 0;
}

static json_t *edit_of(const nxc_analysis *analysis, const nxc_edit *edit) {
  size_t n_mark = edit->source->n_mark_bytes;
  json_t *range =
      nxc_text_range(analysis->open->text, analysis->open->n_bytes, edit->begin + n_mark, edit->end + n_mark);
  return json_pack("{s:o, s:o}", "range", range, "newText", nxc_json_text(edit->text));
}

/* NULL where an edit is of another file. */
static json_t *edits_of(const nxc_analysis *analysis, const nxc_edit *edits, size_t n_edits) {
  json_t *list = json_array();
  for (size_t i = 0; i < n_edits; i++) {
    if (is_own(analysis, &edits[i])) {
      json_array_append_new(list, edit_of(analysis, &edits[i]));
      continue;
    }
    json_decref(list);
    return NULL;
  }
  return list;
}

static json_t *action(const nxc_analysis *analysis, const char *title, const char *kind, json_t *edits) {
  json_t *changes = json_object();
  json_object_set_new(changes, analysis->open->uri, edits);
  return json_pack("{s:o, s:s, s:{s:o}}", "title", nxc_json_text(title), "kind", kind, "edit", "changes",
                   changes);
}

static bool touches(const nxc_analysis *analysis, const nxc_finding *finding, const json_t *range) {
  const nxc_open_text *open = analysis->open;
  if (!nxc_analysis_has(analysis, finding->at)) return false;
  size_t n_mark = finding->at.source->n_mark_bytes,
         begin = nxc_text_offset_json(open->text, open->n_bytes, json_object_get(range, "start")),
         end = nxc_text_offset_json(open->text, open->n_bytes, json_object_get(range, "end"));
  return nxc_span_offset(finding->at, false) + n_mark <= end &&
         begin <= nxc_span_offset(finding->at, true) + n_mark;
}

static const char *title_of(const nxc_analysis *analysis, const nxc_finding *finding) {
  const char *fix = finding->fix ? finding->fix : "mend this";
  const char *mark = finding->repair.safe ? "" : " (may change what the file means)";
  return nxc_arena_printf(analysis->judged.arena, "%s: %s%s", finding->id, fix, mark);
}

static void add_action(const nxc_analysis *analysis, const nxc_finding *finding, json_t *list) {
  json_t *edits = edits_of(analysis, finding->repair.edits, finding->repair.n_edits);
  if (edits == NULL) return;
  json_t *made = action(analysis, title_of(analysis, finding), "quickfix", edits);
  json_object_set_new(made, "isPreferred", json_boolean(finding->repair.safe));
  json_object_set_new(made, "diagnostics", json_pack("[o]", diagnostic_of(analysis, finding)));
  json_array_append_new(list, made);
}

/* All safe repairs of the file that do not overlap. */
static void add_fix_all(const nxc_analysis *analysis, json_t *list) {
  nxc_arena *arena = analysis->judged.arena;
  nxc_edit_list chosen = {0};
  const nxc_sink *sink = analysis->judged.sink;
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool wanted = finding->repair.n_edits > 0 && finding->repair.safe &&
                  finding->severity > NXC_SEVERITY_NOTE && is_own(analysis, finding->repair.edits);
    if (wanted) nxc_edits_take(arena, &chosen, finding->repair.edits->source, &finding->repair);
  }
  json_t *edits = chosen.n_items > 0 ? edits_of(analysis, chosen.items, chosen.n_items) : NULL;
  if (edits != NULL)
    json_array_append_new(list, action(analysis, "mend all that is safe", "source.fixAll.nxcfg", edits));
}

/* Whether the editor asks for actions of this kind: for all where it names none. */
static bool is_wanted(const json_t *params, const char *kind) {
  const json_t *only = json_object_get(json_object_get(params, "context"), "only");
  for (size_t i = 0; i < json_array_size(only); i++) {
    const char *name = json_string_value(json_array_get(only, i));
    if (name != NULL && strncmp(kind, name, strlen(name)) == 0) return true;
  }
  return json_array_size(only) == 0;
}

json_t *nxc_answer_actions(const nxc_analysis *analysis, const json_t *params) {
  json_t *list = json_array();
  const nxc_sink *sink = analysis->judged.sink;
  for (size_t i = 0; is_wanted(params, "quickfix") && i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool meant = finding->repair.n_edits > 0 && finding->severity > NXC_SEVERITY_NOTE;
    if (meant && touches(analysis, finding, json_object_get(params, "range")))
      add_action(analysis, finding, list);
  }
  if (is_wanted(params, "source.fixAll.nxcfg")) add_fix_all(analysis, list);
  return list;
}
