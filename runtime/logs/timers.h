/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of steps goes, on each rank: what is read, computed, updated and waited for; and, where the
 * plan asks for it, which kinds of operators it is. Between two lines of progress it is summed up, and rank 0
 * reports it for all ranks: as the plan says over them, and the fastest and slowest by what they compute. */
#ifndef NXR_TIMERS_H
#define NXR_TIMERS_H

#include "runtime/logs/events_file.h"
#include "runtime/world/clock.h"
#include "runtime/world/world.h"

typedef enum nxr_timer {
  NXR_TIMER_DATA,
  NXR_TIMER_PASSES, /* forward and backward, without the waiting in them; so is the update */
  NXR_TIMER_UPDATE,
  NXR_TIMER_WAIT,
  NXR_TIMER_SAVE, /* what a checkpoint holds the step up */
  NXR_N_TIMERS
} nxr_timer;

typedef struct nxr_timers {
  bool used;
  bool by_operator;
  double spent_s[NXR_N_TIMERS];
  double operators_s[NX_OP_END];
  uint64_t n_steps; /* since the last report */
  double *of_ranks; /* one number of each, while it is reported */
} nxr_timers;

bool nxr_timers_open(nxr_timers *timers, const nx_run_names *names, uint32_t n_ranks, nxr_fault *fault);
void nxr_timers_close(nxr_timers *timers);

/* Seconds for nxr_timers_add; 0 where nothing is timed. */
static inline double nxr_timers_now(const nxr_timers *timers) {
  return timers && timers->used ? nxr_clock_s() : 0;
}
static inline void nxr_timers_add(nxr_timers *timers, nxr_timer timer, double since_s) {
  if (timers && timers->used) timers->spent_s[timer] += nxr_clock_s() - since_s;
}

/* Reports and begins anew; meets all ranks where anything is timed. TensorBoard's file is rank 0's, NULL:
 * none. */
void nxr_timers_report(nxr_timers *timers, nxr_world *world, const nx_run_names *names, uint64_t step,
                       nxr_events_file *events);

#endif
