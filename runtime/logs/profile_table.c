/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 prints of its profile: time by kind of operator, and how much copying lies beneath kernels. */
#include "runtime/logs/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 512 };

typedef struct total {
  const char *name;
  double seconds, flops, bytes;
  uint64_t n;
} total;

static int longest_first(const void *a, const void *b) {
  const total *x = a, *y = b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void add_event(const nx_plan *plan, const nxr_profile_event *event, total *to) {
  to->seconds += event->end_s - event->begin_s;
  to->bytes += (double)event->n_bytes;
  to->n++;
  if (event->item == NX_NONE || event->op == NX_NONE) return;
  to->flops += (double)plan->operators[event->op].flops;
  to->bytes += (double)plan->operators[event->op].moved_bytes;
}

static uint32_t add_up(const nxr_profile *profile, total totals[MOST_NAMES]) {
  uint32_t n = 0;
  for (uint64_t i = 0; i < profile->n; i++) {
    const char *name = nxr_profile_name(profile->plan, &profile->events[i]);
    uint32_t at = 0;
    while (at < n && strcmp(totals[at].name, name) != 0) at++;
    if (at == MOST_NAMES) continue;
    if (at == n) totals[n++] = (total){.name = name};
    add_event(profile->plan, &profile->events[i], &totals[at]);
  }
  qsort(totals, n, sizeof *totals, longest_first);
  return n;
}

/* A rate in units of 1e9; "-" where nothing is counted. */
static const char *rate(double count, double seconds, char text[32]) {
  if (count > 0 && seconds > 0) snprintf(text, 32, "%.3g", 1e-9 * count / seconds);
  else snprintf(text, 32, "-");
  return text;
}

/* Seconds of a copy in which a kernel ran. Events of a lane follow each other; `from` goes along. */
static double beneath(const nxr_profile *profile, const nxr_profile_event *copy, uint64_t *from) {
  double seconds = 0;
  for (uint64_t i = *from; i < profile->n; i++) {
    const nxr_profile_event *kernel = &profile->events[i];
    if (kernel->lane != NXR_LANE_QUEUES + NXK_KERNELS) continue;
    if (kernel->end_s <= copy->begin_s) *from = i;
    if (kernel->begin_s >= copy->end_s) break;
    double begin_s = kernel->begin_s > copy->begin_s ? kernel->begin_s : copy->begin_s;
    double end_s = kernel->end_s < copy->end_s ? kernel->end_s : copy->end_s;
    if (end_s > begin_s) seconds += end_s - begin_s;
  }
  return seconds;
}

static void print_overlap(const nxr_profile *profile) {
  uint64_t from[NXR_N_LANES] = {0};
  double copying_s = 0, beneath_s = 0, steps = (double)(profile->last - profile->first + 1);
  for (uint64_t i = 0; i < profile->n; i++) {
    const nxr_profile_event *event = &profile->events[i];
    if (event->lane <= NXR_LANE_QUEUES + NXK_KERNELS) continue;
    copying_s += event->end_s - event->begin_s;
    beneath_s += beneath(profile, event, &from[event->lane]);
  }
  if (copying_s > 0)
    fprintf(stderr, "  copies of %.3f ms, of which %.1f%% beneath kernels\n", 1e3 * copying_s / steps,
            100 * beneath_s / copying_s);
}

void nxr_profile_print(const nxr_profile *profile) {
  total totals[MOST_NAMES];
  uint32_t n = add_up(profile, totals);
  double steps = (double)(profile->last - profile->first + 1), all_s = 0;
  char flops[32], bytes[32];
  for (uint32_t i = 0; i < n; i++) all_s += totals[i].seconds;
  fprintf(stderr, "rank 0, steps %" PRIu64 " to %" PRIu64 ", of each step%s:\n  %-28s %10s %8s %7s %9s %8s\n",
          profile->first, profile->last, profile->backend ? ", by the device's clock" : "", "operator", "ms",
          "times", "share", "GFLOP/s", "GB/s");
  for (uint32_t i = 0; i < n; i++)
    fprintf(stderr, "  %-28s %10.3f %8.0f %6.1f%% %9s %8s\n", totals[i].name, 1e3 * totals[i].seconds / steps,
            (double)totals[i].n / steps, all_s > 0 ? 100 * totals[i].seconds / all_s : 0,
            rate(totals[i].flops, totals[i].seconds, flops), rate(totals[i].bytes, totals[i].seconds, bytes));
  print_overlap(profile);
}
