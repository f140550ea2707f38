/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/world.h"

#include "runtime/files/fault.h"
#include "runtime/world/launch.h"
#include "runtime/world/watch.h"
#include "runtime/world/world_end.h"
#include "runtime/world/world_meet.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static MPI_Comm host_communicator = MPI_COMM_NULL;
static MPI_Win window = MPI_WIN_NULL;
static uint64_t window_bytes; /* of this rank */

/* Tells every rank where each rank is: the lowest rank of its host, and its place there. */
static bool gather_places(nxr_world *world, nxr_fault *fault) {
  uint32_t own[2] = {world->rank, world->local_rank};
  MPI_Request request;
  MPI_Ibcast(&own[0], 1, MPI_UINT32_T, 0, host_communicator, &request);
  nxr_meet_complete(world, &request);
  uint32_t(*places)[2] = calloc(world->size, sizeof *places);
  world->hosts = calloc(world->size, sizeof *world->hosts);
  world->local_ranks = calloc(world->size, sizeof *world->local_ranks);
  world->host_names = calloc(world->size, sizeof *world->host_names);
  if (!places || !world->hosts || !world->local_ranks || !world->host_names) {
    free(places);
    return nxr_fault_set(fault, "out of memory");
  }
  MPI_Iallgather(own, 2, MPI_UINT32_T, places, 2, MPI_UINT32_T, MPI_COMM_WORLD, &request);
  nxr_meet_complete(world, &request);
  gethostname(world->host_names[world->rank], NXR_HOST_BYTES - 1);
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, world->host_names, NXR_HOST_BYTES, MPI_BYTE, MPI_COMM_WORLD,
                 &request);
  nxr_meet_complete(world, &request);
  for (uint32_t rank = 0; rank < world->size; rank++) {
    uint32_t first = places[rank][0];
    world->hosts[rank] = first == rank ? world->n_hosts++ : world->hosts[first];
    world->local_ranks[rank] = places[rank][1];
  }
  free(places);
  return true;
}

/* Before MPI has started only the launcher knows which rank this is. */
static void watch_start(const nxr_world *world) {
  char host[NXR_HOST_BYTES] = "";
  const char *rank = getenv("PMI_RANK");
  gethostname(host, sizeof host - 1);
  nxr_watch_begin(world->deadline_s,
                  "nxrun: rank %s (%s) waits for MPI to start: another rank gave no sign of life for %g s "
                  "(run.deadline_s); it stands still, or was not started",
                  rank ? rank : "0", host, world->deadline_s);
}

static void watch(const nxr_world *world) {
  nxr_watch_begin(world->deadline_s,
                  "nxrun: rank %u (%s) waits %s: another rank gave no sign of life for %g s (run.deadline_s)",
                  world->rank, nxr_world_host(world, world->rank), world->phase, world->deadline_s);
}

bool nxr_world_open(nxr_world *world, double deadline_s, nxr_fault *fault) {
  int provided, rank, size, local_rank, local_size;
  *world = (nxr_world){.deadline_s = deadline_s, .phase = "while the run is set up"};
  nxr_launch_look_around();
  nxr_launch_choose_messages();
  watch_start(world);
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
    return nxr_fault_set(fault, "MPI does not start");
  world->has_mpi_threads = provided == MPI_THREAD_MULTIPLE;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_communicator);
  MPI_Comm_rank(host_communicator, &local_rank);
  MPI_Comm_size(host_communicator, &local_size);
  world->rank = (uint32_t)rank, world->size = (uint32_t)size;
  world->local_rank = (uint32_t)local_rank, world->local_size = (uint32_t)local_size;
  bool good = gather_places(world, fault) && nxr_meet_open(world, fault);
  nxr_watch_end();
  return good;
}

static void free_places(nxr_world *world) {
  free(world->hosts);
  free(world->local_ranks);
  free(world->host_names);
  world->hosts = world->local_ranks = NULL, world->host_names = NULL;
}

bool nxr_world_imagine(nxr_world *world, const nx_plan *plan, uint32_t rank, nxr_fault *fault) {
  uint32_t n = plan->run->n_ranks, per_host = n / plan->run->n_hosts;
  free_places(world);
  world->alone = true;
  world->rank = rank, world->size = n, world->n_hosts = plan->run->n_hosts;
  world->local_rank = rank % per_host, world->local_size = per_host;
  world->hosts = calloc(n, sizeof *world->hosts);
  world->local_ranks = calloc(n, sizeof *world->local_ranks);
  world->host_names = calloc(n, sizeof *world->host_names);
  if (!world->hosts || !world->local_ranks || !world->host_names)
    return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < n; i++) world->hosts[i] = i / per_host, world->local_ranks[i] = i % per_host;
  return true;
}

void nxr_world_close(nxr_world *world) {
  world->phase = "for the run to end";
  nxr_meet(world);
  watch(world);
  nxr_meet_close();
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  if (host_communicator != MPI_COMM_NULL) MPI_Comm_free(&host_communicator);
  nxr_end_mpi(world->alone ? 1 : world->n_hosts);
  nxr_watch_end();
  free_places(world);
}

static void keep_least(void *all, const void *one, size_t n_bytes) {
  (void)n_bytes;
  if (*(const uint64_t *)one < *(uint64_t *)all) *(uint64_t *)all = *(const uint64_t *)one;
}

bool nxr_world_agree(nxr_world *world, const nxr_fault *fault) {
  uint64_t first = fault->text[0] != '\0' ? world->rank : UINT64_MAX;
  nxr_meet_exchange(world, &first, sizeof first, keep_least);
  if (first == UINT64_MAX) return true;
  if (first == world->rank) {
    nxr_print(stderr, "nxrun: %s\n", fault->text);
    fflush(stderr);
  }
  return false;
}

void nxr_world_barrier(nxr_world *world) {
  nxr_meet(world);
}

static void add(void *all, const void *one, size_t n_bytes) {
  for (size_t i = 0; i < n_bytes / sizeof(double); i++) ((double *)all)[i] += ((const double *)one)[i];
}

void nxr_world_sum(nxr_world *world, double *values, size_t n) {
  nxr_meet_exchange(world, values, n * sizeof *values, add);
}

static void keep_largest(void *all, const void *one, size_t n_bytes) {
  uint64_t *most = all;
  const uint64_t *values = one;
  for (size_t i = 0; i < n_bytes / sizeof *most; i++)
    if (values[i] > most[i]) most[i] = values[i];
}

void nxr_world_max(nxr_world *world, uint64_t *values, size_t n) {
  nxr_meet_exchange(world, values, n * sizeof *values, keep_largest);
}

static void keep_first(void *all, const void *one, size_t n_bytes) {
  (void)all, (void)one, (void)n_bytes;
}

void nxr_world_broadcast(nxr_world *world, void *bytes, size_t n_bytes) {
  nxr_meet_exchange(world, bytes, n_bytes, keep_first);
}

void nxr_world_host_union(nxr_world *world, void *bits, size_t n_bytes) {
  MPI_Request request;
  nxr_meet(world);
  MPI_Iallreduce(MPI_IN_PLACE, bits, (int)n_bytes, MPI_BYTE, MPI_BOR, host_communicator, &request);
  nxr_meet_complete(world, &request);
}

/* MPICH puts windows under /dev/shm, where writing past the limit is a signal and not an error. */
static bool window_fits(const nxr_world *world, uint64_t need, nxr_fault *fault) {
  struct statvfs memory;
  if (world->local_rank != 0 || statvfs("/dev/shm", &memory) != 0) return true;
  uint64_t room = (uint64_t)memory.f_bavail * memory.f_frsize;
  if (need <= room) return true;
  return nxr_fault_set(
      fault,
      "the ranks of this host share %llu MiB, but /dev/shm has room for %llu MiB: enlarge it "
      "(mount -o remount,size=… /dev/shm, docker --shm-size), or run with --comm p2p",
      (unsigned long long)(need >> 20), (unsigned long long)(room >> 20));
}

/* Makes the window in place of that of the run before, which is too small on some rank. */
static bool open_window(nxr_world *world, uint64_t n_bytes, void **own, nxr_fault *fault) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  watch(world);
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  int status = MPI_Win_allocate_shared((MPI_Aint)n_bytes, 1, info, host_communicator, own, &window);
  nxr_watch_end();
  MPI_Info_free(&info);
  window_bytes = n_bytes;
  return status == MPI_SUCCESS ||
         nxr_fault_set(fault, "MPI makes no shared window of %llu bytes: run with --comm p2p",
                       (unsigned long long)n_bytes);
}

bool nxr_world_window(nxr_world *world, uint64_t n_bytes, void **peers, nxr_fault *fault) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), rounded = (n_bytes + page - 1) / page * page;
  bool keeps = window != MPI_WIN_NULL && rounded <= window_bytes; /* that of the run before */
  const uint64_t own[2] = {rounded, !keeps}; /* the stages of a pipeline need different amounts */
  uint64_t all[2] = {0};
  void *start;
  MPI_Request request;
  nxr_meet(world);
  MPI_Iallreduce(own, all, 2, MPI_UINT64_T, MPI_SUM, host_communicator, &request);
  nxr_meet_complete(world, &request);
  window_fits(world, all[0], fault);
  if (!nxr_world_agree(world, fault)) return false;
  if (all[1] > 0 && !open_window(world, rounded, &start, fault)) return false;
  for (uint32_t peer = 0; peer < world->local_size; peer++) {
    MPI_Aint bytes;
    int unit;
    MPI_Win_shared_query(window, (int)peer, &bytes, &unit, &peers[peer]);
  }
  if (all[1] == 0) memset(peers[world->local_rank], 0, rounded); /* as a new one is */
  nxr_meet(world);
  return true;
}
