/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/diagnostics.h"

#include "compiler/diagnostics/allow.h"
#include "compiler/diagnostics/characters.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  nxc_finding finding;
  size_t n_source; /* sources in order of first finding; the sourceless come last */
  bool commented;  /* comments of its source may allow it */
  size_t sequence;
} entry;

struct nxc_sink {
  nxc_arena *arena;
  entry **entries; /* everything reported */
  size_t n_entries;
  entry **visible; /* sorted; no repetitions, no suppressed ones, of many the first; valid while settled */
  size_t n_visible;
  size_t n_by_severity[NXC_SEVERITY_ERROR + 1]; /* the rest of the many included */
  entry **suppressed;
  size_t n_suppressed;
  const char **allowed; /* ids */
  size_t n_allowed;
  bool settled;
  bool warnings_are_errors;
  bool unjudged;
};

nxc_sink *nxc_sink_new(nxc_arena *arena) {
  nxc_sink *sink = nxc_arena_alloc(arena, sizeof *sink);
  sink->arena = arena;
  return sink;
}

void nxc_sink_report(nxc_sink *sink, const nxc_finding *finding) {
  nxc_arena *arena = sink->arena;
  entry *kept = nxc_arena_alloc(arena, sizeof *kept);
  kept->finding = *finding;
  kept->finding.id = nxc_characters_shown(arena, finding->id);
  kept->finding.message = nxc_characters_shown(arena, finding->message);
  kept->finding.label = nxc_characters_shown(arena, finding->label);
  kept->finding.fix = nxc_characters_shown(arena, finding->fix);
  kept->finding.about = finding->about ? nxc_arena_strdup(arena, finding->about) : NULL;
  kept->finding.repair = nxc_repair_copy(arena, &finding->repair);
  nxc_remark *remarks = nxc_arena_array(arena, finding->n_remarks + 1, sizeof *remarks);
  for (size_t i = 0; i < finding->n_remarks; i++) {
    remarks[i] = (nxc_remark){finding->remarks[i].at, nxc_characters_shown(arena, finding->remarks[i].text)};
  }
  kept->finding.remarks = remarks;
  kept->sequence = sink->n_entries;
  sink->entries = nxc_arena_grow(arena, sink->entries, sink->n_entries, sizeof *sink->entries);
  sink->entries[sink->n_entries++] = kept;
  sink->settled = false;
}

void nxc_report(nxc_sink *sink, const char *id, nxc_severity severity, nxc_span at, const char *fix,
                const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = nxc_arena_vprintf(sink->arena, format, args);
  va_end(args);
  nxc_sink_report(sink,
                  &(nxc_finding){.id = id, .severity = severity, .message = message, .at = at, .fix = fix});
}

void nxc_report_repair(nxc_sink *sink, const char *id, nxc_severity severity, nxc_span at, const char *fix,
                       nxc_repair repair, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = nxc_arena_vprintf(sink->arena, format, args);
  va_end(args);
  nxc_sink_report(sink, &(nxc_finding){.id = id,
                                       .severity = severity,
                                       .message = message,
                                       .at = at,
                                       .fix = fix,
                                       .repair = repair});
}

void nxc_sink_withdraw(nxc_sink *sink, const char *id, const char *path) {
  size_t n_kept = 0, n_path = strlen(path);
  for (size_t i = 0; i < sink->n_entries; i++) {
    const nxc_finding *finding = &sink->entries[i]->finding;
    bool same = finding->about != NULL && strcmp(finding->id, id) == 0 &&
                strncmp(finding->about, path, n_path) == 0 &&
                (finding->about[n_path] == '\0' || finding->about[n_path] == '.');
    if (!same) sink->entries[n_kept++] = sink->entries[i];
  }
  sink->n_entries = n_kept;
  sink->settled = false;
}

void nxc_sink_drop_notes(nxc_sink *sink, const char *but) {
  size_t n_kept = 0;
  for (size_t i = 0; i < sink->n_entries; i++) {
    const nxc_finding *finding = &sink->entries[i]->finding;
    bool kept = finding->severity > NXC_SEVERITY_NOTE || strncmp(finding->id, but, strlen(but)) == 0;
    if (kept) sink->entries[n_kept++] = sink->entries[i];
  }
  sink->n_entries = n_kept;
  sink->settled = false;
}

void nxc_sink_warnings_are_errors(nxc_sink *sink) {
  sink->warnings_are_errors = true;
  sink->settled = false;
}

/* -- suppression ----------------------------------------------------------------------------------------- */

/* Whether it can be allowed. What could not be read stays an error: ids up to NX12xx are the text's own. */
static bool may_be_allowed(const nxc_sink *sink, const nxc_finding *finding) {
  if (finding->severity != NXC_SEVERITY_ERROR) return true;
  return !sink->unjudged && (strncmp(finding->id, "NX13", 4) >= 0 || strncmp(finding->id, "NX", 2) != 0);
}

void nxc_sink_unjudged(nxc_sink *sink) {
  sink->unjudged = true;
  sink->settled = false;
}

static bool is_suppressed(const nxc_sink *sink, const entry *reported) {
  const nxc_finding *finding = &reported->finding;
  if (finding->firm || !may_be_allowed(sink, finding)) return false;
  for (size_t i = 0; i < sink->n_allowed; i++)
    if (strcmp(sink->allowed[i], finding->id) == 0) return true;
  nxc_allow allow;
  return reported->commented && nxc_allow_find(sink->arena, finding, &allow);
}

void nxc_sink_allow(nxc_sink *sink, const char *id) {
  sink->allowed = nxc_arena_grow(sink->arena, sink->allowed, sink->n_allowed, sizeof *sink->allowed);
  sink->allowed[sink->n_allowed++] = nxc_arena_strdup(sink->arena, id);
  sink->settled = false;
}

/* -- order ----------------------------------------------------------------------------------------------- */

static int compare_numbers(size_t a, size_t b) {
  return (a > b) - (a < b);
}

static int compare_entries(const void *left, const void *right) {
  const entry *a = *(const entry *const *)left, *b = *(const entry *const *)right;
  int order = compare_numbers(a->n_source, b->n_source);
  if (order == 0) order = compare_numbers(a->finding.at.line, b->finding.at.line);
  if (order == 0) order = compare_numbers(a->finding.at.column, b->finding.at.column);
  if (order == 0) order = strcmp(a->finding.id, b->finding.id);
  return order ? order : compare_numbers(a->sequence, b->sequence);
}

static bool same_finding(const entry *a, const entry *b) {
  return a->n_source == b->n_source && a->finding.at.line == b->finding.at.line &&
         a->finding.at.column == b->finding.at.column && strcmp(a->finding.id, b->finding.id) == 0 &&
         strcmp(a->finding.message, b->finding.message) == 0;
}

static void number_sources(nxc_sink *sink) {
  struct numbered {
    const nxc_source *source;
    bool commented;
  } *known = NULL;
  size_t n_known = 0;
  for (size_t i = 0; i < sink->n_entries; i++) {
    entry *reported = sink->entries[i];
    const nxc_source *source = reported->finding.at.source;
    reported->n_source = SIZE_MAX;
    reported->commented = false;
    if (source == NULL) continue;
    size_t n = 0;
    while (n < n_known && known[n].source != source) n++;
    if (n == n_known) {
      known = nxc_arena_grow(sink->arena, known, n_known, sizeof *known);
      known[n_known++] = (struct numbered){source, nxc_allow_stands_in(source)};
    }
    reported->n_source = n;
    reported->commented = known[n].commented;
  }
}

static size_t sort_entries(entry **entries, size_t n_entries) {
  if (n_entries > 0) qsort(entries, n_entries, sizeof *entries, compare_entries);
  size_t n_kept = 0;
  for (size_t i = 0; i < n_entries; i++) {
    if (n_kept > 0 && same_finding(entries[n_kept - 1], entries[i])) continue;
    entries[n_kept++] = entries[i];
  }
  return n_kept;
}

/* -- many of a kind -------------------------------------------------------------------------------------- */

/* Of one id in one source so many errors, and so many warnings, are kept; one stands for the others. */
enum { ALIKE_MAX = 100 };

typedef struct kind_count {
  const entry *first; /* one of them */
  size_t n;
  entry *rest; /* stands for all from the one after ALIKE_MAX on */
} kind_count;

static kind_count *count_kind(nxc_sink *sink, kind_count **kinds, size_t *n_kinds, const entry *of) {
  for (size_t i = 0; i < *n_kinds; i++) {
    const entry *first = (*kinds)[i].first;
    if (first->n_source == of->n_source && first->finding.severity == of->finding.severity &&
        strcmp(first->finding.id, of->finding.id) == 0)
      return &(*kinds)[i];
  }
  *kinds = nxc_arena_grow(sink->arena, *kinds, *n_kinds, sizeof **kinds);
  (*kinds)[*n_kinds] = (kind_count){.first = of};
  return &(*kinds)[(*n_kinds)++];
}

static entry *stand_for_rest(nxc_sink *sink, const entry *first) {
  entry *rest = nxc_arena_alloc(sink->arena, sizeof *rest);
  *rest = *first;
  rest->finding =
      (nxc_finding){.id = first->finding.id, .severity = first->finding.severity, .at = first->finding.at};
  return rest;
}

/* Notes are as many as the options that the file gives, and stay. */
static void keep_first_of_many(nxc_sink *sink) {
  kind_count *kinds = NULL;
  size_t n_kinds = 0, n_kept = 0;
  for (size_t i = 0; i < sink->n_visible; i++) {
    entry *at = sink->visible[i];
    sink->n_by_severity[at->finding.severity]++;
    kind_count *kind =
        at->finding.severity > NXC_SEVERITY_NOTE ? count_kind(sink, &kinds, &n_kinds, at) : NULL;
    if (kind != NULL && ++kind->n > ALIKE_MAX) {
      if (kind->n > ALIKE_MAX + 1) continue;
      at = kind->rest = stand_for_rest(sink, at);
    }
    sink->visible[n_kept++] = at;
  }
  sink->n_visible = n_kept;
  for (size_t i = 0; i < n_kinds; i++) {
    size_t n_rest = kinds[i].n - ALIKE_MAX;
    if (kinds[i].rest == NULL) continue;
    kinds[i].rest->finding.message =
        nxc_arena_printf(sink->arena, "%zu more finding%s of this kind in this file %s not shown", n_rest,
                         n_rest == 1 ? "" : "s", n_rest == 1 ? "is" : "are");
  }
}

static void settle(nxc_sink *sink) {
  if (sink->settled) return;
  number_sources(sink);
  sink->visible = nxc_arena_array(sink->arena, sink->n_entries + 1, sizeof *sink->visible);
  sink->suppressed = nxc_arena_array(sink->arena, sink->n_entries + 1, sizeof *sink->suppressed);
  sink->n_visible = sink->n_suppressed = 0;
  memset(sink->n_by_severity, 0, sizeof sink->n_by_severity);
  for (size_t i = 0; i < sink->n_entries; i++) {
    nxc_finding *finding = &sink->entries[i]->finding;
    bool hidden = is_suppressed(sink, sink->entries[i]);
    if (!hidden && sink->warnings_are_errors && finding->severity == NXC_SEVERITY_WARNING)
      finding->severity = NXC_SEVERITY_ERROR;
    if (hidden) sink->suppressed[sink->n_suppressed++] = sink->entries[i];
    else sink->visible[sink->n_visible++] = sink->entries[i];
  }
  sink->n_visible = sort_entries(sink->visible, sink->n_visible);
  sink->n_suppressed = sort_entries(sink->suppressed, sink->n_suppressed);
  keep_first_of_many(sink);
  sink->settled = true;
}

void nxc_sink_take(nxc_sink *sink, const nxc_sink *from) {
  for (size_t i = 0; i < from->n_entries; i++) {
    sink->entries = nxc_arena_grow(sink->arena, sink->entries, sink->n_entries, sizeof *sink->entries);
    from->entries[i]->sequence = sink->n_entries;
    sink->entries[sink->n_entries++] = from->entries[i];
  }
  sink->settled = false;
}

void nxc_sink_copy(nxc_sink *sink, const nxc_sink *from) {
  for (size_t i = 0; i < from->n_entries; i++) nxc_sink_report(sink, &from->entries[i]->finding);
}

nxc_arena *nxc_sink_arena(const nxc_sink *sink) {
  return sink->arena;
}

size_t nxc_sink_n_suppressed(const nxc_sink *sink) {
  settle((nxc_sink *)(uintptr_t)sink);
  return sink->n_suppressed;
}

const nxc_finding *nxc_sink_suppressed(const nxc_sink *sink, size_t index) {
  return index < nxc_sink_n_suppressed(sink) ? &sink->suppressed[index]->finding : NULL;
}

size_t nxc_sink_n_findings(const nxc_sink *sink) {
  settle((nxc_sink *)(uintptr_t)sink);
  return sink->n_visible;
}

const nxc_finding *nxc_sink_finding(const nxc_sink *sink, size_t index) {
  return index < nxc_sink_n_findings(sink) ? &sink->visible[index]->finding : NULL;
}

size_t nxc_sink_count(const nxc_sink *sink, nxc_severity severity) {
  settle((nxc_sink *)(uintptr_t)sink);
  return sink->n_by_severity[severity];
}

const char *nxc_severity_name(nxc_severity severity) {
  static const char *const names[] = {
      [NXC_SEVERITY_NOTE] = "note", [NXC_SEVERITY_WARNING] = "warning", [NXC_SEVERITY_ERROR] = "error"};
  return names[severity];
}
