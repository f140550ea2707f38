/* SPDX-License-Identifier: Apache-2.0 */
/* Every member has something of its own for every other: terms of sums, parts of an exchange. */
#include "runtime/comm/leg_parts.h"

/* ---- sum ---- */

static nxr_message sum_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t from = before(collective, step + 1);
  uint64_t first, skip, n = part_of(collective, collective->group->position, &first);
  n = in_round(collective, n, round, &skip);
  return (nxr_message){received(collective, round, from), n * x_size(collective), from};
}

/* What stands in x for a member, in a round. */
static uint8_t *terms_for(const nxr_collective *collective, uint32_t to, uint32_t round, uint64_t *n) {
  uint64_t first, skip;
  *n = in_round(collective, part_of(collective, to, &first), round, &skip);
  if (x_is_cut(collective)) return packed(collective, round, to);
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
    nxr_comm_pack(collective, to, skip, n, packed(collective, round, to));
}

static void sum_end(nxr_comm *comm, nxr_collective *collective, uint32_t round) {
  uint32_t own = collective->group->position;
  uint64_t first, skip, n;
  in_round(collective, part_of(collective, own, &first), round, &skip);
  for (uint32_t i = 0; i < collective->group->size; i++)
    collective->sources[i] = received(collective, round, i);
  collective->sources[own] = terms_for(collective, own, round, &n);
  uint64_t at = collective->spec.op == NX_OP_all_reduce ? first + skip : skip;
  if (n > 0) nxr_comm_sum(comm, collective, (uint8_t *)collective->spec.y + at * y_size(collective), n);
}

const nxr_leg nxr_leg_sum = {.name = "sum", .apart = true, .n_rounds = n_part_rounds, .n_steps = n_others,
                            .receive = sum_receive, .send = sum_send, .begin = pack_parts, .end = sum_end};

/* ---- parts that are cut ---- */

/* Where a member's part of a round is sent from, or received: at its place, or in the staging. */
static nxr_message exchange_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  uint32_t from = before(collective, step + 1);
  uint64_t first, skip, n = in_round(collective, part_of(collective, from, &first), round, &skip);
  uint8_t *place = (uint8_t *)collective->spec.y + (first + skip) * y_size(collective);
  return (nxr_message){y_is_cut(collective) ? received(collective, round, from) : place,
                       n * x_size(collective), from};
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
      nxr_comm_unpack(collective, from, skip, n, received(collective, round, from));
}

const nxr_leg nxr_leg_exchange = {.name = "exchange",
                                  .apart = true,
                                  .n_rounds = n_part_rounds,
                                  .n_steps = n_others,
                                  .receive = exchange_receive,
                                  .send = exchange_send,
                                  .begin = pack_parts,
                                  .meanwhile = exchange_meanwhile,
                                  .end = exchange_end};
