/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs of findings as data: which bytes of which text become what.
 *
 * A repair is whole or nothing: one or more edits that do not overlap. It is safe where the file then says
 * what it plainly meant (a misspelling with one candidate, a number written as the file's system reads it);
 * any other is somebody's to decide. The same repairs stand in SARIF, in JSON and in the language server, and
 * `validate --fix` makes them. Only texts that were read from files, or from standard input, are edited. */
#ifndef NXC_EDIT_H
#define NXC_EDIT_H

#include "compiler/diagnostics/source.h"

typedef struct nxc_edit {
  const nxc_source *source;
  size_t begin, end; /* bytes of the source's text */
  const char *text;  /* what stands there then */
} nxc_edit;

typedef struct nxc_repair {
  const nxc_edit *edits;
  size_t n_edits; /* 0: nothing is known that would mend it */
  bool safe;
} nxc_repair;

/* One edit: the span becomes the text. None where the span stands in no text that can be edited. */
nxc_repair nxc_repair_span(nxc_arena *arena, nxc_span at, const char *text, bool safe);
/* One edit: the word inside the span, or behind the -- that it begins with, becomes another. None where the
 * word is not there exactly once. */
nxc_repair nxc_repair_word(nxc_arena *arena, nxc_span at, const char *word, const char *text, bool safe);
/* One edit that takes bytes away. */
nxc_repair nxc_repair_removes(nxc_arena *arena, const nxc_source *source, size_t begin, size_t end,
                              bool safe);
/* A copy in the arena; none where one of its edits cannot be made. */
nxc_repair nxc_repair_copy(nxc_arena *arena, const nxc_repair *repair);

/* Edits of one source, chosen so far: sorted, none overlaps. */
typedef struct nxc_edit_list {
  nxc_edit *items;
  size_t n_items;
} nxc_edit_list;

/* Takes those edits of the repair that are of this source; false, and nothing is taken, where one overlaps
 * what is there. An edit that is there already counts as taken. */
bool nxc_edits_take(nxc_arena *arena, nxc_edit_list *list, const nxc_source *source,
                    const nxc_repair *repair);
/* The source's text with the edits made. */
char *nxc_edits_apply(nxc_arena *arena, const nxc_source *source, const nxc_edit_list *list, size_t *n_bytes);

#endif
