/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds from some fixed moment; never goes back. */
#ifndef NXR_CLOCK_H
#define NXR_CLOCK_H

#include <time.h>

static inline double nxr_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
