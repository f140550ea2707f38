/* SPDX-License-Identifier: Apache-2.0 */
/* What runtime/comm/comm.c and its transports share: the state of a collective and of its group.
 *
 * A collective goes through phases; `progress` does what can be done without waiting and says whether it is
 * complete. Until then `waits_for` is the position of the member that it needs. */
#ifndef NXR_COMM_TRANSPORT_H
#define NXR_COMM_TRANSPORT_H

#include "runtime/comm/comm.h"

#include <stdatomic.h>

enum { NXR_WINDOW_STARTS = 8 /* starts of one group that may be under way at once */ };

/* What a rank posts about one start; its peers read it. */
typedef struct nxr_post {
  _Atomic uint64_t flag; /* 4 x sequence + phase */
  uint64_t x, y;         /* where its operands lie in its segment */
  uint64_t signature;    /* of operator, shape and types: equal on all members */
} nxr_post;

/* The first bytes of a rank's control memory. */
typedef struct nxr_pulse {
  _Atomic uint64_t beats;
  _Atomic uint64_t step;
  _Atomic uint32_t operator;
  _Atomic uint32_t waits_for; /* 1 + the rank that it has been waiting for for a while; 0: none */
  uint8_t padding[40];
  double votes_in[NXR_MOST_VOTES], votes_out[NXR_MOST_VOTES];
  uint8_t rest[32];
} nxr_pulse;
_Static_assert(sizeof(nxr_pulse) == 192, "whole cache lines, the votes' behind the signs of life");

typedef struct nxr_comm_group {
  const char *name;
  uint32_t *members; /* [size], ranks in coordinate order */
  uint32_t size, position;
  bool on_host;      /* all members on this host */
  uint64_t n_started;
  nxr_post **posts;  /* [size]: each member's NXR_WINDOW_STARTS posts; NULL where not on this host */
  nxr_collective *started[NXR_WINDOW_STARTS];
} nxr_comm_group;

typedef struct nxr_transport {
  const char *name;
  bool (*bind)(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault);
  void (*start)(nxr_comm *comm, nxr_collective *collective);
  bool (*progress)(nxr_comm *comm, nxr_collective *collective);
  void (*unbind)(nxr_comm *comm, nxr_collective *collective);
} nxr_transport;

struct nxr_collective {
  nxr_collective_spec spec;
  nxr_comm_group *group;
  const nxr_transport *transport;
  nxr_collective *next; /* bound before it */
  uint64_t sequence;
  uint32_t phase;
  uint32_t waits_for;
  bool active;
  uint64_t n_slice; /* elements of one member's part that lie together, where the members' parts are equal */
  uint64_t signature;
  const void **sources; /* [size], for a sum */
  void *device_x,
      *device_y;        /* where spec.x and spec.y are copies of the backend's memory; NULL: they are it */
  void *messages;       /* comm_mpi.c's */
};

struct nxr_comm {
  nxr_world *world;
  const nx_plan *plan;
  const nxk_backend *backend;
  nxk_device *device;
  nxk_stream *stream;
  const nxr_arenas *arenas;
  nxr_comm_group *groups; /* of the plan, then the one of all ranks, then channels */
  uint32_t n_groups;
  nxr_collective *last;   /* bound; a list */
  nxr_collective **active;
  uint32_t n_active, n_bound;
  nxr_collective *vote;
  nxr_pulse *pulse;
  double deadline_s;
  uint64_t delay_state; /* of the random delays; 0: none */
  uint64_t staging_bytes; /* of messages */
  uint64_t copied_bytes;  /* of operands that are a device's */
};

extern const nxr_transport nxr_transport_shared;
extern const nxr_transport nxr_transport_p2p;

/* y[0..n) = sum of the collective's sources, on the host where its operands are there. */
void nxr_comm_sum(nxr_comm *comm, const nxr_collective *collective, void *y, uint64_t n);
/* Ends the run: this collective can not be completed. */
_Noreturn void nxr_comm_fail(nxr_comm *comm, const nxr_collective *collective, uint32_t peer,
                             const char *what);
/* The part of an all_reduce that the member at `position` sums: elements [*first, return value + *first). */
uint64_t nxr_comm_part(const nxr_collective *collective, uint32_t position, uint64_t *first);
/* y[outer][member][axis x inner] from the members' x[outer][axis x inner], one member at a time. */
void nxr_comm_place(const nxr_collective *collective, uint32_t position, const void *x);
/* all_to_all: what goes to the member at `to` of an x, or what comes from the one at `from` of y, where it
 * stands among the others' parts (x, y) or one element behind the other (packed). */
void nxr_comm_exchange(const nxr_collective *collective, uint32_t from, uint32_t to, const void *x, void *y);
void nxr_comm_pack(const nxr_collective *collective, uint32_t to, void *packed);
void nxr_comm_unpack(const nxr_collective *collective, uint32_t from, const void *packed);

#endif
