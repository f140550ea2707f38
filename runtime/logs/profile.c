/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/profile.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_write.h"
#include "runtime/files/fault.h"
#include "runtime/world/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVENTS = 1 << 26, N_MEETINGS = 15 };

/* ---- opening ---- */

/* Operators of one step that this rank runs, its transfers, and two copies for each message. */
static uint64_t count_events(const nx_plan *plan, uint32_t stage) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ITEMS]; i++) {
    const nx_item *item = &plan->items[i];
    if (item->stage != stage) continue;
    uint32_t program = nx_item_program(plan, item);
    if (program == NX_NONE) {
      n += 3;
      continue;
    }
    const nx_operator *operators = &plan->operators[plan->programs[program].first_operator];
    for (uint32_t o = 0; o < plan->programs[program].n_operators; o++)
      n += nx_op_is_collective(nx_op_find(operators[o].op)) ? 3 : 1;
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

bool nxr_profile_device(nxr_profile *profile, const nxk_backend *backend, nxk_device *device,
                        nxr_fault *fault) {
  nxk_fault why = {""};
  if (!profile->taken || !backend->record_open) return true;
  profile->spans = malloc((size_t)profile->room * sizeof *profile->spans);
  if (!profile->spans) return nxr_fault_set(fault, "out of memory for the times of a device");
  if (!backend->record_open(device, profile->room, &why)) return nxr_fault_set(fault, "%s", why.text);
  profile->backend = backend, profile->device = device;
  return true;
}

void nxr_profile_close(nxr_profile *profile) {
  free(profile->events);
  free(profile->spans);
  *profile = (nxr_profile){0};
}

/* ---- recording ---- */

void nxr_profile_step(nxr_profile *profile, uint64_t step) {
  profile->recording = profile->taken && step >= profile->first && step <= profile->last;
  if (profile->backend) profile->backend->record(profile->device, profile->recording ? 0 : NXK_UNRECORDED);
}

static nxr_profile_event *next_event(nxr_profile *profile) {
  return profile->n < profile->room ? &profile->events[profile->n++] : NULL;
}

void nxr_profile_add(nxr_profile *profile, uint32_t item, uint32_t op, double begin_s) {
  nxr_profile_event *event = next_event(profile);
  if (event)
    *event = (nxr_profile_event){.begin_s = begin_s, .end_s = nxr_clock_s(), .item = item, .op = op};
}

void nxr_profile_enqueue(nxr_profile *profile, uint32_t item, uint32_t op) {
  double now_s = nxr_clock_s();
  nxr_profile_event *event = next_event(profile);
  if (!event) return;
  *event = (nxr_profile_event){now_s, now_s, item, op, NXR_LANE_QUEUES + NXK_KERNELS, 0};
  profile->backend->record(profile->device, (uint32_t)(event - profile->events));
}

void nxr_profile_collect(nxr_profile *profile) {
  if (profile->backend == NULL || !profile->recording) return;
  uint64_t n = profile->backend->recorded(profile->device, profile->spans);
  for (uint64_t i = 0; i < n; i++) {
    const nxk_span *span = &profile->spans[i];
    nxr_profile_event *event =
        span->queue == NXK_KERNELS ? &profile->events[span->label] : next_event(profile);
    if (!event) return;
    if (span->queue != NXK_KERNELS) *event = (nxr_profile_event){.item = NX_NONE, .op = span->label};
    event->begin_s = span->begin_s, event->end_s = span->end_s;
    event->lane = NXR_LANE_QUEUES + span->queue, event->n_bytes = span->n_bytes;
  }
}

/* ---- writing ---- */

static const char *event_class(const nx_plan *plan, const nxr_profile_event *event) {
  bool moves = nxr_profile_is_copy(event) || event->op == NX_NONE ||
               plan->operators[event->op].group != NX_NONE || plan->operators[event->op].op == NX_OP_wait;
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

/* What an operator comes from; of a copy also which message it is for. */
static const char *event_origin(const nx_plan *plan, const nxr_profile_event *event) {
  bool none = event->op == NX_NONE || event->op >= plan->n[NX_SECTION_OPERATORS];
  return none ? "" : nx_plan_string(plan, plan->operators[event->op].origin);
}

static void describe_item(const nx_plan *plan, const nxr_profile_event *event, char *text, size_t room) {
  uint32_t n_operators = plan->n[NX_SECTION_OPERATORS];
  if (!nxr_profile_is_copy(event)) nx_item_describe(plan, &plan->items[event->item], text, room);
  else if (event->op < n_operators)
    snprintf(text, room, "%s", nx_op_find(plan->operators[event->op].op)->name);
  else nx_item_describe(plan, &plan->items[event->op - n_operators], text, room);
}

static void write_event(FILE *file, const nxr_profile *profile, const nxr_profile_event *event,
                        double start_s) {
  const nx_plan *plan = profile->plan;
  char item[128], of[128];
  describe_item(plan, event, item, sizeof item);
  fprintf(file,
          ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,"
          "\"args\":{\"of\":\"%s\",\"in\":\"%s\"}}",
          nxr_profile_name(plan, event), event_class(plan, event), profile->world->rank, event->lane,
          1e6 * (event->begin_s + profile->offset_s - start_s), 1e6 * (event->end_s - event->begin_s),
          plain(event_origin(plan, event), of), item);
}

/* Of a device; where there is none the host alone works. */
static void name_lanes(FILE *file, const nxr_profile *profile) {
  static const char *const names[NXR_N_LANES] = {
      "host", [NXR_LANE_QUEUES + NXK_KERNELS] = "kernels",
      [NXR_LANE_QUEUES + NXK_COPIES_OUT] = "copies to the host",
      [NXR_LANE_QUEUES + NXK_COPIES_IN] = "copies to the device"};
  for (int lane = 0; profile->backend && lane < NXR_N_LANES; lane++)
    fprintf(file,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
            profile->world->rank, lane, names[lane]);
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
  name_lanes(file, profile);
  for (uint64_t i = 0; i < profile->n; i++) write_event(file, profile, &profile->events[i], start_s);
  if (world->rank + 1 == world->size) fputs("\n]}\n", file);
  bool good = !ferror(file);
  good = fclose(file) == 0 && good;
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

bool nxr_profile_write(nxr_profile *profile, const char *directory, nxr_fault *fault) {
  nxr_world *world = profile->world;
  char folder[NXR_PATH_BYTES], path[NXR_PATH_BYTES + 64];
  uint64_t start_ns = 0;
  profile->recording = false;
  const char *named = nx_plan_text(profile->plan, profile->plan->run_names->profile_directory);
  snprintf(folder, sizeof folder, "%s%s", named[0] ? named : directory, named[0] ? "" : "/profile");
  snprintf(path, sizeof path, "%s/steps-%" PRIu64 "-%" PRIu64 ".json", folder, profile->first, profile->last);
  bool good = nxr_world_all(world, world->rank != 0 || nxr_folder_make(folder, fault));
  if (profile->n > 0)
    start_ns = UINT64_MAX - (uint64_t)(1e9 * (profile->events[0].begin_s + profile->offset_s));
  nxr_world_max(world, &start_ns, 1); /* the earliest, since it is counted down */
  double start_s = 1e-9 * (double)(UINT64_MAX - start_ns);
  for (uint32_t rank = 0; good && rank < world->size; rank++)
    good = nxr_world_all(world, rank != world->rank || write_own(profile, path, start_s, fault));
  if (good && world->rank == 0 && profile->n > 0) nxr_profile_print(profile);
  if (good && world->rank == 0)
    nxr_print(stderr, "nxrun: the profile is in %s; ui.perfetto.dev opens it\n", path);
  return good;
}
