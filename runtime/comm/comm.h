/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives within a step: bytes are moved, sums are the backend's, and no wait is for ever.
 *
 * A collective is bound once to its operands' addresses and started any number of times; it is complete after
 * its wait. Copies and sums are work of the ranks' own threads: between operators, and in every wait, all
 * collectives that were started are moved along as far as their members have come, so their waits may come in
 * any order. Members of a group start their collectives in the same order (proved when the plan is loaded);
 * the k-th start of one rank meets the k-th of the others. Sums run over the members in coordinate order,
 * accumulated in fp32 (fp64 for f64) and rounded once, or in pairs (comm_pairs.h), whatever the transport:
 * the bits depend on the plan alone.
 *
 * Two transports: `shared` reads the peers' memory in the host's window (comm_shared.c), `p2p` sends messages
 * (comm_mpi.c). A group uses `shared` where all of its members are on this host and its operands are in the
 * window. Where the backend's memory is not the host's, operands are copied to pinned memory of the host when
 * a collective starts, moved and summed there, and copied back when it is complete, all beside the kernels
 * (comm_staged.c): start and wait order the device's queues, and the host waits for its peers alone. What the
 * run itself says, a vote, never leaves the host. Between pipeline stages there are channels, of two ranks
 * each, for every pair of neighbouring chunks and direction. Nothing here allocates after bind. NXRUN_DELAY=N
 * in the environment makes every start and wait sleep for a while that is drawn with key N: a test that no
 * result depends on the timing. A wait that passes the deadline, while the rank waited for shows no sign of
 * life, ends the whole run with a message that names rank, operator and peer. */
#ifndef NXR_COMM_H
#define NXR_COMM_H

#include "runtime/comm/arena.h"

typedef struct nxr_comm nxr_comm;
typedef struct nxr_collective nxr_collective;

enum { NXR_TRANSFER = NX_OP_END, NXR_VOTE };

/* The shape is outer x axis x inner: one dimension grows or shrinks, `axis` counts it in x. For all_reduce
 * and shift outer and inner are 1. In an all_to_all `axis` is the one that is divided; along the one that
 * grows, y has the members' parts in turns, y_run elements of each at a time. */
typedef struct nxr_collective_spec {
  nx_op op; /* a collective of ops.def; NXR_TRANSFER: x of the first member is y of the second; NXR_VOTE: y is
             * positive where some x is, all of them 0 or 1 */
  nx_way way; /* of messages */
  uint32_t group; /* of the plan; NX_NONE: all ranks; beyond the plan's groups: 1 + a channel */
  nx_dtype x_dtype, y_dtype;
  void *x, *y;
  uint64_t outer, axis, inner;
  uint64_t y_run; /* all_to_all alone */
  bool on_host;   /* the operands are memory of the runtime, not of the backend */
  uint32_t
  operator; /* of the plan, or its number of operators + an item, for messages; NX_NONE: the run's own */
} nxr_collective_spec;

/* Control bytes that the arenas must set aside for a plan. */
uint64_t nxr_comm_control_bytes(const nx_plan *plan);
bool nxr_comm_open(nxr_world *world, const nx_plan *plan, const nxk_backend *backend, nxk_device *device,
                   const nxr_arenas *arenas, double deadline_s, nxr_comm **comm, nxr_fault *fault);
void nxr_comm_close(nxr_comm *comm);
/* Who is told what this rank waits for, while another shows no sign of life. */
typedef void nxr_comm_teller(void *told, const char *wait);
void nxr_comm_tells(nxr_comm *comm, nxr_comm_teller *tell, void *told);

/* All members bind their collectives of a group in the same order. The comm owns the result. */
nxr_collective *nxr_comm_bind(nxr_comm *comm, const nxr_collective_spec *spec, nxr_fault *fault);
/* A port of a chunk of this rank's stage: what it sends, or where it receives. The k-th start of one end of a
 * channel meets the k-th of the other, whichever slots they are in. */
nxr_collective *nxr_comm_bind_transfer(nxr_comm *comm, uint32_t chunk, nx_port port, void *bytes,
                                       uint64_t n_bytes, nxr_fault *fault);
/* Says which item of the schedule the next start is. */
void nxr_comm_name_transfer(const nxr_comm *comm, nxr_collective *collective, uint32_t item);
void nxr_comm_start(nxr_comm *comm, nxr_collective *collective);
/* Returns at once where the collective was not started since its last wait. */
void nxr_comm_wait(nxr_comm *comm, nxr_collective *collective);
/* Before what takes a while. Moves along what was started, as far as the peers have come: copies and sums
 * whatever is ready, waits for nothing; or has the thread do so (comm_thread.c). */
void nxr_comm_progress(nxr_comm *comm);

/* Whether any rank says true; meets all ranks. */
bool nxr_comm_vote(nxr_comm *comm, bool own);
/* Several questions at once: *votes becomes what any rank says. */
enum { NXR_MOST_VOTES = 6 };
void nxr_comm_votes(nxr_comm *comm, bool votes[], uint32_t n);
/* A sign of life: what this rank is about to run; steps count from 1. */
void nxr_comm_beat(nxr_comm *comm, uint64_t step, uint32_t operator);
/* Where kernels are only handed to a device (comm_lead.c): behind each of them, which waits where the device
 * is far behind; and until it has done all. */
void nxr_comm_enqueued(nxr_comm *comm);
void nxr_comm_finish(nxr_comm *comm);
/* What was bound on this rank. */
typedef struct nxr_comm_size {
  uint64_t n_collectives, n_by_messages; /* transfers are counted too */
  uint64_t n_messages, n_requests;       /* of all of them; requests that there is room for */
  uint64_t n_peers;                      /* ranks to which or from which messages go */
  uint64_t unwanted_bytes; /* the most that MPI sets aside of what comes before this rank wants it */
} nxr_comm_size;
nxr_comm_size nxr_comm_measure(const nxr_comm *comm);
/* Memory beyond arenas and control that the message transport holds. */
uint64_t nxr_comm_staging_bytes(const nxr_comm *comm);
/* Of it what operands of a device are copied to: nx_plan_staging_bytes. */
uint64_t nxr_comm_copied_bytes(const nxr_comm *comm);

#endif
