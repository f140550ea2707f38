/* SPDX-License-Identifier: Apache-2.0 */
/* Who moves collectives along while the rank computes.
 *
 * Between hosts a thread of our own looks at what is under way, so that messages go on beneath kernels, and
 * sums what has come: with a device of one thread, and the floating-point state of the rank's own thread, so
 * that the bits are the same. Where the host has no core for it, it takes the kernels': then the rank looks
 * too, between operators, and the thread naps the longer the less there is to do. Within a host the rank
 * alone looks, since copies and sums would take the cores from its kernels. One lock guards everything of
 * the comm; while the rank waits for a collective it polls itself, and the thread sleeps.
 *
 * NXRUN_PROGRESS in the environment chooses, for tests and measurements: `thread`, `operators`, or `wait`,
 * where a collective is waited for as soon as it is started, so that it goes on beneath nothing. */
#include "runtime/comm/comm_transport.h"

#include "runtime/world/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_NAP_NS = 50000, LONGEST_NAP_NS = 400000, WORKSPACE_BYTES = 1 << 20 };

static nxr_mover choose(const nxr_comm *comm) {
  static const char *const names[] = {[NXR_MOVED_BY_OPERATORS] = "operators",
                                      [NXR_MOVED_BY_THREAD] = "thread",
                                      [NXR_MOVED_AT_ONCE] = "wait"};
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

bool nxr_comm_helps(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) return comm->rank_helps && pthread_mutex_trylock(&comm->lock) == 0;
  return comm->mover == NXR_MOVED_BY_OPERATORS;
}

void nxr_comm_wake(nxr_comm *comm) {
  if (comm->mover == NXR_MOVED_BY_THREAD) pthread_cond_signal(&comm->started);
}

nxk_device *nxr_comm_sum_device(const nxr_comm *comm) {
  bool own = comm->mover == NXR_MOVED_BY_THREAD && pthread_equal(pthread_self(), comm->thread);
  return own ? comm->thread_device : comm->device;
}

/* How the thread finds its rhythm. */
typedef struct rhythm {
  double least_s; /* that a look took: one that found nothing */
  long nap_ns;
} rhythm;

static void look(nxr_comm *comm, rhythm *own) {
  double since_s = nxr_clock_s();
  nxr_comm_move_all(comm);
  double took_s = nxr_clock_s() - since_s;
  if (own->least_s == 0 || took_s < own->least_s) own->least_s = took_s;
  bool found = took_s > 2 * own->least_s;
  own->nap_ns = found || !comm->rank_helps ? LEAST_NAP_NS : 2 * own->nap_ns;
  if (own->nap_ns > LONGEST_NAP_NS) own->nap_ns = LONGEST_NAP_NS;
}

static void *move(void *context) {
  rhythm own = {.nap_ns = LEAST_NAP_NS};
  nxr_comm *comm = context;
  nxr_world_roam();
  fesetenv(&comm->environment);
  pthread_mutex_lock(&comm->lock);
  while (!comm->ends) {
    if (comm->n_active == 0 || comm->rank_waits) {
      pthread_cond_wait(&comm->started, &comm->lock);
      continue;
    }
    look(comm, &own);
    pthread_mutex_unlock(&comm->lock);
    nanosleep(&(struct timespec){.tv_nsec = own.nap_ns}, NULL);
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
  const nxr_world *world = comm->world;
  comm->rank_helps = world->n_cores < world->local_size * (comm->plan->run->n_threads + 1);
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
