/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on calls that block and cannot be asked whether they are done: MPI's start, its windows, its end.
 *
 * One watch at a time. When its time is over a signal (SIGALRM) interrupts the call, the text is printed, and
 * this process ends; the launcher then ends the others. No thread is involved. */
#ifndef NXR_WATCH_H
#define NXR_WATCH_H

/* The text is a line without its end. */
void nxr_watch_begin(double seconds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nxr_watch_end(void);

#endif
