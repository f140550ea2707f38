/* SPDX-License-Identifier: Apache-2.0 */
/* What goes where when a collective is moved by messages: in legs, one after another, each of them in rounds.
 *
 * A round of a leg is up to n_steps messages each way; the next begins when all of them are complete, or,
 * where rounds are apart from each other, one earlier, so that messages travel while others are summed. What
 * a step sends and receives is worked out when it is due, so nothing here has a table with a line for each
 * member. Where every member has something for every other the peers are rotated: in step s a member sends to
 * the (s + 1)-th behind it and receives from the (s + 1)-th before it, so that no member is written to by
 * several at once.
 *
 * sum:      every member's part of x goes to the member that sums it, in coordinate order. It goes in
 *           rounds, as all parts of one round stand beside each other until they are summed.
 * direct:   each part goes from its owner straight to every other member.
 * ring:     parts go around. Each member sends to the next alone, so between hosts a part crosses once.
 * columns:  each part goes to one member on every host, the one with its owner's place there.
 * window:   that member's part is then read by the others in the host's shared window.
 * doubling: after round k each member has the parts of the 2^(k+1) members up to itself.
 * whole:    doubling of all of every x, which each member then sums by itself.
 * any:      doubling of votes, which are united on the way.
 *
 * Sums have the same bits whatever the legs: whoever sums has all terms, and adds them in coordinate order.
 */
#ifndef NXR_COMM_LEGS_H
#define NXR_COMM_LEGS_H

#include "runtime/comm/comm_transport.h"

enum { NXR_MOST_LEGS = 3, NXR_MOST_UNDER_WAY = 16 /* messages of a leg, each way */ };

typedef struct nxr_message {
  void *bytes;
  uint64_t n_bytes; /* 0: there is none */
  uint32_t position; /* of the member at the other end */
} nxr_message;

typedef struct nxr_leg {
  const char *name;
  bool apart; /* no round needs what another brought */
  uint32_t (*n_rounds)(const nxr_collective *collective);
  uint32_t (*n_steps)(const nxr_collective *collective);
  nxr_message (*receive)(const nxr_collective *collective, uint32_t round, uint32_t step);
  nxr_message (*send)(const nxr_collective *collective, uint32_t round, uint32_t step);
  void (*begin)(nxr_collective *collective, uint32_t round); /* before its messages; NULL: nothing */
  void (*meanwhile)(nxr_collective *collective, uint32_t round); /* when they have begun; NULL: nothing */
  void (*end)(nxr_comm *comm, nxr_collective *collective, uint32_t round); /* behind them; NULL: nothing */
  /* In place of rounds: does what can be done, true when that is all. */
  bool (*share)(nxr_comm *comm, nxr_collective *collective);
} nxr_leg;

/* How a collective travels. */
typedef struct nxr_travel {
  const nxr_leg *legs[NXR_MOST_LEGS];
  uint32_t n_legs;
  uint64_t n_round;       /* elements of a member's part in a round */
  uint64_t part_bytes;    /* of the staging, for what goes in a round between two members */
  uint64_t n_places;      /* of the staging, for a round */
  uint32_t n_ahead;       /* 1: two rounds are under way at once, in a half of the staging each */
  /* of all rounds under way: [size] parts that are received, then [size] that are sent, where packed */
  uint64_t staging_bytes;
  uint8_t *staging;       /* while it is under way */
  bool wants_room;        /* for it */
} nxr_travel;

/* Chooses the legs, and how much goes in a round. */
void nxr_travel_plan(const nxr_collective *collective, nxr_travel *travel);

#endif
