/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank did in some steps: every operator, transfer and wait, on one clock.
 *
 * Written to DIR/profile/steps-A-B.json in the Trace Event Format, which chrome://tracing and ui.perfetto.dev
 * open: a process for each rank, complete events with microseconds since the first step that was recorded.
 * Rank 0 prints a table of its own time by kind of operator. Backends that only enqueue are waited for after
 * each operator, so that its time is its own: what they would overlap is not shown. Recording allocates
 * nothing; where nothing is recorded it costs a comparison for each operator. */
#ifndef NXR_PROFILE_H
#define NXR_PROFILE_H

#include "runtime/world/world.h"

typedef struct nxr_profile_event {
  double begin_s, end_s;
  uint32_t item; /* of the plan */
  uint32_t op;   /* operator of the plan; NX_NONE: the item is a transfer */
} nxr_profile_event;

typedef struct nxr_profile {
  const nx_plan *plan;
  nxr_world *world;
  uint64_t first, last; /* steps, from 1; 0: nothing is recorded */
  bool recording;       /* now, and on this rank */
  bool taken;           /* this rank is one that is recorded */
  uint64_t n, room;
  nxr_profile_event *events;
  double offset_s; /* added to this host's clock it is rank 0's */
} nxr_profile;

/* Makes room for steps first … last; `ranks` are numbers with commas, "": all. Meets all ranks. */
bool nxr_profile_open(nxr_profile *profile, const nx_plan *plan, nxr_world *world, uint64_t first,
                      uint64_t last, const char *ranks, nxr_fault *fault);
void nxr_profile_close(nxr_profile *profile);
/* Before step `step`, from 1. */
void nxr_profile_step(nxr_profile *profile, uint64_t step);
void nxr_profile_add(nxr_profile *profile, uint32_t item, uint32_t op, double begin_s);
/* Behind the last step: all ranks write, in turn. Meets them. */
bool nxr_profile_write(nxr_profile *profile, const char *directory, nxr_fault *fault);

#endif
