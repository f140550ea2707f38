/* SPDX-License-Identifier: Apache-2.0 */
/* A file that says which variants of a configuration are to be judged together:
 *
 *   file: base.yaml               beside this file
 *   set: {KEY: VALUE}             for every run
 *   sweep: {KEY: [VALUE, ...]}    every combination; the last key varies fastest
 *   runs: [{KEY: VALUE, ...}]     a table of overrides; with a sweep, each row with each combination
 */
#ifndef NXC_COMMANDS_SWEEP_H
#define NXC_COMMANDS_SWEEP_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/texts.h"
#include "compiler/value.h"

typedef struct nxc_sweep_run {
  const nxc_value **values; /* one for each key of the sweep; NULL: the run does not set it */
  nxc_texts sets;           /* KEY=VALUE of this run alone */
} nxc_sweep_run;

typedef struct nxc_sweep {
  const char *file; /* of the configuration */
  nxc_texts sets;   /* of every run */
  nxc_texts keys;   /* that differ, in the order of the file */
  nxc_sweep_run *runs;
  size_t n_runs;
} nxc_sweep;

enum { NXC_SWEEP_RUNS_MAX = 10000 };

/* False where the sink says what is wrong with the file, or *unreadable, where it cannot be read. */
bool nxc_sweep_read(nxc_arena *arena, const char *path, nxc_sink *sink, nxc_sweep *sweep, bool *unreadable);

#endif
