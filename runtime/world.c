/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static MPI_Comm host_communicator = MPI_COMM_NULL;
static MPI_Win window = MPI_WIN_NULL;

/* Between steps a rank may read or write files for long; one that does not come for this long is lost. */
enum { LONGEST_WAIT_S = 1800, POLLS_PER_CLOCK = 4096, POLLS_BEFORE_SLEEP = 1 << 16, SLEEP_US = 200 };

static void give_up(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr,
          "nxrun: rank %d has waited %d s for the other ranks, outside of a step: one of them stands still, "
          "or its files are out of reach; see what it does, and start again with --resume\n",
          rank, LONGEST_WAIT_S);
  nxr_world_abort(1);
}

/* MPICH's own waiting never gives its core away, which costs milliseconds where ranks share cores. */
static void complete(MPI_Request *request) {
  time_t start = time(NULL);
  unsigned polls = 0;
  for (int done = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;) {
    if (++polls < POLLS_BEFORE_SLEEP) sched_yield();
    else usleep(SLEEP_US);
    if (polls % POLLS_PER_CLOCK == 0 && time(NULL) - start > LONGEST_WAIT_S) give_up();
  }
}

/* Tells every rank where each rank is: the lowest rank of its host, and its place there. */
static bool gather_places(nxr_world *world, nxr_fault *fault) {
  uint32_t own[2] = {world->rank, world->local_rank};
  MPI_Request request;
  MPI_Ibcast(&own[0], 1, MPI_UINT32_T, 0, host_communicator, &request);
  complete(&request);
  uint32_t(*places)[2] = calloc(world->size, sizeof *places);
  world->hosts = calloc(world->size, sizeof *world->hosts);
  world->local_ranks = calloc(world->size, sizeof *world->local_ranks);
  if (!places || !world->hosts || !world->local_ranks) {
    free(places);
    return nxr_fault_set(fault, "out of memory");
  }
  MPI_Iallgather(own, 2, MPI_UINT32_T, places, 2, MPI_UINT32_T, MPI_COMM_WORLD, &request);
  complete(&request);
  for (uint32_t rank = 0; rank < world->size; rank++) {
    uint32_t first = places[rank][0];
    world->hosts[rank] = first == rank ? world->n_hosts++ : world->hosts[first];
    world->local_ranks[rank] = places[rank][1];
  }
  free(places);
  return true;
}

bool nxr_world_open(nxr_world *world, nxr_fault *fault) {
  int provided, rank, size, local_rank, local_size;
  *world = (nxr_world){0};
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return nxr_fault_set(fault, "MPI does not start");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_communicator);
  MPI_Comm_rank(host_communicator, &local_rank);
  MPI_Comm_size(host_communicator, &local_size);
  world->rank = (uint32_t)rank, world->size = (uint32_t)size;
  world->local_rank = (uint32_t)local_rank, world->local_size = (uint32_t)local_size;
  return gather_places(world, fault);
}

void nxr_world_close(nxr_world *world) {
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  if (host_communicator != MPI_COMM_NULL) MPI_Comm_free(&host_communicator);
  free(world->hosts);
  free(world->local_ranks);
  world->hosts = world->local_ranks = NULL;
  MPI_Finalize();
}

/* The launcher drops what it has not read from a rank's stderr when the run is aborted: give it the time. */
void nxr_world_abort(int status) {
  fflush(NULL);
  usleep(300000);
  MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}

bool nxr_world_agree(nxr_world *world, const nxr_fault *fault) {
  /* Signed: MPICH 4.0.2 compares unsigned numbers as if they were signed. */
  int64_t own = fault->text[0] != '\0' ? world->rank : INT64_MAX, first;
  MPI_Request request;
  MPI_Iallreduce(&own, &first, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD, &request);
  complete(&request);
  if (first == INT64_MAX) return true;
  if (first == world->rank) {
    fprintf(stderr, "nxrun: %s\n", fault->text);
    fflush(stderr);
  }
  return false;
}

void nxr_world_barrier(nxr_world *world) {
  (void)world;
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  complete(&request);
}

void nxr_world_sum(nxr_world *world, double *values, size_t n) {
  (void)world;
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  complete(&request);
}

/* As signed numbers in the same order (see nxr_world_agree). */
void nxr_world_max(nxr_world *world, uint64_t *values, size_t n) {
  (void)world;
  MPI_Request request;
  for (size_t i = 0; i < n; i++) values[i] ^= UINT64_C(1) << 63;
  MPI_Iallreduce(MPI_IN_PLACE, values, (int)n, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD, &request);
  complete(&request);
  for (size_t i = 0; i < n; i++) values[i] ^= UINT64_C(1) << 63;
}

void nxr_world_broadcast(nxr_world *world, void *bytes, size_t n_bytes) {
  (void)world;
  MPI_Request request;
  MPI_Ibcast(bytes, (int)n_bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  complete(&request);
}

void nxr_world_host_union(nxr_world *world, void *bits, size_t n_bytes) {
  (void)world;
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, bits, (int)n_bytes, MPI_BYTE, MPI_BOR, host_communicator, &request);
  complete(&request);
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

bool nxr_world_window(nxr_world *world, uint64_t n_bytes, void **peers, nxr_fault *fault) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), rounded = (n_bytes + page - 1) / page * page;
  uint64_t all = 0; /* the stages of a pipeline need different amounts */
  MPI_Allreduce(&rounded, &all, 1, MPI_UINT64_T, MPI_SUM, host_communicator);
  window_fits(world, all, fault);
  if (!nxr_world_agree(world, fault)) return false;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void *own;
  int status = MPI_Win_allocate_shared((MPI_Aint)rounded, 1, info, host_communicator, &own, &window);
  MPI_Info_free(&info);
  if (status != MPI_SUCCESS)
    return nxr_fault_set(fault, "MPI makes no shared window of %llu bytes: run with --comm p2p",
                         (unsigned long long)rounded);
  for (uint32_t peer = 0; peer < world->local_size; peer++) {
    MPI_Aint bytes;
    int unit;
    MPI_Win_shared_query(window, (int)peer, &bytes, &unit, &peers[peer]);
  }
  return true;
}
