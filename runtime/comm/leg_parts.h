/* SPDX-License-Identifier: Apache-2.0 */
/* What the legs of comm_legs.h are made of: where the part of a member stands, how much of it goes in a
 * round, and who is at the other end. */
#ifndef NXR_COMM_LEG_PARTS_H
#define NXR_COMM_LEG_PARTS_H

#include "runtime/comm/comm_legs.h"

/* Of leg_sum.c; of leg_gather.c; of leg_pair.c. */
extern const nxr_leg nxr_leg_sum, nxr_leg_exchange;
extern const nxr_leg nxr_leg_direct, nxr_leg_ring, nxr_leg_columns, nxr_leg_window, nxr_leg_doubling,
    nxr_leg_whole;
extern const nxr_leg nxr_leg_shift, nxr_leg_transfer, nxr_leg_any;

/* ---- sizes and places ---- */

static inline uint64_t x_size(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.x_dtype) / 8;
}

static inline uint64_t y_size(const nxr_collective *collective) {
  return nx_dtype_bits(collective->spec.y_dtype) / 8;
}

static inline uint8_t *received(const nxr_collective *collective, uint32_t round, uint32_t position) {
  const nxr_travel *travel = collective->travel;
  uint64_t turn = travel->n_ahead && round % 2 ? travel->n_places : 0;
  return travel->staging + (turn + position) * travel->part_bytes;
}

static inline uint8_t *packed(const nxr_collective *collective, uint32_t round, uint32_t position) {
  return received(collective, round, collective->group->size + position);
}

/* Elements of the part that a member sums, sends or receives, and which of x it begins with, where it stands
 * together. */
static inline uint64_t part_of(const nxr_collective *collective, uint32_t position, uint64_t *first) {
  if (collective->spec.op == NX_OP_all_reduce) return nxr_comm_part(collective, position, first);
  uint64_t n = collective->spec.outer * collective->n_slice;
  *first = position * n;
  return n;
}

/* Of a part of n elements, what goes in a round. */
static inline uint64_t in_round(const nxr_collective *collective, uint64_t n, uint32_t round,
                                uint64_t *skip) {
  uint64_t n_round = collective->travel->n_round;
  *skip = round * n_round < n ? round * n_round : n;
  return n - *skip < n_round ? n - *skip : n_round;
}

/* Whether a member's part of x, or of y, does not lie together. */
static inline bool x_is_cut(const nxr_collective *collective) {
  return collective->spec.outer > 1 &&
         (collective->spec.op == NX_OP_reduce_scatter || collective->spec.op == NX_OP_all_to_all);
}

static inline bool y_is_cut(const nxr_collective *collective) {
  if (collective->spec.op == NX_OP_all_gather) return collective->spec.outer > 1;
  return collective->spec.op == NX_OP_all_to_all &&
         collective->spec.y_run != collective->spec.outer * collective->n_slice;
}

/* Whether every member sums all of every x by itself. */
static inline bool is_whole(const nxr_collective *collective) {
  return collective->spec.op == NX_OP_all_reduce && collective->spec.way == NX_WAY_DOUBLING;
}

/* Of a gather, the part of this member, at its place in y. */
static inline void place_own(nxr_collective *collective, uint32_t round) {
  if (round == 0 && collective->spec.op == NX_OP_all_gather)
    nxr_comm_place(collective, collective->group->position, collective->spec.x);
}

/* ---- who ---- */

static inline uint32_t behind(const nxr_collective *collective, uint32_t distance) {
  return (collective->group->position + distance) % collective->group->size;
}

static inline uint32_t before(const nxr_collective *collective, uint32_t distance) {
  return (collective->group->position + collective->group->size - distance) % collective->group->size;
}

static inline uint32_t n_others(const nxr_collective *collective) {
  return collective->group->size - 1;
}

static inline uint32_t once(const nxr_collective *collective) {
  (void)collective;
  return 1;
}

static inline uint32_t n_doublings(const nxr_collective *collective) {
  uint32_t n = 0;
  while (UINT32_C(1) << n < collective->group->size) n++;
  return n;
}

/* In rounds of what the largest part has. */
static inline uint32_t n_part_rounds(const nxr_collective *collective) {
  uint64_t first, n = part_of(collective, 0, &first), n_round = collective->travel->n_round;
  return n_round ? (uint32_t)((n + n_round - 1) / n_round) : 0;
}

#endif
