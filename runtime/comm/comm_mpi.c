/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by messages: legs (comm_legs.h) are laid out at bind, started and tested, never waited in.
 *
 * A tag says the group and, modulo those that may be under way at once, which of its starts it is. That is
 * enough: the members start alike, an earlier start with the same tag is over on the side that goes on, and
 * messages of one tag between two ranks keep their order. So few tags do: MPI promises no more than 32767.
 *
 * Requests are made anew at each start: MPICH's persistent ones are no faster (tests/bench/requests_speed).
 * All that are under way are looked at together, since MPI looks at everything whichever it is asked for.
 * MOST_UNDER_WAY messages each way are under way at a time, in the order of rounds and steps, so a
 * collective needs as many requests however large its group is. Parts that wait for each other stand in a
 * room that is lent while the collective is under way: there are few rooms, since a rank has few such
 * collectives under way at once. One that finds none waits for one, in the order of their starts. Those
 * before it can complete: all ranks of a stage start them in the same order, and what a stage has under way
 * with others has a room of its own. */
#include "runtime/comm/comm_legs.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_UNDER_WAY = NXR_MOST_UNDER_WAY,
  N_ROOMS = 4,
  LOOKED_AT /* at once, for which MPICH needs no memory */ = 64
};

/* The messages of a leg that go one way, round by round. */
typedef struct lane {
  uint32_t n_begun, n_done;
  MPI_Request requests[MOST_UNDER_WAY]; /* of steps [n_done, n_begun), in turns */
  uint32_t peers[MOST_UNDER_WAY];       /* positions of the members at their other ends */
} lane;

typedef struct courier {
  nxr_travel travel; /* first */
  uint32_t leg, round, n_rounds, n_steps;
  uint32_t n_open; /* rounds whose messages may begin */
  lane in, out;
} courier;

static MPI_Comm communicator = MPI_COMM_NULL; /* of our own; of all ranks, while a comm is open */

static courier *courier_of(const nxr_collective *collective) {
  return (courier *)(void *)collective->travel;
}

static const nxr_leg *leg_of(const courier *own) {
  return own->travel.legs[own->leg];
}

void nxr_messages_open(void) {
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
}

void nxr_messages_close(nxr_comm *comm) {
  for (uint32_t i = 0; i < comm->n_rooms; i++) free(comm->rooms[i]);
  free(comm->rooms);
  free(comm->room_is_taken);
  if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
}

/* ---- rooms ---- */

static bool outlives_stage(const nxr_comm *comm, const nxr_collective *collective) {
  uint32_t index = (uint32_t)(collective->group - comm->groups);
  return index >= comm->plan->n[NX_SECTION_GROUPS] || nx_group_crosses_stages(comm->plan, index);
}

/* Rooms are as large as the largest that is wanted; no one is in one while collectives are bound. */
static bool make_rooms(nxr_comm *comm, uint32_t n, uint64_t n_bytes) {
  if (n_bytes > comm->room_bytes || n > comm->n_rooms) {
    uint8_t **rooms = realloc(comm->rooms, n * sizeof *rooms);
    if (rooms) comm->rooms = rooms;
    bool *taken = realloc(comm->room_is_taken, n * sizeof *taken);
    if (taken) comm->room_is_taken = taken;
    if (!rooms || !taken) return false;
  }
  bool larger = n_bytes > comm->room_bytes;
  if (larger) comm->room_bytes = n_bytes;
  for (uint32_t i = larger ? 0 : comm->n_rooms; i < n; i++) {
    if (i < comm->n_rooms) free(comm->rooms[i]);
    comm->rooms[i] = aligned_alloc(64, comm->room_bytes), comm->room_is_taken[i] = false;
    if (i >= comm->n_rooms) comm->n_rooms = i + 1;
    if (!comm->rooms[i]) return false;
  }
  comm->staging_bytes = comm->n_rooms * comm->room_bytes;
  return true;
}

static bool want_room(nxr_comm *comm, const nxr_collective *collective) {
  uint64_t n_bytes = (collective->travel->staging_bytes + 63) / 64 * 64;
  if (n_bytes == 0) return true;
  if (outlives_stage(comm, collective)) comm->n_own_rooms++;
  else if (comm->n_lent_rooms < N_ROOMS) comm->n_lent_rooms++;
  return make_rooms(comm, comm->n_own_rooms + comm->n_lent_rooms, n_bytes);
}

static bool is_next(const nxr_comm *comm, const nxr_collective *collective) {
  for (uint32_t i = 0; i < comm->n_active; i++) {
    const nxr_collective *other = comm->active[i];
    if (other->travel && other->travel->wants_room && other->start < collective->start) return false;
  }
  return true;
}

static bool take_room(nxr_comm *comm, nxr_collective *collective) {
  collective->travel->wants_room = collective->travel->staging_bytes > 0;
  if (!collective->travel->wants_room) return true;
  if (!is_next(comm, collective)) return false;
  for (uint32_t i = 0; i < comm->n_rooms; i++) {
    if (comm->room_is_taken[i]) continue;
    comm->room_is_taken[i] = true;
    collective->travel->wants_room = false;
    collective->travel->staging = comm->rooms[i];
    return true;
  }
  return false;
}

static void leave_room(nxr_comm *comm, nxr_collective *collective) {
  for (uint32_t i = 0; i < comm->n_rooms; i++)
    if (comm->rooms[i] == collective->travel->staging) comm->room_is_taken[i] = false;
  collective->travel->staging = NULL;
}

/* ---- binding ---- */

/* How many groups have tags of their own. */
static uint32_t most_groups(void) {
  int *most_tag, is_known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most_tag, &is_known);
  return ((is_known ? (uint32_t)*most_tag : 32767) + 1) / NXR_WINDOW_STARTS;
}

static bool p2p_bind(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault) {
  uint32_t index = (uint32_t)(collective->group - comm->groups);
  courier *own = calloc(1, sizeof *own);
  if (!own) return nxr_fault_set(fault, "out of memory");
  collective->travel = &own->travel;
  nxr_travel_plan(collective, &own->travel);
  if (!want_room(comm, collective)) return nxr_fault_set(fault, "out of memory");
  if (index < most_groups()) return true;
  return nxr_fault_set(
      fault,
      "the plan has %u groups and channels of ranks, and the tags of this MPI (MPI_TAG_UB) tell %u apart",
      comm->n_groups, most_groups());
}

static void p2p_unbind(nxr_comm *comm, nxr_collective *collective) {
  (void)comm;
  free(courier_of(collective));
}

/* ---- moving ---- */

static int tag_of(const nxr_comm *comm, const nxr_collective *collective) {
  uint64_t turn = collective->sequence % NXR_WINDOW_STARTS;
  return (int)((uint64_t)(collective->group - comm->groups) * NXR_WINDOW_STARTS + turn);
}

static void receive(const nxr_comm *comm, const nxr_collective *collective, const nxr_message *at,
                    MPI_Request *request) {
  int rank = (int)collective->group->members[at->position];
  MPI_Irecv_c(at->bytes, (MPI_Count)at->n_bytes, MPI_BYTE, rank, tag_of(comm, collective), communicator,
              request);
}

static void send(const nxr_comm *comm, const nxr_collective *collective, const nxr_message *at,
                 MPI_Request *request) {
  int rank = (int)collective->group->members[at->position];
  MPI_Isend_c(at->bytes, (MPI_Count)at->n_bytes, MPI_BYTE, rank, tag_of(comm, collective), communicator,
              request);
}

/* Begins as many messages as may be under way. */
static void fill_lane(const nxr_comm *comm, const nxr_collective *collective, lane *own, bool sends) {
  const courier *rider = courier_of(collective);
  const nxr_leg *leg = leg_of(rider);
  uint32_t n = rider->n_open * rider->n_steps;
  for (; own->n_begun < n && own->n_begun < own->n_done + MOST_UNDER_WAY; own->n_begun++) {
    uint32_t round = own->n_begun / rider->n_steps, step = own->n_begun % rider->n_steps;
    nxr_message at = (sends ? leg->send : leg->receive)(collective, round, step);
    MPI_Request *request = &own->requests[own->n_begun % MOST_UNDER_WAY];
    *request = MPI_REQUEST_NULL;
    own->peers[own->n_begun % MOST_UNDER_WAY] = at.position;
    if (at.n_bytes > 0) (sends ? send : receive)(comm, collective, &at, request);
  }
}

/* What one look of MPI's is at. */
typedef struct look {
  MPI_Request requests[LOOKED_AT], *places[LOOKED_AT];
  int n;
  uint64_t n_seen; /* complete */
} look;

/* Where a message is complete there is no request any more. */
static void end_look(look *at) {
  int n_done = 0, done[LOOKED_AT];
  MPI_Status unread[LOOKED_AT]; /* gcc takes MPI_STATUSES_IGNORE for an array that is too small */
  if (at->n > 0) MPI_Testsome(at->n, at->requests, &n_done, done, unread);
  for (int i = 0; i < n_done; i++) *at->places[done[i]] = MPI_REQUEST_NULL;
  at->n_seen += (uint64_t)n_done;
  at->n = 0;
}

static void look_at(look *at, lane *own) {
  for (uint32_t i = own->n_done; i < own->n_begun; i++) {
    MPI_Request *request = &own->requests[i % MOST_UNDER_WAY];
    if (*request == MPI_REQUEST_NULL) continue;
    at->requests[at->n] = *request, at->places[at->n++] = request;
    if (at->n == LOOKED_AT) end_look(at);
  }
}

void nxr_messages_look(nxr_comm *comm) {
  look at = {.n = 0, .n_seen = 0};
  for (uint32_t i = 0; i < comm->n_active; i++) {
    const nxr_collective *collective = comm->active[i];
    if (!collective->travel || collective->leaves) continue;
    look_at(&at, &courier_of(collective)->in);
    look_at(&at, &courier_of(collective)->out);
  }
  end_look(&at);
  comm->n_seen += at.n_seen;
}

/* Begins further messages as earlier ones complete; true when all of the round have. */
static bool move_lane(const nxr_comm *comm, const nxr_collective *collective, lane *own, bool sends) {
  const courier *rider = courier_of(collective);
  uint32_t n = (rider->round + 1) * rider->n_steps;
  for (; own->n_done < n; own->n_done++) {
    fill_lane(comm, collective, own, sends);
    if (own->requests[own->n_done % MOST_UNDER_WAY] != MPI_REQUEST_NULL) return false;
  }
  return true;
}

/* The next round's messages. */
static void open_round(const nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  const nxr_leg *leg = leg_of(own);
  uint32_t round = own->n_open;
  if (round == own->n_rounds) return;
  if (leg->begin) leg->begin(collective, round);
  own->n_open++;
  fill_lane(comm, collective, &own->out, true); /* first: it takes its while */
  fill_lane(comm, collective, &own->in, false);
  if (leg->meanwhile) leg->meanwhile(collective, round);
}

static void begin_leg(const nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  const nxr_leg *leg = leg_of(own);
  own->round = own->n_open = 0;
  if (leg->share) return;
  own->n_rounds = leg->n_rounds(collective), own->n_steps = leg->n_steps(collective);
  own->in.n_begun = own->in.n_done = own->out.n_begun = own->out.n_done = 0;
  open_round(comm, collective);
  if (leg->apart && own->travel.n_ahead) open_round(comm, collective);
}

static void begin(nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  own->leg = 0;
  begin_leg(comm, collective);
}

static void p2p_start(nxr_comm *comm, nxr_collective *collective) {
  collective->phase = 0;
  collective->waits_for = (collective->group->position + 1) % collective->group->size;
  if (take_room(comm, collective)) begin(comm, collective);
}

static bool round_complete(const nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  bool received = move_lane(comm, collective, &own->in, false);
  bool looks = received ||
               own->out.n_begun < own->n_open * own->n_steps; /* else nothing depends on what was sent yet */
  bool sent = looks && move_lane(comm, collective, &own->out, true);
  const lane *late = received ? &own->out : &own->in;
  if (!received || !sent) collective->waits_for = late->peers[late->n_done % MOST_UNDER_WAY];
  return received && sent;
}

/* True when the leg is complete. */
static bool move(nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  const nxr_leg *leg = leg_of(own);
  if (leg->share) return leg->share(comm, collective);
  if (!round_complete(comm, collective)) return false;
  if (leg->end) leg->end(comm, collective, own->round);
  if (++own->round == own->n_rounds) return true;
  open_round(comm, collective);
  return false;
}

static bool p2p_progress(nxr_comm *comm, nxr_collective *collective) {
  courier *own = courier_of(collective);
  if (own->travel.wants_room) {
    if (!take_room(comm, collective)) return false;
    begin(comm, collective);
  }
  if (!move(comm, collective)) return false;
  own->leg++;
  if (own->leg < own->travel.n_legs) {
    begin_leg(comm, collective);
    return false;
  }
  leave_room(comm, collective);
  return true;
}

const nxr_transport nxr_transport_p2p = {"p2p", p2p_bind, p2p_start, p2p_progress, p2p_unbind};
