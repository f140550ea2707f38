/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs of many findings made together, file by file, in memory.
 *
 * Findings of one pass are gathered; nxc_fixes_apply makes what was gathered, and from then on the files are
 * read as they would be (nxc_source_lay_over), so that the next pass finds what is left, and what a repair
 * has uncovered. After some passes nothing more is gathered. The files themselves are as they were: whoever
 * asks writes them. */
#ifndef NXC_EDIT_FIXES_H
#define NXC_EDIT_FIXES_H

#include "compiler/diagnostics/diagnostics.h"

typedef struct nxc_fixed_file {
  const char *path;            /* absolute, without links; "-": standard input */
  const char *name;            /* as it was given */
  const char *original, *text; /* with its byte-order mark */
  size_t n_original, n_bytes;
  nxc_edit_list edits; /* of this pass, in the source below */
  const nxc_source *source;
  struct nxc_earlier_text *earlier; /* the texts before */
  bool returns;                     /* repairs lead to and fro: it stays as it is */
} nxc_fixed_file;

typedef struct nxc_fixed_id {
  const char *id;
  size_t n_fixed;
} nxc_fixed_id;

typedef struct nxc_fixes nxc_fixes;

/* With unsafe repairs, or safe ones alone. */
nxc_fixes *nxc_fixes_new(nxc_arena *arena, bool unsafe);
/* Takes the repairs of errors and warnings, and of notes where they are asked for. Of two that overlap the
 * first is taken, and the other waits for the next pass. */
void nxc_fixes_gather(nxc_fixes *fixes, const nxc_sink *sink, bool notes);
/* False where nothing was gathered since the last time. */
bool nxc_fixes_apply(nxc_fixes *fixes);
/* The files, each once, in the order in which their first repair came; those that are as they were included.
 */
size_t nxc_fixes_n_files(const nxc_fixes *fixes);
const nxc_fixed_file *nxc_fixes_file(const nxc_fixes *fixes, size_t index);
/* What was repaired: "3 fixed (NX1301 2, NX1510)"; "" where nothing was. */
const char *nxc_fixes_show(const nxc_fixes *fixes);
/* How many of a sink's findings have a repair: safe ones, and others. */
void nxc_fixes_count(const nxc_sink *sink, bool notes, size_t *n_safe, size_t *n_unsafe);

#endif
