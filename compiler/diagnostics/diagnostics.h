/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: what is wrong, where, why, and what to do about it.
 *
 * A finding is data. Passes report findings to a sink and go on; the sink keeps them in order of file and
 * line and renders them at the end as text (source line, caret, notes, fix), short lines, JSON, SARIF, or the
 * annotations of GitHub and GitLab.
 * Ids (NX1003) are permanent; each stands once, in schema/rules (rules) or in schema/diagnostics
 * (everything else), with the text that `nxcfg explain` prints. A `# nxcfg: allow NX1234 reason` comment
 * on the finding's line, or alone on the line above, suppresses it. */
#ifndef NXC_DIAGNOSTICS_H
#define NXC_DIAGNOSTICS_H

#include "compiler/arena.h"
#include "compiler/diagnostics/edit.h"
#include "compiler/diagnostics/source.h"

#include <stdio.h>

typedef enum nxc_severity { NXC_SEVERITY_NOTE, NXC_SEVERITY_WARNING, NXC_SEVERITY_ERROR } nxc_severity;
typedef enum nxc_format {
  NXC_FORMAT_TEXT,
  NXC_FORMAT_SHORT,
  NXC_FORMAT_JSON,
  NXC_FORMAT_GITHUB,
  NXC_FORMAT_SARIF,
  NXC_FORMAT_GITLAB,
  NXC_FORMAT_JUNIT
} nxc_format;

/* A further fact of a finding; at.source is NULL when it stands nowhere. */
typedef struct nxc_remark {
  nxc_span at;
  const char *text;
} nxc_remark;

typedef struct nxc_finding {
  const char *id; /* "NX1003" */
  nxc_severity severity;
  const char *message; /* one sentence, no final full stop */
  nxc_span at;
  const char *label; /* beside the caret; may be NULL */
  const char *fix;   /* what to do, for people; may be NULL */
  nxc_repair repair; /* edits that mend it, for programs */
  const char *about; /* the path of a key that is missed, by which nxc_sink_withdraw finds it; may be NULL */
  const nxc_remark *remarks;
  size_t n_remarks;
  bool firm; /* no comment and no project allows it */
} nxc_finding;

const char *nxc_severity_name(nxc_severity severity); /* "error", "warning", "note" */

typedef struct nxc_sink nxc_sink;

nxc_sink *nxc_sink_new(nxc_arena *arena);
/* Copies the finding (texts too) into the sink's arena. An identical id, place and message is kept once. */
void nxc_sink_report(nxc_sink *sink, const nxc_finding *finding);
/* Shorthand for a finding without remarks. fix may be NULL. */
void nxc_report(nxc_sink *sink, const char *id, nxc_severity severity, nxc_span at, const char *fix,
                const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same with a repair. */
void nxc_report_repair(nxc_sink *sink, const char *id, nxc_severity severity, nxc_span at, const char *fix,
                       nxc_repair repair, const char *format, ...) __attribute__((format(printf, 7, 8)));
/* Takes findings with this id about this path, or a path below it, back: a better one says it. */
void nxc_sink_withdraw(nxc_sink *sink, const char *id, const char *path);
/* Takes notes away, but those whose ids begin so. */
void nxc_sink_drop_notes(nxc_sink *sink, const char *but);
/* Moves what the other sink has, in the same arena, to the end of this one. */
void nxc_sink_take(nxc_sink *sink, const nxc_sink *from);
/* Reports what the other sink was told once more, here. */
void nxc_sink_copy(nxc_sink *sink, const nxc_sink *from);
/* After suppression by comments and after `-W error`. */
size_t nxc_sink_count(const nxc_sink *sink, nxc_severity severity);
/* Those to show: of very many of one kind in one text the first hundred, and one that counts the others. */
size_t nxc_sink_n_findings(const nxc_sink *sink);
/* sorted by source, line, column, id */
const nxc_finding *nxc_sink_finding(const nxc_sink *sink, size_t index);
void nxc_sink_warnings_are_errors(nxc_sink *sink);
nxc_arena *nxc_sink_arena(const nxc_sink *sink);
/* From now on findings of this id, placed or not, are suppressed: a project's decision. */
void nxc_sink_allow(nxc_sink *sink, const char *id);
/* Reading ended early: its errors count, whatever is allowed, since nothing behind them was judged. */
void nxc_sink_unjudged(nxc_sink *sink);
/* What comments (allow.h) and the project suppressed, in the same order as the rest. */
size_t nxc_sink_n_suppressed(const nxc_sink *sink);
const nxc_finding *nxc_sink_suppressed(const nxc_sink *sink, size_t index);

typedef struct nxc_render {
  nxc_format format;
  bool colour; /* text only */
  bool notes;  /* show notes too; else they are counted by the caller in one line */
  const char *file; /* short: what findings without a place belong to; NULL: unknown */
} nxc_render;
/* Text: several lines each. Short: one line each. GitHub: ::error file=...,line=...::message lines. The other
 * formats are one document over all files: render_document.h. */
void nxc_sink_print(nxc_sink *sink, const nxc_render *render, FILE *out);

#endif
