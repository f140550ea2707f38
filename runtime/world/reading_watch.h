/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that ends the run where this rank reads one and the same piece of a file for too long, and says
 * which: for three quarters of the deadline, so that it speaks before the others give up on this rank. */
#ifndef NXR_READING_WATCH_H
#define NXR_READING_WATCH_H

#include "runtime/world/world.h"

/* Of the thread that calls it. One at a time; where no thread can be had there is none. */
void nxr_reading_watch_begin(const nxr_world *world);
void nxr_reading_watch_end(void);

#endif
