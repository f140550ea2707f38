/* SPDX-License-Identifier: Apache-2.0 */
/* Every member has something that all others want. */
#include "runtime/comm/leg_parts.h"

#include <string.h>

/* Where the parts of neighbouring members lie together: in y, or whole x in the staging. */
static nxr_message parts(const nxr_collective *collective, uint32_t from, uint32_t n, uint32_t peer) {
  uint64_t first, last, n_last;
  if (n == 0) return (nxr_message){NULL, 0, peer};
  if (is_whole(collective))
    return (nxr_message){received(collective, 0, from), n * collective->travel->part_bytes, peer};
  part_of(collective, from, &first);
  n_last = part_of(collective, from + n - 1, &last);
  uint8_t *start = (uint8_t *)collective->spec.y + first * y_size(collective);
  return (nxr_message){start, (last + n_last - first) * y_size(collective), peer};
}

static nxr_message direct_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round;
  uint32_t from = before(collective, step + 1);
  return parts(collective, from, 1, from);
}

/* What it has itself, where that is before it is placed. */
static nxr_message own_part(const nxr_collective *collective, uint32_t to) {
  nxr_message own = parts(collective, collective->group->position, 1, to);
  if (collective->spec.op == NX_OP_all_gather) own.bytes = collective->spec.x;
  return own;
}

static nxr_message direct_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round;
  return own_part(collective, behind(collective, step + 1));
}

const nxr_leg nxr_leg_direct = {.name = "direct", .n_rounds = once, .n_steps = n_others,
                               .receive = direct_receive, .send = direct_send, .meanwhile = place_own};

static nxr_message ring_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return parts(collective, before(collective, round + 1), 1, before(collective, 1));
}

static nxr_message ring_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return parts(collective, before(collective, round), 1, behind(collective, 1));
}

const nxr_leg nxr_leg_ring = {.name = "ring", .n_rounds = n_others, .n_steps = once,
                             .receive = ring_receive, .send = ring_send, .begin = place_own};

/* The member with this one's place on another host. */
static uint32_t on_host(const nxr_collective *collective, uint32_t distance) {
  return behind(collective, distance * collective->group->n_local);
}

static uint32_t n_other_hosts(const nxr_collective *collective) {
  return collective->group->size / collective->group->n_local - 1;
}

static nxr_message columns_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round;
  uint32_t from = on_host(collective, n_other_hosts(collective) - step);
  return parts(collective, from, 1, from);
}

static nxr_message columns_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round;
  return own_part(collective, on_host(collective, step + 1));
}

const nxr_leg nxr_leg_columns = {.name = "columns", .n_rounds = once, .n_steps = n_other_hosts,
                                .receive = columns_receive, .send = columns_send, .meanwhile = place_own};

/* What the others on this host have received. */
static void read_columns(const nxr_comm *comm, const nxr_collective *collective) {
  const nxr_comm_group *group = collective->group;
  uint32_t host = group->position / group->n_local * group->n_local;
  for (uint32_t peer = host; peer < host + group->n_local; peer++) {
    if (peer == group->position) continue;
    const uint8_t *theirs = nxr_shared_y(comm, collective, peer);
    for (uint32_t from = peer % group->n_local; from < group->size; from += group->n_local) {
      nxr_message own = parts(collective, from, 1, from);
      if (own.n_bytes == 0) continue;
      memcpy(own.bytes, theirs + ((uint8_t *)own.bytes - (uint8_t *)collective->spec.y), own.n_bytes);
    }
  }
}

static bool window_share(nxr_comm *comm, nxr_collective *collective) {
  if (collective->phase == 0) nxr_shared_post(comm, collective, NXR_READY);
  if (!nxr_shared_all_there(collective)) return false;
  if (collective->phase == NXR_FINISHED) return true;
  read_columns(comm, collective);
  nxr_shared_post(comm, collective, NXR_FINISHED);
  return false;
}

const nxr_leg nxr_leg_window = {.name = "window", .share = window_share};

/* The parts of the n members up to one; those at the end of the group are step 0's, those at its start step
 * 1's. */
static nxr_message parts_up_to(const nxr_collective *collective, uint32_t last, uint32_t n, uint32_t step,
                               uint32_t peer) {
  uint32_t n_low = last + 1 < n ? last + 1 : n;
  return step == 1 ? parts(collective, last + 1 - n_low, n_low, peer)
                   : parts(collective, collective->group->size - (n - n_low), n - n_low, peer);
}

static uint32_t n_doubled(const nxr_collective *collective, uint32_t round) {
  uint32_t distance = UINT32_C(1) << round, rest = collective->group->size - distance;
  return rest < distance ? rest : distance;
}

static uint32_t twice(const nxr_collective *collective) {
  (void)collective;
  return 2;
}

static nxr_message doubling_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t from = before(collective, UINT32_C(1) << round);
  return parts_up_to(collective, from, n_doubled(collective, round), step, from);
}

static nxr_message doubling_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  return parts_up_to(collective, collective->group->position, n_doubled(collective, round), step,
                     behind(collective, UINT32_C(1) << round));
}

const nxr_leg nxr_leg_doubling = {.name = "doubling", .n_rounds = n_doublings, .n_steps = twice,
                                 .receive = doubling_receive, .send = doubling_send, .begin = place_own};

/* At first its own terms alone, from where they are. */
static nxr_message whole_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  nxr_message own = doubling_send(collective, round, step);
  if (round == 0 && own.n_bytes > 0)
    own.bytes = collective->spec.x, own.n_bytes = collective->spec.axis * x_size(collective);
  return own;
}

/* For the rounds to come. */
static void whole_meanwhile(nxr_collective *collective, uint32_t round) {
  if (round > 0 || n_doublings(collective) == 1) return;
  memcpy(received(collective, 0, collective->group->position), collective->spec.x,
         collective->spec.axis * x_size(collective));
}

static void whole_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  if (round + 1 < n_doublings(collective)) return;
  for (uint32_t i = 0; i < collective->group->size; i++) collective->sources[i] = received(collective, 0, i);
  collective->sources[collective->group->position] = collective->spec.x;
  nxr_comm_sum(comm, collective, collective->spec.y, collective->spec.axis);
}

const nxr_leg nxr_leg_whole = {.name = "whole", .n_rounds = n_doublings, .n_steps = twice,
                              .receive = doubling_receive, .send = whole_send,
                              .meanwhile = whole_meanwhile, .end = whole_end};
