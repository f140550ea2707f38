/* SPDX-License-Identifier: Apache-2.0 */
/* A line on the terminal that says how far a long command has come. */
#ifndef NXD_PROGRESS_H
#define NXD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct nxd_progress {
  bool watched, shown;
  uint64_t n_bytes; /* to be read; 0: not known */
  uint64_t first;   /* read before this command began */
  bool begun;
  double start, last; /* seconds */
} nxd_progress;

void nxd_progress_begin(nxd_progress *progress, bool watched, uint64_t n_bytes);
/* Shows it, where the last time is a while ago. */
void nxd_progress_show(nxd_progress *progress, uint64_t n_read, uint64_t n_documents);
/* Leaves the line as it was. */
void nxd_progress_end(nxd_progress *progress);

#endif
