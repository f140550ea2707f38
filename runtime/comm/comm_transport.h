/* SPDX-License-Identifier: Apache-2.0 */
/* What runtime/comm/comm.c and its transports share: the state of a collective and of its group.
 *
 * A collective goes through phases; `progress` does what can be done without waiting and says whether it is
 * complete. Until then `waits_for` is the position of the member that it needs. No transport knows of one
 * that still `leaves`: its operand, or that of one started before it, is being copied from the device
 * (comm_staged.c), or its group has no post for it. */
#ifndef NXR_COMM_TRANSPORT_H
#define NXR_COMM_TRANSPORT_H

#include "runtime/comm/comm.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>

enum { NXR_WINDOW_STARTS = 8 /* starts of one group that transports may know of at once */ };

/* What a rank posts about one start; its peers read it. */
typedef struct nxr_post {
  _Atomic uint64_t flag; /* 4 x sequence + phase */
  uint64_t x, y;         /* where its operands lie in its segment */
  uint64_t signature;    /* of operator, shape and types: equal on all members */
} nxr_post;

/* What a member brings to a start, where that is small: the others read it here. */
enum { NXR_SMALL_BYTES = 256, NXR_SMALL_MEMBERS = 16, NXR_SMALL_STARTS = 2 * NXR_WINDOW_STARTS };
typedef struct nxr_small {
  _Alignas(64) uint64_t signature;
  _Alignas(64) uint8_t x[NXR_SMALL_BYTES];
} nxr_small;

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
  uint32_t n_local;  /* members on each host, where they lie in order and every host has as many; else 0 */
  uint64_t n_started;
  nxr_post **posts;  /* [size]: each member's NXR_WINDOW_STARTS posts; NULL where not on this host */
  nxr_small **smalls; /* [size]: each member's NXR_SMALL_STARTS; NULL where not on this host */
  nxr_collective *posted[NXR_WINDOW_STARTS]; /* what had each post last; NULL: nothing yet */
  uint32_t *in_pairs; /* [size]: positions; each n_paired of them are summed in pairs; NULL: none are */
  uint32_t n_paired;
} nxr_comm_group;

typedef struct nxr_transport {
  const char *name;
  bool (*bind)(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault);
  void (*start)(nxr_comm *comm, nxr_collective *collective);
  bool (*progress)(nxr_comm *comm, nxr_collective *collective);
  void (*unbind)(nxr_comm *comm, nxr_collective *collective);
} nxr_transport;

/* Where the operands are a device's: spec.x and spec.y are copies on the host. */
typedef struct nxr_staging {
  bool used;
  bool arrives;      /* and no kernel waits for it yet */
  void *x, *y;       /* on the device */
  nxk_event *ready;  /* the kernels before the start have run */
  nxk_event *left;   /* x is on the host */
  nxk_event *arrived; /* y is on the device */
} nxr_staging;

struct nxr_collective {
  nxr_collective_spec spec;
  nxr_comm_group *group;
  const nxr_transport *transport;
  nxr_collective *next; /* bound before it */
  uint64_t sequence;
  uint32_t phase;
  uint32_t waits_for;
  _Atomic bool active; /* what it made is there when it is not */
  bool leaves;
  bool is_small; /* in the window: its x is copied to where the others read it */
  uint64_t n_slice; /* elements of one member's part that lie together, where the members' parts are equal */
  uint64_t signature;
  const void **sources; /* [size], for a sum */
  nxr_staging staging;
  struct nxr_travel *travel; /* by messages (comm_legs.h); NULL: in the window */
  uint64_t start;            /* number among all starts of this rank */
};

/* comm_thread.c */
typedef enum nxr_mover { NXR_MOVED_BY_OPERATORS, NXR_MOVED_BY_THREAD, NXR_MOVED_AT_ONCE } nxr_mover;

/* Marks behind kernels: n_set of them so far, of which the device has reached n_reached. */
enum { NXR_LEAD_MARKS = 64 };
typedef struct nxr_lead {
  nxk_event *marks[NXR_LEAD_MARKS];
  uint64_t n_set, n_reached;
  uint32_t n_unmarked; /* kernels behind the last one */
} nxr_lead;

struct nxr_comm {
  nxr_world *world;
  const nx_plan *plan;
  const nxk_backend *backend;
  nxk_device *device;
  const nxr_arenas *arenas;
  nxr_comm_group *groups; /* of the plan, then the one of all ranks, then channels */
  uint32_t n_groups;
  nxr_collective *last;   /* bound; a list */
  nxr_collective **active;
  uint32_t n_active, n_bound;
  nxr_collective *vote;
  nxr_pulse *pulse;
  double deadline_s;
  nxr_comm_teller *tell; /* NULL: nobody listens */
  void *told;
  double told_s; /* how long the wait was when it was told of last */
  nxr_lead lead;
  uint64_t delay_state; /* of the random delays; 0: none */
  uint64_t n_starts;
  uint64_t n_seen; /* messages that were found complete */
  uint64_t n_begun;  /* of them, those that a transport knows of */
  uint8_t **rooms;        /* [n_rooms] of room_bytes: comm_mpi.c's */
  bool *room_is_taken;
  uint32_t n_rooms, n_own_rooms, n_lent_rooms;
  uint64_t room_bytes;
  uint64_t staging_bytes; /* of messages */
  uint64_t copied_bytes;  /* of operands that are a device's */
  nxr_mover mover;
  pthread_t thread; /* from here on only where there is one */
  pthread_mutex_t lock;
  pthread_cond_t started;
  bool ends, rank_waits;
  bool rank_helps; /* between operators, since the thread has no core of its own */
  bool to_wake; /* the rank's own: where it goes on, the thread has something to move */
  fenv_t environment;
  nxk_device *thread_device;
};

extern const nxr_transport nxr_transport_shared;

/* Of a collective between hosts, among the members of its group that are on this one: says that it has come
 * to a phase, with its y ready to be read; whether all of them have; and where the y of one is. */
enum { NXR_READY = 1, NXR_SUMMED = 2, NXR_FINISHED = 3 };
void nxr_shared_post(const nxr_comm *comm, nxr_collective *collective, uint32_t phase);
bool nxr_shared_all_there(nxr_collective *collective);
const uint8_t *nxr_shared_y(const nxr_comm *comm, const nxr_collective *collective, uint32_t position);
extern const nxr_transport nxr_transport_p2p;

/* What the ranks' messages are told apart by from others of MPI's. */
void nxr_messages_open(void);
void nxr_messages_close(nxr_comm *comm);
/* Finds which messages are complete, for the transport's next progress; under the lock. */
void nxr_messages_look(nxr_comm *comm);

/* comm_thread.c: nothing where there is no thread. The lock is for all that is under way. */
bool nxr_comm_thread_open(nxr_comm *comm, nxr_fault *fault);
void nxr_comm_thread_close(nxr_comm *comm);
void nxr_comm_lock(nxr_comm *comm);
void nxr_comm_unlock(nxr_comm *comm);
void nxr_comm_wake(nxr_comm *comm);
/* Whether the rank itself is to move what is under way, here between operators; then it has the lock. */
bool nxr_comm_helps(nxr_comm *comm);
/* That of the thread which asks. */
nxk_device *nxr_comm_sum_device(const nxr_comm *comm);
/* comm.c: copies and sums whatever is ready; under the lock. */
void nxr_comm_move_all(nxr_comm *comm);

/* comm_groups.c: those of the plan, that of all ranks, and channels between neighbouring chunks. */
bool nxr_comm_groups_open(nxr_comm *comm, nxr_fault *fault);
void nxr_comm_groups_close(nxr_comm *comm);
/* Control memory of a rank, from its pulse on; NULL: it is on another host. */
uint8_t *nxr_comm_control(const nxr_comm *comm, uint32_t rank);

/* comm_staged.c: nothing where the operands are the host's. At the start; whether the transport may begin;
 * when it is done; at the wait. */
bool nxr_staged_open(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault);
void nxr_staged_begin(const nxr_comm *comm, nxr_collective *collective);
bool nxr_staged_left(const nxr_comm *comm, const nxr_collective *collective);
void nxr_staged_end(const nxr_comm *comm, nxr_collective *collective);
void nxr_staged_join(const nxr_comm *comm, nxr_collective *collective);

/* comm_lead.c: nothing where the backend's memory is the host's. Marks that were reached are signs of
 * life. */
bool nxr_lead_open(nxr_comm *comm, nxr_fault *fault);
void nxr_lead_look(nxr_comm *comm);
/* A sign of life. */
void nxr_comm_live(nxr_comm *comm);

/* y[0..n) = sum of the collective's sources, on the host where its operands are there. */
void nxr_comm_sum(nxr_comm *comm, const nxr_collective *collective, void *y, uint64_t n);
/* comm_fail.c. Tells of a wait every few seconds that the other shows no sign of life. */
enum { NXR_TELLS_EVERY_S = 5 };
void nxr_comm_tell(nxr_comm *comm, const nxr_collective *collective, uint32_t peer, double silent_s);
/* Ends the run: this collective can not be completed; the device stands still. */
_Noreturn void nxr_comm_fail(nxr_comm *comm, const nxr_collective *collective, uint32_t peer,
                             const char *what);
_Noreturn void nxr_comm_fail_device(nxr_comm *comm);
/* Of its operands. */
uint64_t nxr_comm_x_bytes(const nxr_collective *collective);
uint64_t nxr_comm_y_bytes(const nxr_collective *collective);
/* The part of an all_reduce that the member at `position` sums: elements [*first, return value + *first). */
uint64_t nxr_comm_part(const nxr_collective *collective, uint32_t position, uint64_t *first);
/* y[outer][member][axis x inner] from the members' x[outer][axis x inner], one member at a time. */
void nxr_comm_place(const nxr_collective *collective, uint32_t position, const void *x);
/* all_to_all: what goes to the member at `to` of an x, or what comes from the one at `from` of y, where it
 * stands among the others' parts (x, y). */
void nxr_comm_exchange(const nxr_collective *collective, uint32_t from, uint32_t to, const void *x, void *y);
/* Elements [first, first + n) of the part for the member at `to`, or of what came from the one at `from`,
 * between x or y and where they stand one behind the other. */
void nxr_comm_pack(const nxr_collective *collective, uint32_t to, uint64_t first, uint64_t n, void *packed);
void nxr_comm_unpack(const nxr_collective *collective, uint32_t from, uint64_t first, uint64_t n,
                     const void *packed);

#endif
