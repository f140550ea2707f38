/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts on a sweep's runs, as one table or as JSON. */
#ifndef NXC_COMMANDS_SWEEP_PRINT_H
#define NXC_COMMANDS_SWEEP_PRINT_H

#include "compiler/commands/estimate.h"
#include "compiler/commands/sweep.h"

/* What is kept of a run when its judgement is gone. */
typedef struct nxc_swept {
  nxc_sink *sink;
  size_t n_errors, n_warnings;
  bool unreadable; /* a file could not be opened */
  const char *mesh, *batches;
  nxc_column column;       /* of who would run it */
  const char *fingerprint; /* what its training depends on; NULL where nothing is known */
  size_t same_as;          /* an earlier run, counted from 1, that trains the same; 0: none */
} nxc_swept;

typedef struct nxc_sweep_report {
  nxc_arena *arena;
  const nxc_sweep *sweep;
  const nxc_swept *all;
  bool notes;
} nxc_sweep_report;

/* The table, and below it what was found, each finding once with the runs that have it. */
void nxc_sweep_print(const nxc_sweep_report *report, FILE *out);
void nxc_sweep_print_json(const nxc_sweep_report *report, FILE *out);

#endif
