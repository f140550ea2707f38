/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by messages: what is sent and received is laid out at bind, started and tested, never waited
 * in.
 *
 * A tag says the group and, modulo those that may be under way at once, which of its starts it is. That is
 * enough: the members start alike, an earlier start with the same tag is over on the side that goes on, and
 * messages of one tag between two ranks keep their order. So few tags do: MPI promises no more than 32767.
 * The members' parts of a sum are received beside each other (staging) and then summed in coordinate order,
 * so the bits are those of the shared window. Sums go in rounds of at most ROUND_BYTES a member, so that
 * staging stays small. An all_reduce takes part i of every x to member i, and in a last round, begun when all
 * has left x, the sums to everyone. */
#include "runtime/comm/comm_transport.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_BYTES = 4 << 20 };

typedef struct message {
  void *bytes;
  uint64_t n_bytes;
  uint32_t position; /* of the member at the other end */
  bool is_send;
} message;

typedef struct round {
  message *messages; /* receives, then sends */
  MPI_Request *requests;
  uint32_t n, cursor;    /* those before the cursor are complete */
} round;

typedef struct messages {
  round *rounds;      /* of the sum, then the one that gathers */
  uint32_t n_rounds, n_sum_rounds;
  uint64_t n_round;   /* elements of a member in a round of the sum */
  uint8_t *staging;   /* [size] parts received, then [size] parts packed for sending, where they are needed */
  uint64_t part_bytes;
} messages;

static uint64_t x_bytes(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.x_dtype) / 8;
}

static uint64_t y_bytes(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.y_dtype) / 8;
}

static uint8_t *received(const nxr_collective *collective, uint32_t position) {
  const messages *own = collective->messages;
  return own->staging + position * own->part_bytes;
}

static uint8_t *packed(const nxr_collective *collective, uint32_t position) {
  return received(collective, collective->group->size + position);
}

static void add_message(nxr_collective *collective, uint32_t at, const message *added) {
  messages *own = collective->messages;
  round *in = &own->rounds[at];
  if (added->n_bytes > 0) in->messages[in->n++] = *added;
}

static void add_receive(nxr_collective *collective, uint32_t at, uint32_t from, void *bytes,
                        uint64_t n_bytes) {
  add_message(collective, at, &(message){.bytes = bytes, .n_bytes = n_bytes, .position = from});
}

static void add_send(nxr_collective *collective, uint32_t at, uint32_t to, const void *bytes,
                     uint64_t n_bytes) {
  void *kept = (void *)(uintptr_t)bytes; /* only read */
  add_message(collective, at, &(message){.bytes = kept, .n_bytes = n_bytes, .position = to, .is_send = true});
}

/* Of a part of n elements, what goes in round `at` of the sum. */
static uint64_t in_round(const messages *own, uint64_t n, uint32_t at, uint64_t *first) {
  *first = at * own->n_round < n ? at * own->n_round : n;
  return n - *first < own->n_round ? n - *first : own->n_round;
}

/* ---- what each operator sends ---- */

static void all_reduce_receives(nxr_collective *collective, uint32_t peer) {
  const messages *own = collective->messages;
  uint64_t first, n = nxr_comm_part(collective, collective->group->position, &first);
  for (uint32_t at = 0; at < own->n_sum_rounds; at++)
    add_receive(collective, at, peer, received(collective, peer),
                in_round(own, n, at, &first) * x_bytes(collective));
  n = nxr_comm_part(collective, peer, &first);
  add_receive(collective, own->n_sum_rounds, peer,
              (uint8_t *)collective->spec.y + first * y_bytes(collective), n * y_bytes(collective));
}

static void all_reduce_sends(nxr_collective *collective, uint32_t peer) {
  const messages *own = collective->messages;
  uint64_t first, skip, n = nxr_comm_part(collective, peer, &first);
  for (uint32_t at = 0; at < own->n_sum_rounds; at++) {
    uint64_t n_now = in_round(own, n, at, &skip);
    add_send(collective, at, peer, (const uint8_t *)collective->spec.x + (first + skip) * x_bytes(collective),
             n_now * x_bytes(collective));
  }
  n = nxr_comm_part(collective, collective->group->position, &first);
  add_send(collective, own->n_sum_rounds, peer,
           (const uint8_t *)collective->spec.y + first * y_bytes(collective), n * y_bytes(collective));
}

static void all_gather_receives(nxr_collective *collective, uint32_t peer) {
  uint64_t n_bytes = collective->spec.outer * collective->n_slice * x_bytes(collective);
  bool in_place = collective->spec.outer == 1;
  add_receive(collective, 0, peer,
              in_place ? (uint8_t *)collective->spec.y + peer * n_bytes : received(collective, peer),
              n_bytes);
}

static void all_gather_sends(nxr_collective *collective, uint32_t peer) {
  add_send(collective, 0, peer, collective->spec.x,
           collective->spec.outer * collective->n_slice * x_bytes(collective));
}

static void reduce_scatter_receives(nxr_collective *collective, uint32_t peer) {
  const messages *own = collective->messages;
  uint64_t skip, n = collective->spec.outer * collective->n_slice;
  for (uint32_t at = 0; at < own->n_sum_rounds; at++)
    add_receive(collective, at, peer, received(collective, peer),
                in_round(own, n, at, &skip) * x_bytes(collective));
}

static void reduce_scatter_sends(nxr_collective *collective, uint32_t peer) {
  const messages *own = collective->messages;
  uint64_t skip, n = collective->spec.outer * collective->n_slice;
  const uint8_t *slice = collective->spec.outer == 1
                             ? (const uint8_t *)collective->spec.x + peer * n * x_bytes(collective)
                             : packed(collective, peer);
  for (uint32_t at = 0; at < own->n_sum_rounds; at++) {
    uint64_t n_now = in_round(own, n, at, &skip);
    add_send(collective, at, peer, slice + skip * x_bytes(collective), n_now * x_bytes(collective));
  }
}

static uint64_t part_elements(const nxr_collective *collective) {
  return collective->spec.outer * collective->n_slice;
}

/* Whether a member's part stands together, so that it goes as it lies. */
static bool lies_together(const nxr_collective *collective, uint64_t n_run) {
  return n_run == part_elements(collective);
}

static void all_to_all_receives(nxr_collective *collective, uint32_t peer) {
  uint64_t n_bytes = part_elements(collective) * x_bytes(collective);
  bool in_place = lies_together(collective, collective->spec.y_run);
  add_receive(collective, 0, peer,
              in_place ? (uint8_t *)collective->spec.y + peer * n_bytes : received(collective, peer),
              n_bytes);
}

static void all_to_all_sends(nxr_collective *collective, uint32_t peer) {
  uint64_t n_bytes = part_elements(collective) * x_bytes(collective);
  bool in_place = lies_together(collective, collective->n_slice);
  add_send(collective, 0, peer,
           in_place ? (const uint8_t *)collective->spec.x + peer * n_bytes : packed(collective, peer),
           n_bytes);
}

static void shift_receives(nxr_collective *collective, uint32_t peer) {
  uint32_t size = collective->group->size;
  if (peer == (collective->group->position + size - 1) % size)
    add_receive(collective, 0, peer, collective->spec.y, collective->spec.axis * x_bytes(collective));
}

static void shift_sends(nxr_collective *collective, uint32_t peer) {
  if (peer == (collective->group->position + 1) % collective->group->size)
    add_send(collective, 0, peer, collective->spec.x, collective->spec.axis * x_bytes(collective));
}

/* Adds what this rank receives from, or sends to, a peer. */
typedef void (*adder)(nxr_collective *collective, uint32_t peer);

static const struct {
  adder receives, sends;
} adders[NX_OP_END] = {
    [NX_OP_all_reduce] = {all_reduce_receives, all_reduce_sends},
    [NX_OP_all_gather] = {all_gather_receives, all_gather_sends},
    [NX_OP_reduce_scatter] = {reduce_scatter_receives, reduce_scatter_sends},
    [NX_OP_all_to_all] = {all_to_all_receives, all_to_all_sends},
    [NX_OP_shift] = {shift_receives, shift_sends},
};

/* ---- before and after a round ---- */

static void pack_slices(nxr_collective *collective) {
  for (uint32_t peer = 0; peer < collective->group->size; peer++)
    if (peer != collective->group->position) nxr_comm_pack(collective, peer, packed(collective, peer));
}

static void place_received(nxr_collective *collective) {
  for (uint32_t i = 0; i < collective->group->size; i++) {
    bool own = i == collective->group->position;
    if (own) nxr_comm_place(collective, i, collective->spec.x);
    if (!own && collective->spec.outer > 1) nxr_comm_place(collective, i, received(collective, i));
  }
}

static void unpack_received(nxr_collective *collective) {
  uint32_t own = collective->group->position;
  nxr_comm_exchange(collective, own, own, collective->spec.x, collective->spec.y);
  for (uint32_t i = 0; i < collective->group->size && !lies_together(collective, collective->spec.y_run); i++)
    if (i != own) nxr_comm_unpack(collective, i, received(collective, i));
}

/* y[0..n) = sum over the members of what each sent; `own` is this rank's part of x. */
static void sum_received(nxr_comm *comm, nxr_collective *collective, const uint8_t *own, uint64_t skip,
                         void *y, uint64_t n) {
  if (n == 0) return;
  for (uint32_t i = 0; i < collective->group->size; i++)
    collective->sources[i] = i == collective->group->position ? own : received(collective, i) + skip;
  nxr_comm_sum(comm, collective, y, n);
}

/* Elements [first, first + n) of x and y, which this rank sums in the round that is complete. */
static void sum_run(nxr_comm *comm, nxr_collective *collective, uint64_t x_first, uint64_t y_first,
                    uint64_t n) {
  const nxr_collective_spec *spec = &collective->spec;
  sum_received(comm, collective, (const uint8_t *)spec->x + x_first * x_bytes(collective), 0,
               (uint8_t *)spec->y + y_first * y_bytes(collective), n);
}

static void sum_rows(nxr_comm *comm, nxr_collective *collective) {
  const nxr_collective_spec *spec = &collective->spec;
  uint64_t n = collective->n_slice, size = collective->group->size;
  for (uint64_t outer = 0; outer < spec->outer; outer++)
    sum_received(
        comm, collective,
        (const uint8_t *)spec->x + (outer * size + collective->group->position) * n * x_bytes(collective),
        outer * n * x_bytes(collective), (uint8_t *)spec->y + outer * n * y_bytes(collective), n);
}

static void sum_round(nxr_comm *comm, nxr_collective *collective, uint32_t at) {
  const messages *own = collective->messages;
  uint64_t first = 0, skip, n = collective->n_slice;
  if (collective->spec.op == NX_OP_reduce_scatter && collective->spec.outer > 1) {
    sum_rows(comm, collective);
  } else if (collective->spec.op == NX_OP_reduce_scatter) {
    n = in_round(own, n, at, &skip);
    sum_run(comm, collective, collective->group->position * collective->n_slice + skip, skip, n);
  } else {
    n = nxr_comm_part(collective, collective->group->position, &first);
    n = in_round(own, n, at, &skip);
    sum_run(comm, collective, first + skip, first + skip, n);
  }
}

/* ---- the transport ---- */

/* Whether what is sent does not lie in x as it goes. */
static bool packs(const nxr_collective *collective) {
  bool cuts = collective->spec.op == NX_OP_reduce_scatter || collective->spec.op == NX_OP_all_to_all;
  return cuts && collective->spec.outer > 1;
}

/* How many rounds there are, and how much of a member's part goes in one of the sum: the same on all
 * members. */
static void lay_out(const nxr_collective *collective, messages *own) {
  uint64_t first, n_part = part_elements(collective);
  bool sums = collective->spec.op == NX_OP_all_reduce || collective->spec.op == NX_OP_reduce_scatter;
  if (collective->spec.op == NX_OP_all_reduce)
    n_part = nxr_comm_part(collective, 0, &first); /* the largest */
  own->n_round = ROUND_BYTES / x_bytes(collective);
  bool whole = collective->spec.outer > 1 || collective->spec.op == NX_OP_all_to_all;
  if (whole || n_part < own->n_round) own->n_round = n_part;
  own->n_sum_rounds = sums ? (uint32_t)((n_part + own->n_round - 1) / own->n_round) : 0;
  own->n_rounds = own->n_sum_rounds + (collective->spec.op != NX_OP_reduce_scatter);
  bool stages =
      sums || collective->spec.outer > 1 ||
      (collective->spec.op == NX_OP_all_to_all && !lies_together(collective, collective->spec.y_run));
  own->part_bytes = stages ? (own->n_round * x_bytes(collective) + 63) / 64 * 64 : 0;
}

static bool make_room(nxr_comm *comm, nxr_collective *collective, messages *own) {
  uint64_t size = collective->group->size;
  lay_out(collective, own);
  uint64_t n_bytes = own->part_bytes * size * (packs(collective) ? 2 : 1);
  comm->staging_bytes += n_bytes;
  if (n_bytes && !(own->staging = aligned_alloc(64, n_bytes))) return false;
  if (n_bytes) memset(own->staging, 0, n_bytes);
  own->rounds = calloc(own->n_rounds, sizeof *own->rounds);
  for (uint32_t at = 0; own->rounds && at < own->n_rounds; at++) {
    own->rounds[at].requests = calloc(2 * size, sizeof *own->rounds[at].requests);
    own->rounds[at].messages = calloc(2 * size, sizeof *own->rounds[at].messages);
    if (!own->rounds[at].requests || !own->rounds[at].messages) return false;
  }
  return own->rounds != NULL;
}

/* How many groups have tags of their own. */
static uint32_t most_groups(void) {
  int *most_tag, is_known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most_tag, &is_known);
  return ((is_known ? (uint32_t)*most_tag : 32767) + 1) / NXR_WINDOW_STARTS;
}

static bool p2p_bind(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault) {
  nxr_comm_group *group = collective->group;
  uint32_t index = (uint32_t)(group - comm->groups);
  messages *own = collective->messages = calloc(1, sizeof *own);
  if (!own || !make_room(comm, collective, own)) return nxr_fault_set(fault, "out of memory");
  if (index >= most_groups())
    return nxr_fault_set(
        fault,
        "the plan has %u groups and channels of ranks, and the tags of this MPI (MPI_TAG_UB) "
        "tell %u apart",
        comm->n_groups, most_groups());
  nx_op op = collective->spec.op;
  if ((int)op == NXR_TRANSFER) {
    if (group->position == 0) add_send(collective, 0, 1, collective->spec.x, collective->spec.axis);
    if (group->position == 1) add_receive(collective, 0, 0, collective->spec.y, collective->spec.axis);
    return true;
  }
  for (uint32_t peer = 0; peer < group->size; peer++)
    if (peer != group->position) adders[op].receives(collective, peer);
  for (uint32_t peer = 0; peer < group->size; peer++)
    if (peer != group->position) adders[op].sends(collective, peer);
  return true;
}

static void p2p_unbind(nxr_comm *comm, nxr_collective *collective) {
  (void)comm;
  messages *own = collective->messages;
  if (!own) return;
  for (uint32_t at = 0; own->rounds && at < own->n_rounds; at++) {
    free(own->rounds[at].requests);
    free(own->rounds[at].messages);
  }
  free(own->rounds);
  free(own->staging);
  free(own);
}

static void start_round(const nxr_comm *comm, const nxr_collective *collective, round *in) {
  uint64_t turn = collective->sequence % NXR_WINDOW_STARTS;
  int tag = (int)((uint64_t)(collective->group - comm->groups) * NXR_WINDOW_STARTS + turn);
  in->cursor = 0;
  for (uint32_t i = 0; i < in->n; i++) {
    const message *at = &in->messages[i];
    int rank = (int)collective->group->members[at->position];
    if (at->is_send)
      MPI_Isend_c(at->bytes, (MPI_Count)at->n_bytes, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &in->requests[i]);
    else
      MPI_Irecv_c(at->bytes, (MPI_Count)at->n_bytes, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &in->requests[i]);
  }
}

static void p2p_start(nxr_comm *comm, nxr_collective *collective) {
  messages *own = collective->messages;
  if (packs(collective)) pack_slices(collective);
  start_round(comm, collective, &own->rounds[0]);
}

static bool round_complete(nxr_collective *collective, round *in) {
  for (; in->cursor < in->n; in->cursor++) {
    int done = 0;
    collective->waits_for = in->messages[in->cursor].position;
    MPI_Test(&in->requests[in->cursor], &done, MPI_STATUS_IGNORE);
    if (!done) return false;
  }
  return true;
}

static bool p2p_progress(nxr_comm *comm, nxr_collective *collective) {
  messages *own = collective->messages;
  uint32_t at = collective->phase - 1;
  if (!round_complete(collective, &own->rounds[at])) return false;
  if (at < own->n_sum_rounds) sum_round(comm, collective, at);
  if (at + 1 == own->n_rounds) {
    if (collective->spec.op == NX_OP_all_gather) place_received(collective);
    if (collective->spec.op == NX_OP_all_to_all) unpack_received(collective);
    return true;
  }
  collective->phase++;
  start_round(comm, collective, &own->rounds[at + 1]);
  return false;
}

const nxr_transport nxr_transport_p2p = {"p2p", p2p_bind, p2p_start, p2p_progress, p2p_unbind};
