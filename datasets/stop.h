/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask for an end: work stops at the next good place, cleans up, and dies of the signal. */
#ifndef NXD_STOP_H
#define NXD_STOP_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP ask; asked twice, they end at once. */
void nxd_stop_guard(void);
bool nxd_stopped(void);
/* Where one asked: the process ends as it would have. */
void nxd_stop_die(void);

#endif
