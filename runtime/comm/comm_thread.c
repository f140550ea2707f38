/* SPDX-License-Identifier: Apache-2.0 */
/* Who moves collectives along while the rank computes.
 *
 * Between hosts a thread of our own looks at what is under way every POLL_NS, so that messages go on beneath
 * kernels, and sums what has come: with a device of one thread, and the floating-point state of the rank's
 * own thread, so that the bits are the same. Within a host the rank does so itself, between operators, since
 * copies and sums would take the cores from its kernels. One lock guards everything of the comm; while the
 * rank waits for a collective it polls itself, and the thread sleeps.
 *
 * NXRUN_PROGRESS in the environment chooses, for tests and measurements: `thread`, `operators`, or `wait`,
 * where nothing is moved but in waits. */
#include "runtime/comm/comm_transport.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLL_NS = 50000, WORKSPACE_BYTES = 1 << 20 };

static nxr_mover choose(const nxr_comm *comm) {
  static const char *const names[] = {[NXR_MOVED_BY_OPERATORS] = "operators",
                                      [NXR_MOVED_BY_THREAD] = "thread",
                                      [NXR_MOVED_IN_WAITS] = "wait"};
  const nxr_world *world = comm->world;
  const char *asked = getenv("NXRUN_PROGRESS");
  bool can = world->has_mpi_threads && !world->alone && comm->backend->host_addressable;
  nxr_mover mover = world->n_hosts > 1 ? NXR_MOVED_BY_THREAD : NXR_MOVED_BY_OPERATORS;
  for (size_t i = 0; asked && i < sizeof names / sizeof *names; i++)
    if (strcmp(asked, names[i]) == 0) mover = (nxr_mover)i;
  return mover == NXR_MOVED_BY_THREAD && !can ? NXR_MOVED_BY_OPERATORS : mover;
}

void nxr_comm_lock(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) pthread_mutex_lock(&comm->lock);
}

void nxr_comm_unlock(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) pthread_mutex_unlock(&comm->lock);
}

void nxr_comm_wake(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) pthread_cond_signal(&comm->started);
}

nxk_device *nxr_comm_sum_device(const nxr_comm *comm) {
  bool own = comm->mover == NXR_MOVED_BY_THREAD && pthread_equal(pthread_self(), comm->thread);
  return own ? comm->thread_device : comm->device;
}

static void *move(void *context) {
  static const struct timespec nap = {.tv_nsec = POLL_NS};
  nxr_comm *comm = context;
  fesetenv(&comm->environment);
  pthread_mutex_lock(&comm->lock);
  while (!comm->ends) {
    if (comm->n_active == 0 || comm->rank_waits) {
      pthread_cond_wait(&comm->started, &comm->lock);
      continue;
    }
    nxr_comm_move_all(comm);
    pthread_mutex_unlock(&comm->lock);
    nanosleep(&nap, NULL);
    pthread_mutex_lock(&comm->lock);
  }
  pthread_mutex_unlock(&comm->lock);
  return NULL;
}

bool nxr_comm_thread_open(nxr_comm *comm, nxr_fault *fault) {
  const nxk_device_options options = {
      .n_threads = 1, .target = comm->plan->run->target, .workspace_bytes = WORKSPACE_BYTES};
  nxk_fault why = {""};
  comm->mover = choose(comm);
  if (comm->mover != NXR_MOVED_BY_THREAD) return true;
  comm->mover = NXR_MOVED_BY_OPERATORS; /* until there is a thread */
  if (!comm->backend->open(&options, &comm->thread_device, &why))
    return nxr_fault_set(fault, "no device to sum with beside the kernels: %s", why.text);
  fegetenv(&comm->environment);
  pthread_mutex_init(&comm->lock, NULL);
  pthread_cond_init(&comm->started, NULL);
  comm->mover = NXR_MOVED_BY_THREAD;
  if (pthread_create(&comm->thread, NULL, move, comm) == 0) return true;
  comm->mover = NXR_MOVED_BY_OPERATORS;
  return nxr_fault_set(fault, "no thread can be started that moves messages (ulimit -u)");
}

void nxr_comm_thread_close(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) {
    nxr_comm_lock(comm);
    comm->ends = true;
    nxr_comm_wake(comm);
    nxr_comm_unlock(comm);
    pthread_join(comm->thread, NULL);
    pthread_mutex_destroy(&comm->lock);
    pthread_cond_destroy(&comm->started);
  }
  if (comm->thread_device) comm->backend->close(comm->thread_device);
}
