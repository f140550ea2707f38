/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/allow.h"

#include <string.h>

/* The first suppressed finding of a source from this line on, at or after `index`. */
static size_t skip_to_line(const nxc_sink *sink, size_t index, const nxc_source *source, uint32_t line) {
  size_t n_suppressed = nxc_sink_n_suppressed(sink);
  for (; index < n_suppressed; index++) {
    const nxc_span at = nxc_sink_suppressed(sink, index)->at;
    if (at.source == source && at.line >= line) break;
  }
  return index;
}

/* Whether one of the suppressed findings, of which `first` is the first in the comment's line or behind it,
 * is so for its sake. */
static bool allows_something(const nxc_sink *sink, size_t first, const nxc_allow *allow, const char *id) {
  uint32_t last_line = allow->at.line + allow->alone;
  for (size_t i = first; i < nxc_sink_n_suppressed(sink); i++) {
    const nxc_finding *finding = nxc_sink_suppressed(sink, i);
    if (finding->at.source != allow->at.source || finding->at.line > last_line) return false;
    if (strcmp(finding->id, id) == 0) return true;
  }
  return false;
}

/* The comment goes, with its line where it stands alone; of several ids, of which another is in use, this
 * one. */
static nxc_repair without(nxc_arena *arena, const nxc_source *source, const nxc_allow *unused,
                          const char *id) {
  if (unused->n_ids < unused->n_given) {
    nxc_repair word = nxc_repair_word(arena, unused->at, id, "", true);
    if (word.n_edits == 0) return word;
    size_t begin = word.edits->begin, end = word.edits->end;
    end += strspn(source->text + end, ", ");
    return nxc_repair_removes(arena, source, begin, end, true);
  }
  uint32_t line = unused->at.line;
  size_t begin = nxc_span_offset(unused->at, false), end = nxc_span_offset(unused->at, true);
  if (unused->alone)
    return nxc_repair_removes(arena, source, source->line_start[line - 1], source->line_start[line], true);
  while (begin > 0 && (source->text[begin - 1] == ' ' || source->text[begin - 1] == '\t')) begin--;
  return nxc_repair_removes(arena, source, begin, end, true);
}

void nxc_allow_report_unused(nxc_sink *sink, const nxc_source *source,
                             bool (*excused)(const void *context, const char *id), const void *context) {
  if (!nxc_allow_stands_in(source)) return;
  nxc_arena *arena = nxc_sink_arena(sink);
  nxc_allow *unused = NULL;
  size_t n_unused = 0, behind = 0;
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    nxc_allow allow, left;
    if (!nxc_allow_read(arena, source, line, &allow)) continue;
    left = allow;
    left.n_given = allow.n_ids;
    left.n_ids = 0;
    behind = skip_to_line(sink, behind, source, line);
    for (size_t i = 0; i < allow.n_ids; i++)
      if (!excused(context, allow.ids[i]) && !allows_something(sink, behind, &allow, allow.ids[i]))
        left.ids[left.n_ids++] = allow.ids[i];
    if (left.n_ids == 0) continue;
    unused = nxc_arena_grow(arena, unused, n_unused, sizeof *unused);
    unused[n_unused++] = left;
  }
  for (size_t i = 0; i < n_unused; i++) {
    for (size_t j = 0; j < unused[i].n_ids; j++) {
      const char *id = unused[i].ids[j];
      nxc_report_repair(sink, "NX1510", NXC_SEVERITY_WARNING, unused[i].at, "remove it",
                        without(arena, source, &unused[i], id),
                        "this comment allows %s, which is not found here", id);
    }
  }
}
