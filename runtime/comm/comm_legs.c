/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/comm_legs.h"

#include <string.h>

/* Of all parts of a round; and so little that nothing is divided further. */
enum { STAGING_BYTES = 4 << 20, LEAST_ROUND = 512 /* elements */ };

/* ---- sizes and places ---- */

static uint64_t x_size(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.x_dtype) / 8;
}

static uint64_t y_size(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.y_dtype) / 8;
}

static uint8_t *received(const nxr_collective *collective, uint32_t position) {
  const nxr_travel *travel = collective->travel;
  return travel->staging + position * travel->part_bytes;
}

static uint8_t *packed(const nxr_collective *collective, uint32_t position) {
  return received(collective, collective->group->size + position);
}

/* Elements of the part that a member sums, sends or receives, and which of x it begins with, where it stands
 * together. */
static uint64_t part_of(const nxr_collective *collective, uint32_t position, uint64_t *first) {
  if (collective->spec.op == NX_OP_all_reduce) return nxr_comm_part(collective, position, first);
  uint64_t n = collective->spec.outer * collective->n_slice;
  *first = position * n;
  return n;
}

/* Of a part of n elements, what goes in a round. */
static uint64_t in_round(const nxr_collective *collective, uint64_t n, uint32_t round, uint64_t *skip) {
  uint64_t n_round = collective->travel->n_round;
  *skip = round * n_round < n ? round * n_round : n;
  return n - *skip < n_round ? n - *skip : n_round;
}

/* Whether a member's part of x, or of y, does not lie together. */
static bool x_is_cut(const nxr_collective *collective) {
  return collective->spec.outer > 1 &&
         (collective->spec.op == NX_OP_reduce_scatter || collective->spec.op == NX_OP_all_to_all);
}

static bool y_is_cut(const nxr_collective *collective) {
  if (collective->spec.op == NX_OP_all_gather) return collective->spec.outer > 1;
  return collective->spec.op == NX_OP_all_to_all &&
         collective->spec.y_run != collective->spec.outer * collective->n_slice;
}

/* Whether every member sums all of every x by itself. */
static bool is_whole(const nxr_collective *collective) {
  return collective->spec.op == NX_OP_all_reduce && collective->spec.way == NX_WAY_DOUBLING;
}

/* ---- who ---- */

static uint32_t behind(const nxr_collective *collective, uint32_t distance) {
  return (collective->group->position + distance) % collective->group->size;
}

static uint32_t before(const nxr_collective *collective, uint32_t distance) {
  return (collective->group->position + collective->group->size - distance) % collective->group->size;
}

static uint32_t n_others(const nxr_collective *collective) {
  return collective->group->size - 1;
}

static uint32_t once(const nxr_collective *collective) {
  (void)collective;
  return 1;
}

static uint32_t n_doublings(const nxr_collective *collective) {
  uint32_t n = 0;
  while (UINT32_C(1) << n < collective->group->size) n++;
  return n;
}

/* In rounds of what the largest part has. */
static uint32_t n_part_rounds(const nxr_collective *collective) {
  uint64_t first, n = part_of(collective, 0, &first), n_round = collective->travel->n_round;
  return n_round ? (uint32_t)((n + n_round - 1) / n_round) : 0;
}

/* ---- sum ---- */

static nxr_message sum_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t from = before(collective, step + 1);
  uint64_t first, skip, n = part_of(collective, collective->group->position, &first);
  n = in_round(collective, n, round, &skip);
  return (nxr_message){received(collective, from), n * x_size(collective), from};
}

/* What stands in x for a member, in a round. */
static uint8_t *terms_for(const nxr_collective *collective, uint32_t to, uint32_t round, uint64_t *n) {
  uint64_t first, skip;
  *n = in_round(collective, part_of(collective, to, &first), round, &skip);
  if (x_is_cut(collective)) return packed(collective, to);
  return (uint8_t *)collective->spec.x + (first + skip) * x_size(collective);
}

static nxr_message sum_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t to = behind(collective, step + 1);
  uint64_t n;
  uint8_t *terms = terms_for(collective, to, round, &n);
  return (nxr_message){terms, n * x_size(collective), to};
}

static void pack_parts(nxr_collective *collective, uint32_t round) {
  uint64_t skip, n = in_round(collective, collective->spec.outer * collective->n_slice, round, &skip);
  for (uint32_t to = 0; x_is_cut(collective) && to < collective->group->size; to++)
    nxr_comm_pack(collective, to, skip, n, packed(collective, to));
}

static void sum_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  uint32_t own = collective->group->position;
  uint64_t first, skip, n;
  in_round(collective, part_of(collective, own, &first), round, &skip);
  for (uint32_t i = 0; i < collective->group->size; i++) collective->sources[i] = received(collective, i);
  collective->sources[own] = terms_for(collective, own, round, &n);
  uint64_t at = collective->spec.op == NX_OP_all_reduce ? first + skip : skip;
  if (n > 0) nxr_comm_sum(comm, collective, (uint8_t *)collective->spec.y + at * y_size(collective), n);
}

static const nxr_leg sum = {.name = "sum", .n_rounds = n_part_rounds, .n_steps = n_others,
                            .receive = sum_receive, .send = sum_send, .begin = pack_parts, .end = sum_end};

/* ---- gathering ---- */

/* Where the parts of neighbouring members lie together: in y, or whole x in the staging. */
static nxr_message parts(const nxr_collective *collective, uint32_t from, uint32_t n, uint32_t peer) {
  uint64_t first, last, n_last;
  if (n == 0) return (nxr_message){NULL, 0, peer};
  if (is_whole(collective))
    return (nxr_message){received(collective, from), n * collective->travel->part_bytes, peer};
  part_of(collective, from, &first);
  n_last = part_of(collective, from + n - 1, &last);
  uint8_t *start = (uint8_t *)collective->spec.y + first * y_size(collective);
  return (nxr_message){start, (last + n_last - first) * y_size(collective), peer};
}

static void place_own(nxr_collective *collective, uint32_t round) {
  if (round == 0 && collective->spec.op == NX_OP_all_gather)
    nxr_comm_place(collective, collective->group->position, collective->spec.x);
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

static const nxr_leg direct = {.name = "direct", .n_rounds = once, .n_steps = n_others,
                               .receive = direct_receive, .send = direct_send, .meanwhile = place_own};

static nxr_message ring_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return parts(collective, before(collective, round + 1), 1, before(collective, 1));
}

static nxr_message ring_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return parts(collective, before(collective, round), 1, behind(collective, 1));
}

static const nxr_leg ring = {.name = "ring", .n_rounds = n_others, .n_steps = once,
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

static const nxr_leg columns = {.name = "columns", .n_rounds = once, .n_steps = n_other_hosts,
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

static const nxr_leg window = {.name = "window", .share = window_share};

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

static const nxr_leg doubling = {.name = "doubling", .n_rounds = n_doublings, .n_steps = twice,
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
  memcpy(received(collective, collective->group->position), collective->spec.x,
         collective->spec.axis * x_size(collective));
}

static void whole_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  if (round + 1 < n_doublings(collective)) return;
  for (uint32_t i = 0; i < collective->group->size; i++) collective->sources[i] = received(collective, i);
  collective->sources[collective->group->position] = collective->spec.x;
  nxr_comm_sum(comm, collective, collective->spec.y, collective->spec.axis);
}

static const nxr_leg whole = {.name = "whole", .n_rounds = n_doublings, .n_steps = twice,
                              .receive = doubling_receive, .send = whole_send,
                              .meanwhile = whole_meanwhile, .end = whole_end};

/* ---- parts that are cut ---- */

/* Where a member's part of a round is sent from, or received: at its place, or in the staging. */
static nxr_message exchange_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t from = before(collective, step + 1);
  uint64_t first, skip, n = in_round(collective, part_of(collective, from, &first), round, &skip);
  uint8_t *place = (uint8_t *)collective->spec.y + (first + skip) * y_size(collective);
  return (nxr_message){y_is_cut(collective) ? received(collective, from) : place, n * x_size(collective),
                       from};
}

static nxr_message exchange_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t to = behind(collective, step + 1);
  uint64_t skip, n = in_round(collective, collective->spec.outer * collective->n_slice, round, &skip);
  const uint8_t *x = collective->spec.x;
  if (collective->spec.op == NX_OP_all_gather) /* the same for all */
    return (nxr_message){(void *)(uintptr_t)(x + skip * x_size(collective)), n * x_size(collective), to};
  uint8_t *terms = terms_for(collective, to, round, &n);
  return (nxr_message){terms, n * x_size(collective), to};
}

static void exchange_meanwhile(nxr_collective *collective, uint32_t round) {
  uint32_t own = collective->group->position;
  if (round == 0 && collective->spec.op == NX_OP_all_to_all)
    nxr_comm_exchange(collective, own, own, collective->spec.x, collective->spec.y);
  place_own(collective, round);
}

static void exchange_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  (void)comm;
  uint64_t skip, n = in_round(collective, collective->spec.outer * collective->n_slice, round, &skip);
  for (uint32_t from = 0; y_is_cut(collective) && from < collective->group->size; from++)
    if (from != collective->group->position)
      nxr_comm_unpack(collective, from, skip, n, received(collective, from));
}

static const nxr_leg exchange = {.name = "exchange", .n_rounds = n_part_rounds, .n_steps = n_others,
                                 .receive = exchange_receive, .send = exchange_send, .begin = pack_parts,
                                 .meanwhile = exchange_meanwhile, .end = exchange_end};

/* ---- between two ---- */

static nxr_message shift_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  return (nxr_message){collective->spec.y, collective->spec.axis * x_size(collective), before(collective, 1)};
}

static nxr_message shift_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  return (nxr_message){collective->spec.x, collective->spec.axis * x_size(collective), behind(collective, 1)};
}

static const nxr_leg shift = {.name = "shift", .n_rounds = once, .n_steps = once,
                              .receive = shift_receive, .send = shift_send};

static nxr_message transfer_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  uint64_t n_bytes = collective->group->position == 1 ? collective->spec.axis : 0;
  return (nxr_message){collective->spec.y, n_bytes, 0};
}

static nxr_message transfer_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  uint64_t n_bytes = collective->group->position == 0 ? collective->spec.axis : 0;
  return (nxr_message){collective->spec.x, n_bytes, 1};
}

static const nxr_leg transfer = {.name = "transfer", .n_rounds = once, .n_steps = once,
                                 .receive = transfer_receive, .send = transfer_send};

/* ---- votes ---- */

static nxr_message any_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return (nxr_message){received(collective, 0), collective->spec.axis * sizeof(double),
                       before(collective, UINT32_C(1) << round)};
}

static nxr_message any_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return (nxr_message){collective->spec.y, collective->spec.axis * sizeof(double),
                       behind(collective, UINT32_C(1) << round)};
}

static void any_begin(nxr_collective *collective, uint32_t round) {
  if (round == 0) memcpy(collective->spec.y, collective->spec.x, collective->spec.axis * sizeof(double));
}

static void any_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  (void)comm, (void)round;
  double *own = collective->spec.y;
  const double *other = (const double *)(const void *)received(collective, 0);
  for (uint64_t i = 0; i < collective->spec.axis; i++)
    if (other[i] > own[i]) own[i] = other[i];
}

static const nxr_leg any = {.name = "any", .n_rounds = n_doublings, .n_steps = once,
                            .receive = any_receive, .send = any_send, .begin = any_begin, .end = any_end};

/* ---- choosing ---- */

static void add_leg(nxr_travel *travel, const nxr_leg *leg) {
  travel->legs[travel->n_legs++] = leg;
}

static void add_gather(const nxr_collective *collective, nxr_travel *travel) {
  static const nxr_leg *const gathers[NX_N_WAYS] = {[NX_WAY_DIRECT] = &direct, [NX_WAY_RING] = &ring,
                                                    [NX_WAY_DOUBLING] = &doubling, [NX_WAY_HOSTS] = &columns};
  add_leg(travel, gathers[collective->spec.way]);
  if (collective->spec.way == NX_WAY_HOSTS) add_leg(travel, &window);
}

static void choose_legs(const nxr_collective *collective, nxr_travel *travel) {
  switch ((int)collective->spec.op) {
    case NXR_TRANSFER: add_leg(travel, &transfer); return;
    case NXR_VOTE: add_leg(travel, &any); return;
    case NX_OP_shift: add_leg(travel, &shift); return;
    case NX_OP_reduce_scatter: add_leg(travel, &sum); return;
    case NX_OP_all_reduce:
      add_leg(travel, is_whole(collective) ? &whole : &sum);
      if (!is_whole(collective)) add_gather(collective, travel);
      return;
    case NX_OP_all_gather:
      if (collective->spec.outer > 1) add_leg(travel, &exchange);
      else add_gather(collective, travel);
      return;
    default: add_leg(travel, &exchange);
  }
}

/* In the staging, for what goes in a round. */
static uint64_t n_places(const nxr_collective *collective, const nxr_travel *travel) {
  if (travel->legs[0] == &any) return 1;
  bool stages = travel->legs[0] == &sum || travel->legs[0] == &whole || y_is_cut(collective);
  return (x_is_cut(collective) ? 2 : stages ? 1 : 0) * (uint64_t)collective->group->size;
}

void nxr_travel_plan(const nxr_collective *collective, nxr_travel *travel) {
  bool undivided = is_whole(collective) || (int)collective->spec.op == NXR_VOTE;
  uint64_t first, n_part = undivided ? collective->spec.axis : part_of(collective, 0, &first);
  choose_legs(collective, travel);
  uint64_t n = n_places(collective, travel), most = n ? STAGING_BYTES / (n * x_size(collective)) : n_part;
  if (most < LEAST_ROUND) most = LEAST_ROUND;
  travel->n_round = undivided || n_part < most ? n_part : most;
  travel->part_bytes = (travel->n_round * x_size(collective) + 63) / 64 * 64;
  travel->staging_bytes = n * travel->part_bytes;
}
