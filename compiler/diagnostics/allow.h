/* SPDX-License-Identifier: Apache-2.0 */
/* Comments that allow findings: `# nxcfg: allow NX1234, NX1235 why`.
 *
 * A comment stands beside what it allows, or alone on the line above. Ids come first, separated by blanks or
 * commas; what follows is the reason. An id is NX and four digits, or a site's own: capital letters, then
 * three or more digits. One that allows nothing is reported (NX1510), so that none outlives its reason. */
#ifndef NXC_ALLOW_H
#define NXC_ALLOW_H

#include "compiler/diagnostics/diagnostics.h"

typedef struct nxc_allow {
  bool alone; /* nothing but the comment stands in its line */
  const char *ids[8];
  size_t n_ids;
  size_t n_given; /* of one that is not all in use: how many ids it has */
  const char *reason; /* "" where none is given */
  nxc_span at;
} nxc_allow;

/* Whether a text has any such comment: most have none. */
bool nxc_allow_stands_in(const nxc_source *source);
/* The comment of this line; false when it has none. Texts go into the arena. */
bool nxc_allow_read(nxc_arena *arena, const nxc_source *source, uint32_t line, nxc_allow *allow);
/* The comment that allows a finding: of its line, or alone above. */
bool nxc_allow_find(nxc_arena *arena, const nxc_finding *finding, nxc_allow *allow);
/* Whether a text is an id as comments name it. */
bool nxc_allow_is_id(const char *text, size_t n_bytes);

/* Reports each id of each comment of a source that allows none of the findings so far. Ids for which
 * `excused` holds are left alone: what they name could not be judged. */
void nxc_allow_report_unused(nxc_sink *sink, const nxc_source *source,
                             bool (*excused)(const void *context, const char *id), const void *context);

#endif
