/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/leg_parts.h"

/* Of all parts of a round; and so little that nothing is divided further. */
enum { STAGING_BYTES = 4 << 20, LEAST_ROUND = 512 /* elements */ };

static void add_leg(nxr_travel *travel, const nxr_leg *leg) {
  travel->legs[travel->n_legs++] = leg;
}

static void add_gather(const nxr_collective *collective, nxr_travel *travel) {
  static const nxr_leg *const gathers[NX_N_WAYS] = {[NX_WAY_DIRECT] = &nxr_leg_direct,
                                                    [NX_WAY_RING] = &nxr_leg_ring,
                                                    [NX_WAY_DOUBLING] = &nxr_leg_doubling,
                                                    [NX_WAY_HOSTS] = &nxr_leg_columns};
  add_leg(travel, gathers[collective->spec.way]);
  if (collective->spec.way == NX_WAY_HOSTS) add_leg(travel, &nxr_leg_window);
}

static void choose_legs(const nxr_collective *collective, nxr_travel *travel) {
  switch ((int)collective->spec.op) {
    case NXR_TRANSFER: add_leg(travel, &nxr_leg_transfer); return;
    case NXR_VOTE: add_leg(travel, &nxr_leg_any); return;
    case NX_OP_shift: add_leg(travel, &nxr_leg_shift); return;
    case NX_OP_reduce_scatter: add_leg(travel, &nxr_leg_sum); return;
    case NX_OP_all_reduce:
      add_leg(travel, is_whole(collective) ? &nxr_leg_whole : &nxr_leg_sum);
      if (!is_whole(collective)) add_gather(collective, travel);
      return;
    case NX_OP_all_gather:
      if (collective->spec.outer > 1) add_leg(travel, &nxr_leg_exchange);
      else add_gather(collective, travel);
      return;
    default: add_leg(travel, &nxr_leg_exchange);
  }
}

/* In the staging, for what goes in a round. */
static uint64_t n_places(const nxr_collective *collective, const nxr_travel *travel) {
  if (travel->legs[0] == &nxr_leg_any) return 1;
  bool stages = travel->legs[0] == &nxr_leg_sum || travel->legs[0] == &nxr_leg_whole || y_is_cut(collective);
  return (x_is_cut(collective) ? 2 : stages ? 1 : 0) * (uint64_t)collective->group->size;
}

void nxr_travel_plan(const nxr_collective *collective, nxr_travel *travel) {
  bool undivided = is_whole(collective) || (int)collective->spec.op == NXR_VOTE;
  uint64_t first, n_part = undivided ? collective->spec.axis : part_of(collective, 0, &first);
  choose_legs(collective, travel);
  uint64_t n = n_places(collective, travel), most = n ? STAGING_BYTES / (n * x_size(collective)) : n_part;
  travel->n_places = n;
  travel->n_ahead = travel->legs[0]->apart && n_part > most && most / 2 >= LEAST_ROUND;
  if (travel->n_ahead) most /= 2;
  if (most < LEAST_ROUND) most = LEAST_ROUND;
  travel->n_round = undivided || n_part < most ? n_part : most;
  travel->part_bytes = (travel->n_round * x_size(collective) + 63) / 64 * 64;
  travel->staging_bytes = (1 + travel->n_ahead) * n * travel->part_bytes;
}
