/* SPDX-License-Identifier: Apache-2.0 */
/* What many verdicts come to: files, findings of each kind, what can be repaired. */
#ifndef NXC_COMMANDS_TALLY_H
#define NXC_COMMANDS_TALLY_H

#include "compiler/commands/judged.h"

typedef struct nxc_tally_kind {
  const char *id;
  nxc_severity severity;
  size_t n_findings;
} nxc_tally_kind;

typedef struct nxc_tally {
  nxc_arena *arena;
  bool notes; /* they count as repairable too */
  size_t n_files, n_wrong, n_foreign; /* foreign: below folders, and no training's */
  size_t n_errors, n_warnings, n_safe, n_unsafe;
  nxc_tally_kind *kinds;
  size_t n_kinds;
} nxc_tally;

void nxc_tally_add(nxc_tally *tally, const nxc_judged *judged);
/* Of several files how many are wrong; then what --fix would mend. */
void nxc_tally_print(const nxc_tally *tally);
/* A line for each kind of finding, the most frequent first. */
void nxc_tally_print_statistics(const nxc_tally *tally);

#endif
