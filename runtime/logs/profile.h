/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank did in some steps: every operator, transfer and wait, on one clock.
 *
 * Written to DIR/profile/steps-A-B.json in the Trace Event Format, which chrome://tracing and ui.perfetto.dev
 * open: a process for each rank, complete events with microseconds since the first step that was recorded.
 * Rank 0 prints a table of its own time by kind of operator, with the operations and bytes a second that the
 * plan's counts make of it. Where the backend has times of its device, a rank has a thread for the host, one
 * for kernels and one for each direction of copies; nothing is waited for, and what overlaps is seen. Other
 * backends are waited for after each operator. Recording allocates nothing; where nothing is recorded it
 * costs a comparison for each operator. */
#ifndef NXR_PROFILE_H
#define NXR_PROFILE_H

#include "kernels/backend.h"
#include "runtime/world/world.h"

/* Who worked: the host, or a queue of the device. */
typedef enum nxr_lane {
  NXR_LANE_HOST,
  NXR_LANE_QUEUES,
  NXR_N_LANES = NXR_LANE_QUEUES + NXK_N_QUEUES
} nxr_lane;

typedef struct nxr_profile_event {
  double begin_s, end_s;
  uint32_t item; /* of the plan; NX_NONE: of a copy */
  uint32_t op;   /* operator of the plan; NX_NONE: the item is a transfer; of a copy: what it is for, an
                  * operator, or their number + an item */
  uint32_t lane;
  uint64_t n_bytes; /* of a copy */
} nxr_profile_event;

typedef struct nxr_profile {
  const nx_plan *plan;
  nxr_world *world;
  const nxk_backend *backend; /* whose device has times; NULL: it has none */
  nxk_device *device;
  uint64_t first, last; /* steps, from 1; 0: nothing is recorded */
  bool recording;       /* now, and on this rank */
  bool taken;           /* this rank is one that is recorded */
  uint64_t n, room;
  nxr_profile_event *events;
  nxk_span *spans; /* room for those of a step */
  double offset_s; /* added to this host's clock it is rank 0's */
} nxr_profile;

/* Makes room for steps first … last; `ranks` are numbers with commas, "": all. Meets all ranks. */
bool nxr_profile_open(nxr_profile *profile, const nx_plan *plan, nxr_world *world, uint64_t first,
                      uint64_t last, const char *ranks, nxr_fault *fault);
/* Times of kernels and copies are those of the device, where its backend has them. */
bool nxr_profile_device(nxr_profile *profile, const nxk_backend *backend, nxk_device *device,
                        nxr_fault *fault);
void nxr_profile_close(nxr_profile *profile);
/* Before step `step`, from 1. */
void nxr_profile_step(nxr_profile *profile, uint64_t step);
/* Of the host, from begin_s to now. */
void nxr_profile_add(nxr_profile *profile, uint32_t item, uint32_t op, double begin_s);
/* A kernel that is enqueued next: the device says when it ran. */
void nxr_profile_enqueue(nxr_profile *profile, uint32_t item, uint32_t op);
/* At the end of a step that is recorded: what the device says. */
void nxr_profile_collect(nxr_profile *profile);
/* Behind the last step: all ranks write, in turn. Meets them. */
bool nxr_profile_write(nxr_profile *profile, const char *directory, nxr_fault *fault);

/* Of an event. profile_table.c: rank 0's table. */
bool nxr_profile_is_copy(const nxr_profile_event *event);
const char *nxr_profile_name(const nx_plan *plan, const nxr_profile_event *event);
void nxr_profile_print(const nxr_profile *profile);

#endif
