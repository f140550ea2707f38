/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/world_meet.h"

#include "runtime/files/fault.h"
#include "runtime/world/clock.h"
#include "runtime/world/pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLLS_PER_CLOCK = 64, YIELDS = 1 << 14, NAP_US = 200 };
enum { WORDS, BYTES };           /* tags */
enum { PIECE_BYTES = 64 << 10 }; /* of what is exchanged: whole numbers, whatever their type */
enum { COME = 1, ALIVE, WAIT, GO }; /* a rank to rank 0: COME, ALIVE; rank 0 to a rank: WAIT, GO */
static const double SIGNS_PER_DEADLINE = 8, LONGEST_BETWEEN_SIGNS_S = 1;

/* What rank 0 knows of a rank. The others use the entry of rank 0, for rank 0. */
typedef struct peer {
  int32_t said, answer;
  bool has_come;
  double heard_s;       /* when it gave its last sign */
  MPI_Request in, out;
} peer;

static MPI_Comm communicator = MPI_COMM_NULL;
static nxr_world *meeting; /* NULL: not open */
static peer *peers;        /* rank 0: [size]; elsewhere [1] */
static uint32_t n_peers;
static uint32_t n_come;    /* on rank 0 */
static double sign_s;      /* when this rank gave its last sign */

static bool is_alone(const nxr_world *world) {
  return world->size == 1 || world->alone;
}

static void listen(uint32_t index) {
  MPI_Irecv(&peers[index].said, 1, MPI_INT32_T, (int)index, WORDS, communicator, &peers[index].in);
}

bool nxr_meet_open(nxr_world *world, nxr_fault *fault) {
  n_peers = world->rank == 0 ? world->size : 1;
  peers = calloc(n_peers, sizeof *peers);
  if (!peers) return nxr_fault_set(fault, "out of memory");
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  for (uint32_t i = 0; i < n_peers; i++) {
    peers[i].in = peers[i].out = MPI_REQUEST_NULL;
    if (i != world->rank) listen(i);
  }
  meeting = world;
  return true;
}

void nxr_meet_close(void) {
  for (uint32_t i = 0; peers && i < n_peers; i++) {
    MPI_Wait(&peers[i].out, MPI_STATUS_IGNORE);
    if (peers[i].in == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&peers[i].in);
    MPI_Wait(&peers[i].in, MPI_STATUS_IGNORE);
  }
  if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
  free(peers);
  peers = NULL, meeting = NULL;
}

static _Noreturn void give_up(const nxr_world *world, const char *for_whom) {
  nxr_print(stderr,
          "nxrun: rank %u (%s) waits %s: %s gave no sign of life for %g s (run.deadline_s); it stands still, "
          "or its "
          "files are out of reach\n",
          world->rank, nxr_world_host(world, world->rank), world->phase, for_whom, world->deadline_s);
  nxr_world_abort(1);
}

static _Noreturn void give_up_on(const nxr_world *world, uint32_t rank) {
  char name[NXR_HOST_BYTES + 32];
  snprintf(name, sizeof name, "rank %u (%s)", rank, nxr_world_host(world, rank));
  give_up(world, name);
}

/* MPICH's own waiting never gives its core away, which costs milliseconds where ranks share cores. */
static nxr_pause pausing(const nxr_world *world) {
  return (nxr_pause){.yields = YIELDS, .nap_us = NAP_US, .crowded = world->crowded};
}

/* One message to a rank at a time; where the last one has not left yet this one is dropped unless it `must`
 * go. */
static void say(const nxr_world *world, uint32_t index, int32_t what, bool must) {
  peer *to = &peers[index];
  double since = nxr_clock_s();
  int sent = 0;
  nxr_pause pause = pausing(world);
  while (MPI_Test(&to->out, &sent, MPI_STATUS_IGNORE) == MPI_SUCCESS && !sent) {
    if (!must) return;
    nxr_pause_once(&pause);
    if (nxr_clock_s() - since > world->deadline_s) give_up_on(world, index);
  }
  to->answer = what;
  MPI_Isend(&to->answer, 1, MPI_INT32_T, (int)index, WORDS, communicator, &to->out);
}

static bool is_time_for_sign(const nxr_world *world, double now) {
  double span = world->deadline_s / SIGNS_PER_DEADLINE;
  if (span > LONGEST_BETWEEN_SIGNS_S) span = LONGEST_BETWEEN_SIGNS_S;
  if (now - sign_s < span) return false;
  sign_s = now;
  return true;
}

/* ---- rank 0 ---- */

static void hear(double now) {
  for (uint32_t i = 1; i < meeting->size; i++) {
    int heard = 0;
    while (!peers[i].has_come && MPI_Test(&peers[i].in, &heard, MPI_STATUS_IGNORE) == MPI_SUCCESS && heard) {
      peers[i].heard_s = now;
      peers[i].has_come = peers[i].said == COME;
      n_come += peers[i].has_come;
      listen(i);
    }
  }
}

static void comfort(const nxr_world *world) {
  for (uint32_t i = 1; i < world->size; i++)
    if (peers[i].has_come) say(world, i, WAIT, false);
}

static void receive_all(nxr_world *world) {
  double since = nxr_clock_s(), now = since;
  hear(now);
  for (nxr_pause pause = pausing(world); n_come + 1 < world->size;) {
    nxr_pause_once(&pause);
    if (pause.polls % POLLS_PER_CLOCK == 0) now = nxr_clock_s();
    hear(now);
    if (is_time_for_sign(world, now)) comfort(world);
    for (uint32_t i = 1; i < world->size; i++) {
      double last = peers[i].heard_s > since ? peers[i].heard_s : since;
      if (!peers[i].has_come && now - last > world->deadline_s) give_up_on(world, i);
    }
  }
  n_come = 0;
  for (uint32_t i = 1; i < world->size; i++) peers[i].has_come = false;
}

static void send_all_on(const nxr_world *world) {
  for (uint32_t i = 1; i < world->size; i++) say(world, i, GO, true);
}

/* ---- the others ---- */

/* Rank 0 gives up first where it waits too, since it knows for whom: so a little more patience here. */
static void come(nxr_world *world) {
  peer *first = &peers[0];
  double since = nxr_clock_s(), patience = world->deadline_s + 1 + world->deadline_s / SIGNS_PER_DEADLINE;
  say(world, 0, COME, true);
  for (nxr_pause pause = pausing(world);;) {
    int heard = 0, sent = 0;
    MPI_Test(&first->in, &heard, MPI_STATUS_IGNORE);
    if (heard) {
      bool all_come = first->said == GO;
      listen(0);
      if (all_come) return;
      since = nxr_clock_s();
    }
    MPI_Test(&first->out, &sent, MPI_STATUS_IGNORE);
    nxr_pause_once(&pause);
    if (pause.polls % POLLS_PER_CLOCK == 0 && nxr_clock_s() - since > patience) give_up_on(world, 0);
  }
}

void nxr_meet(nxr_world *world) {
  if (is_alone(world)) return;
  if (world->rank != 0) {
    come(world);
    return;
  }
  receive_all(world);
  send_all_on(world);
}

/* ---- with a few bytes ---- */

/* Waits for a message from a rank, or to it. */
static void complete_with(const nxr_world *world, MPI_Request *request, uint32_t rank) {
  double since = nxr_clock_s();
  nxr_pause pause = pausing(world);
  for (int done = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;) {
    nxr_pause_once(&pause);
    if (pause.polls % POLLS_PER_CLOCK == 0 && nxr_clock_s() - since > world->deadline_s)
      give_up_on(world, rank);
  }
}

/* The bytes leave before the word that this rank has come, so rank 0 waits for none that is not under way. */
static void exchange_with_first(nxr_world *world, void *bytes, size_t n_bytes) {
  MPI_Request request;
  MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, 0, BYTES, communicator, &request);
  come(world);
  complete_with(world, &request, 0);
  MPI_Irecv(bytes, (int)n_bytes, MPI_BYTE, 0, BYTES, communicator, &request);
  complete_with(world, &request, 0);
}

static void exchange_piece(nxr_world *world, void *bytes, size_t n_bytes, nxr_combine *combine) {
  static _Alignas(16) uint8_t one[PIECE_BYTES];
  MPI_Request request;
  if (world->rank != 0) {
    exchange_with_first(world, bytes, n_bytes);
    return;
  }
  receive_all(world);
  for (uint32_t i = 1; i < world->size; i++) {
    MPI_Irecv(one, (int)n_bytes, MPI_BYTE, (int)i, BYTES, communicator, &request);
    complete_with(world, &request, i);
    combine(bytes, one, n_bytes);
  }
  send_all_on(world);
  for (uint32_t i = 1; i < world->size; i++) {
    MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, (int)i, BYTES, communicator, &request);
    complete_with(world, &request, i);
  }
}

void nxr_meet_exchange(nxr_world *world, void *bytes, size_t n_bytes, nxr_combine *combine) {
  if (is_alone(world)) return;
  for (size_t at = 0; at < n_bytes; at += PIECE_BYTES) {
    size_t n = n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES;
    exchange_piece(world, (uint8_t *)bytes + at, n, combine);
  }
}

void nxr_world_beat(void) {
  nxr_world *world = meeting;
  double now = nxr_clock_s();
  if (!world || is_alone(world) || !is_time_for_sign(world, now)) return;
  if (world->rank != 0) {
    say(world, 0, ALIVE, false);
    return;
  }
  hear(now);
  comfort(world);
}

void nxr_meet_complete(const nxr_world *world, MPI_Request *request) {
  double since = nxr_clock_s();
  nxr_pause pause = pausing(world);
  for (int done = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;) {
    nxr_pause_once(&pause);
    if (pause.polls % POLLS_PER_CLOCK == 0 && nxr_clock_s() - since > world->deadline_s)
      give_up(world, "another rank");
  }
}
