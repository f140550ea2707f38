/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/pause.h"

#include "runtime/world/clock.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

enum { YIELDS_PER_LOOK = 16, LONGEST_NAP_US = 500, SPINS_PER_CLOCK = 64 };

/* The longer it has waited, the less a longer nap adds. */
static void nap(nxr_pause *pause) {
  uint64_t nap_us = (uint64_t)pause->nap_us * (1 + pause->naps++ / 2);
  struct timespec time = {.tv_nsec = 1000L * (long)(nap_us < LONGEST_NAP_US ? nap_us : LONGEST_NAP_US)};
  nanosleep(&time, NULL);
}

/* A yield that lets another run counts as an involuntary switch; one that finds nobody counts as none. */
static void look_who_ran(nxr_pause *pause, uint32_t n_yields) {
  struct rusage usage;
  if (n_yields % YIELDS_PER_LOOK != 0 || getrusage(RUSAGE_THREAD, &usage) != 0) return;
  pause->shared = n_yields > 0 && usage.ru_nivcsw - pause->switched >= YIELDS_PER_LOOK / 2;
  pause->switched = usage.ru_nivcsw;
}

/* Whether it goes on spinning. */
static bool spins(nxr_pause *pause) {
  if (pause->crowded || pause->spin_s == 0 || pause->spins > 0) return false;
  if (pause->polls % SPINS_PER_CLOCK != 0) return true;
  double now_s = nxr_clock_s();
  if (pause->began_s == 0) pause->began_s = now_s;
  if (now_s - pause->began_s < pause->spin_s) return true;
  pause->spins = pause->polls - 1;
  return false;
}

void nxr_pause_anew(nxr_pause *pause) {
  pause->naps = pause->spins = 0;
  pause->began_s = 0;
}

void nxr_pause_once(nxr_pause *pause) {
  pause->polls++;
  if (spins(pause)) return;
  uint32_t n_yields = pause->polls - 1 - pause->spins;
  bool tired = n_yields >= (pause->crowded ? YIELDS_PER_LOOK : pause->yields);
  if (!tired && !pause->shared && !pause->crowded) look_who_ran(pause, n_yields);
  if (tired || pause->shared) nap(pause);
  else sched_yield();
}
