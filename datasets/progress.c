/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/progress.h"

#include <stdio.h>
#include <time.h>

static const double INTERVAL = 0.2;

static double now(void) {
  struct timespec is;
  clock_gettime(CLOCK_MONOTONIC, &is);
  return (double)is.tv_sec + 1e-9 * (double)is.tv_nsec;
}

void nxd_progress_begin(nxd_progress *progress, bool watched, uint64_t n_bytes) {
  *progress = (nxd_progress){.watched = watched, .n_bytes = n_bytes};
  progress->start = progress->last = now();
}

static void show_rest(double seconds) {
  if (seconds >= 3600)
    fprintf(stderr, ", %d h %02d min left", (int)(seconds / 3600), (int)(seconds / 60) % 60);
  else if (seconds >= 60) fprintf(stderr, ", %d min %02d s left", (int)seconds / 60, (int)seconds % 60);
  else fprintf(stderr, ", %.0f s left", seconds);
}

void nxd_progress_show(nxd_progress *progress, uint64_t n_read, uint64_t n_documents) {
  if (!progress->watched) return;
  if (!progress->begun) progress->begun = true, progress->first = n_read;
  double at = now(), seconds = at - progress->start;
  if (at - progress->last < INTERVAL) return;
  progress->last = at;
  double speed = (double)(n_read - progress->first) / seconds;
  fputs("\r\033[K", stderr);
  if (progress->n_bytes > 0 && n_read <= progress->n_bytes)
    fprintf(stderr, "%3.0f %%  ", 100.0 * (double)n_read / (double)progress->n_bytes);
  fprintf(stderr, "%llu documents, %.1f MB/s", (unsigned long long)n_documents, speed / 1e6);
  if (progress->n_bytes > n_read && speed > 0) show_rest((double)(progress->n_bytes - n_read) / speed);
  fflush(stderr);
  progress->shown = true;
}

void nxd_progress_end(nxd_progress *progress) {
  if (!progress->shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
}
