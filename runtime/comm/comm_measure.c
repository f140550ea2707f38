/* SPDX-License-Identifier: Apache-2.0 */
/* What was bound, counted: messages, requests, and what may come before it is wanted.
 *
 * A message that is not announced is set aside by MPI where its receiver is late. How much that may be is
 * bounded: others are no more than NXR_WINDOW_STARTS starts of a group ahead of a member, and of each they
 * send only what needs nothing of that member. */
#include "runtime/comm/comm_legs.h"
#include "runtime/world/launch.h"

#include <stdlib.h>

static void count(const nxr_collective *collective, const nxr_message *at, nxr_comm_size *size,
                  bool *is_peer) {
  if (at->n_bytes == 0) return;
  size->n_messages++;
  is_peer[collective->group->members[at->position]] = true;
}

/* Rounds of the first leg in which the others send although this rank has not come. */
static uint32_t n_unasked(const nxr_travel *travel) {
  return travel->legs[0]->apart ? 1 + travel->n_ahead : UINT32_MAX;
}

/* Returns the bytes that may come unwanted. */
static uint64_t measure(const nxr_collective *collective, uint64_t most_unannounced, nxr_comm_size *size,
                        bool *is_peer) {
  nxr_travel *travel = collective->travel;
  uint8_t nowhere = 0;
  uint64_t unwanted = 0;
  size->n_by_messages++;
  size->n_requests += 2 * NXR_MOST_UNDER_WAY;
  travel->staging = &nowhere; /* addresses are worked out, and not used */
  for (uint32_t l = 0; l < travel->n_legs; l++) {
    const nxr_leg *leg = travel->legs[l];
    for (uint32_t round = 0; !leg->share && round < leg->n_rounds(collective); round++)
      for (uint32_t step = 0; step < leg->n_steps(collective); step++) {
        nxr_message in = leg->receive(collective, round, step), out = leg->send(collective, round, step);
        count(collective, &in, size, is_peer);
        count(collective, &out, size, is_peer);
        if (l == 0 && round < n_unasked(travel) && in.n_bytes <= most_unannounced) unwanted += in.n_bytes;
      }
  }
  travel->staging = NULL;
  return unwanted;
}

/* The largest of a group, as many as others may be ahead. */
typedef struct largest {
  uint64_t bytes[NXR_WINDOW_STARTS];
} largest;

static void keep(largest *of, uint64_t bytes) {
  uint32_t least = 0;
  for (uint32_t i = 1; i < NXR_WINDOW_STARTS; i++)
    if (of->bytes[i] < of->bytes[least]) least = i;
  if (bytes > of->bytes[least]) of->bytes[least] = bytes;
}

nxr_comm_size nxr_comm_measure(const nxr_comm *comm) {
  nxr_comm_size size = {.n_collectives = comm->n_bound};
  bool *is_peer = calloc(comm->world->size, sizeof *is_peer);
  largest *ahead = calloc(comm->n_groups, sizeof *ahead);
  uint64_t most_unannounced = nxr_launch_unannounced_bytes();
  for (const nxr_collective *at = comm->last; is_peer && ahead && at; at = at->next)
    if (at->travel) keep(&ahead[at->group - comm->groups], measure(at, most_unannounced, &size, is_peer));
  for (uint32_t rank = 0; is_peer && rank < comm->world->size; rank++) size.n_peers += is_peer[rank];
  for (uint32_t group = 0; ahead && group < comm->n_groups; group++)
    for (uint32_t i = 0; i < NXR_WINDOW_STARTS; i++) size.unwanted_bytes += ahead[group].bytes[i];
  free(is_peer);
  free(ahead);
  return size;
}
