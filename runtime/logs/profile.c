/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/profile.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "runtime/world/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 1 << 26, N_MEETINGS = 15 };

/* ---- opening ---- */

/* Operators of one step that this rank runs, and its transfers. */
static uint64_t count_events(const nx_plan *plan, uint32_t stage) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ITEMS]; i++) {
    const nx_item *item = &plan->items[i];
    if (item->stage != stage) continue;
    uint32_t program = nx_item_program(plan, item);
    n += program == NX_NONE ? 1 : plan->programs[program].n_operators;
  }
  return n;
}

static bool is_taken(const char *ranks, uint32_t rank) {
  if (ranks[0] == '\0') return true;
  for (const char *at = ranks; *at;) {
    char *end;
    if (strtoul(at, &end, 10) == rank && end > at) return true;
    at = end + (*end == ',');
    if (end[0] != ',' && end[0] != '\0') return false;
  }
  return false;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Ranks of rank 0's host have its clock. On others: what the clocks show right after all have met, the middle
 * of several. */
static double find_offset(nxr_world *world) {
  double offsets[N_MEETINGS];
  for (int i = 0; i < N_MEETINGS; i++) {
    nxr_world_barrier(world);
    double own = nxr_clock_s(), first = own;
    nxr_world_broadcast(world, &first, sizeof first);
    offsets[i] = first - own;
  }
  qsort(offsets, N_MEETINGS, sizeof *offsets, by_size);
  return world->hosts[world->rank] == world->hosts[0] ? 0 : offsets[N_MEETINGS / 2];
}

bool nxr_profile_open(nxr_profile *profile, const nx_plan *plan, nxr_world *world, uint64_t first,
                      uint64_t last, const char *ranks, nxr_fault *fault) {
  *profile = (nxr_profile){.plan = plan, .world = world, .first = first, .last = last};
  if (first == 0) return true;
  profile->taken = is_taken(ranks, world->rank);
  profile->offset_s = find_offset(world);
  if (!profile->taken) return true;
  profile->room = count_events(plan, nx_plan_stage(plan, world->rank)) * (last - first + 1);
  if (profile->room > MOST_EVENTS)
    return nxr_fault_set(
        fault, "%" PRIu64 " steps have %" PRIu64 " operators, more than can be recorded: profile fewer steps",
        last - first + 1, profile->room);
  profile->events = malloc((size_t)profile->room * sizeof *profile->events);
  return profile->events ||
         nxr_fault_set(fault, "out of memory for a profile of %" PRIu64 " operators", profile->room);
}

void nxr_profile_close(nxr_profile *profile) {
  free(profile->events);
  *profile = (nxr_profile){0};
}

/* ---- recording ---- */

void nxr_profile_step(nxr_profile *profile, uint64_t step) {
  profile->recording = profile->taken && step >= profile->first && step <= profile->last;
}

void nxr_profile_add(nxr_profile *profile, uint32_t item, uint32_t op, double begin_s) {
  if (profile->n == profile->room) return;
  profile->events[profile->n++] =
      (nxr_profile_event){.begin_s = begin_s, .end_s = nxr_clock_s(), .item = item, .op = op};
}

/* ---- writing ---- */

static const char *event_name(const nx_plan *plan, const nxr_profile_event *event) {
  if (event->op != NX_NONE) return nx_op_find(plan->operators[event->op].op)->name;
  static const char *const names[] = {
      [NX_ITEM_SEND] = "send", [NX_ITEM_RECV] = "receive", [NX_ITEM_WAIT] = "wait"};
  return names[plan->items[event->item].kind];
}

static const char *event_class(const nx_plan *plan, const nxr_profile_event *event) {
  bool moves = event->op == NX_NONE || plan->operators[event->op].group != NX_NONE ||
               plan->operators[event->op].op == NX_OP_wait;
  return moves ? "communication" : "compute";
}

/* What stands in a JSON text as it is; a plan's strings may hold anything. */
static const char *plain(const char *text, char plain[128]) {
  size_t n = 0;
  for (; *text && n < 127; text++)
    plain[n++] = *text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text;
  plain[n] = '\0';
  return plain;
}

static void write_event(FILE *file, const nxr_profile *profile, const nxr_profile_event *event,
                        double start_s) {
  const nx_plan *plan = profile->plan;
  char item[128], of[128];
  nx_item_describe(plan, &plan->items[event->item], item, sizeof item);
  const char *origin = event->op == NX_NONE ? "" : nx_plan_string(plan, plan->operators[event->op].origin);
  fprintf(file,
          ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,"
          "\"args\":{\"of\":\"%s\",\"in\":\"%s\"}}",
          event_name(plan, event), event_class(plan, event), profile->world->rank,
          1e6 * (event->begin_s + profile->offset_s - start_s), 1e6 * (event->end_s - event->begin_s),
          plain(origin, of), item);
}

static bool write_own(const nxr_profile *profile, const char *path, double start_s, nxr_fault *fault) {
  const nxr_world *world = profile->world;
  FILE *file = fopen(path, world->rank == 0 ? "we" : "ae");
  if (file == NULL) return nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  if (world->rank == 0) fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file);
  fprintf(
      file,
      "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"rank %u, stage %u, %s\"}}",
      world->rank == 0 ? "" : ",\n", world->rank, world->rank, nx_plan_stage(profile->plan, world->rank),
      nxr_world_host(world, world->rank));
  for (uint64_t i = 0; i < profile->n; i++) write_event(file, profile, &profile->events[i], start_s);
  if (world->rank + 1 == world->size) fputs("\n]}\n", file);
  bool good = !ferror(file);
  good = fclose(file) == 0 && good;
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

typedef struct total {
  const char *name;
  double seconds;
  uint64_t n;
} total;

static int longest_first(const void *a, const void *b) {
  const total *x = a, *y = b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

enum { MOST_NAMES = 512 };

static uint32_t add_up(const nxr_profile *profile, total totals[MOST_NAMES]) {
  uint32_t n = 0;
  for (uint64_t i = 0; i < profile->n; i++) {
    const nxr_profile_event *event = &profile->events[i];
    const char *name = event_name(profile->plan, event);
    uint32_t at = 0;
    while (at < n && strcmp(totals[at].name, name) != 0) at++;
    if (at == MOST_NAMES) continue;
    if (at == n) totals[n++] = (total){.name = name};
    totals[at].seconds += event->end_s - event->begin_s;
    totals[at].n++;
  }
  qsort(totals, n, sizeof *totals, longest_first);
  return n;
}

static void print_table(const nxr_profile *profile) {
  total totals[MOST_NAMES];
  uint32_t n = add_up(profile, totals);
  double steps = (double)(profile->last - profile->first + 1), all_s = 0;
  for (uint32_t i = 0; i < n; i++) all_s += totals[i].seconds;
  fprintf(stderr, "rank 0, steps %" PRIu64 " to %" PRIu64 ", of each step:\n  %-28s %10s %8s %7s\n",
          profile->first, profile->last, "operator", "ms", "times", "share");
  for (uint32_t i = 0; i < n; i++)
    fprintf(stderr, "  %-28s %10.3f %8.0f %6.1f%%\n", totals[i].name, 1e3 * totals[i].seconds / steps,
            (double)totals[i].n / steps, all_s > 0 ? 100 * totals[i].seconds / all_s : 0);
}

bool nxr_profile_write(nxr_profile *profile, const char *directory, nxr_fault *fault) {
  nxr_world *world = profile->world;
  char folder[NXR_PATH_BYTES], path[NXR_PATH_BYTES + 64];
  uint64_t start_ns = 0;
  profile->recording = false;
  snprintf(folder, sizeof folder, "%s/profile", directory);
  snprintf(path, sizeof path, "%s/steps-%" PRIu64 "-%" PRIu64 ".json", folder, profile->first, profile->last);
  bool good = nxr_world_all(world, world->rank != 0 || nxr_folder_make(folder, fault));
  if (profile->n > 0)
    start_ns = UINT64_MAX - (uint64_t)(1e9 * (profile->events[0].begin_s + profile->offset_s));
  nxr_world_max(world, &start_ns, 1); /* the earliest, since it is counted down */
  double start_s = 1e-9 * (double)(UINT64_MAX - start_ns);
  for (uint32_t rank = 0; good && rank < world->size; rank++)
    good = nxr_world_all(world, rank != world->rank || write_own(profile, path, start_s, fault));
  if (good && world->rank == 0 && profile->n > 0) print_table(profile);
  if (good && world->rank == 0)
    fprintf(stderr, "nxrun: the profile is in %s; ui.perfetto.dev opens it\n", path);
  return good;
}
