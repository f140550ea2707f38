/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NX_BENCH_CLOCK_H
#define NX_BENCH_CLOCK_H

#include <time.h>

static inline double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

#endif
