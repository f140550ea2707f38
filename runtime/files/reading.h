/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread that trains reads now, for one that watches it (runtime/world/reading_watch.h): who touches
 * a mapped file on a disk that stands still waits in the kernel, where no signal reaches it. */
#ifndef NXR_READING_H
#define NXR_READING_H

#include <stdint.h>

/* Begins with a file, by its name (which stays until the end) or by a place in its mapping; or ends. Readings
 * do not lie in each other, and one thread has them. */
void nxr_reading_begin(const char *path, const void *at);
void nxr_reading_end(void);

/* Changes with each beginning and end; odd while something is read. */
uint64_t nxr_reading_count(void);
/* Its name; NULL, and the place in a mapping, where it began with that. */
const char *nxr_reading_path(const void **at);

#endif
