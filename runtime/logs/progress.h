/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, for who looks from outside: DIR/status.json, which `nxrun status DIR` reads, always; and
 * DIR/progress.txt, a line for each event, where the plan asks for it. Rank 0 writes both; where that fails
 * the training goes on without. */
#ifndef NXR_PROGRESS_H
#define NXR_PROGRESS_H

#include "runtime/world/world.h"

/* What changes. */
typedef struct nxr_progress_state {
  uint64_t step;  /* steps behind the run */
  uint64_t saved; /* the newest checkpoint that is whole; 0: none yet */
  double loss;
  const char *phase; /* "training", "saving", "evaluating", "done", "stopped", "failed" */
} nxr_progress_state;

typedef struct nxr_progress {
  const char *directory; /* NULL: nothing is written */
  const nx_plan *plan;
  const nxr_world *world;
  bool logs;         /* progress.txt too */
  double written_s;  /* the clock when the status was written last, */
  double begun_s;    /* and when the first step began */
  uint64_t begun_at; /* its number, from 0 */
  nxr_progress_state state; /* that was written last */
} nxr_progress;

/* Once a second at most, unless `now`. */
void nxr_progress_write(nxr_progress *progress, const nxr_progress_state *state, bool now);
/* Writes the same once more, and what the run waits for. */
void nxr_progress_waits(nxr_progress *progress, const char *wait);
/* Adds an event with the tokens and operations so far. */
void nxr_progress_log(const nxr_progress *progress, const nxr_progress_state *state, const char *event);

/* Prints what the folder says of its run; the exit status. */
int nxr_status_print(const char *directory);

#endif
