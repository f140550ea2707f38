/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of this run: who they are, where they are, and how they end together.
 *
 * One process is one rank. Ranks of one host share memory (a window); `hosts` and `local_ranks` say for every
 * rank where it is. Everything here is for before and between steps: it may allocate and it makes all ranks
 * meet. What happens within a step is runtime/comm/comm.h. MPI itself appears only in world*.[ch] and
 * comm_mpi*.c. */
#ifndef NXR_WORLD_H
#define NXR_WORLD_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NXR_HOST_BYTES = 64 };

typedef struct nxr_world {
  uint32_t rank, size;
  uint32_t local_rank, local_size; /* among the ranks of this host */
  uint32_t n_hosts;
  uint32_t *hosts;       /* [size]: number of the host of each rank, from 0 in order of its first rank */
  uint32_t *local_ranks; /* [size]: position of each rank on its host */
  uint32_t n_cores;      /* of this host that its ranks may run on; after nxr_world_pin */
  bool has_mpi_threads;  /* several threads of a rank may call MPI */
  bool alone;            /* the others are not there: one rank is bound to see what it takes */
  bool crowded; /* more threads than cores on this host, or other programs: who waits naps, nothing is
                 * pinned */
  char (*host_names)[NXR_HOST_BYTES]; /* [size], as each rank's host calls itself */
  double deadline_s;                  /* the longest wait for a rank that gives no sign of life */
  const char *phase;                  /* what the ranks are about, for messages: "while ..." */
} nxr_world;

/* Starts MPI. A rank that does not come ends the others after `deadline_s`; so it is for everything below. */
bool nxr_world_open(nxr_world *world, double deadline_s, nxr_fault *fault);
/* Of the only rank that was started makes one of a plan's ranks, as if all its hosts were there; it meets
 * nobody then. */
bool nxr_world_imagine(nxr_world *world, const nx_plan *plan, uint32_t rank, nxr_fault *fault);
/* Ends MPI; call on every rank, or on none, and end the process soon after. */
void nxr_world_close(nxr_world *world);
/* Ends every rank of the run at once, from any of them. */
_Noreturn void nxr_world_abort(int status);

/* Meets all ranks: true if no rank has a fault. Otherwise the first that has one prints it on stderr, and
 * every rank returns false. */
bool nxr_world_agree(nxr_world *world, const nxr_fault *fault);
void nxr_world_barrier(nxr_world *world);
/* A sign of life, for who works long while others may wait: at least one in each deadline_s. Cheap. */
void nxr_world_beat(void);
/* values[0..n) becomes the sum, or the largest, over all ranks, element by element. */
void nxr_world_sum(nxr_world *world, double *values, size_t n);
void nxr_world_max(nxr_world *world, uint64_t *values, size_t n);
/* The bits of all ranks of this host, in each of them. */
void nxr_world_host_union(nxr_world *world, void *bits, size_t n_bytes);
/* The bytes of rank 0 become everybody's. */
void nxr_world_broadcast(nxr_world *world, void *bytes, size_t n_bytes);

/* Memory that the ranks of this host share: n_bytes of each, page aligned; peers[local rank] is where each
 * begins in this process. Lives until the next one, or nxr_world_close. */
bool nxr_world_window(nxr_world *world, uint64_t n_bytes, void **peers, nxr_fault *fault);

static inline const char *nxr_world_host(const nxr_world *world, uint32_t rank) {
  return world->host_names ? world->host_names[rank] : "host unknown";
}

/* runtime/world/world_check.c: each reports through nxr_world_agree. `plan_path` is as the user gave it,
 * `command` what all ranks must have been told alike. */
bool nxr_world_check_command(nxr_world *world, const char *command);
bool nxr_world_check_launch(nxr_world *world, const nx_plan *plan, const char *plan_path);
bool nxr_world_check_same(nxr_world *world, const nx_plan *plan);
/* Gives this rank its cores; on a crowded host warns once and pins nothing. Before the first OpenMP
 * region. */
void nxr_world_pin(nxr_world *world, const nx_plan *plan);
/* For a thread that works beside the kernels: it may run on any core that the ranks of this host may, since
 * it would inherit those of the rank, which are busy. */
void nxr_world_roam(void);

#endif
