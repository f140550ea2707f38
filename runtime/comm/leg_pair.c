/* SPDX-License-Identifier: Apache-2.0 */
/* Between two members at a time: shifts, transfers, votes. */
#include "runtime/comm/leg_parts.h"

#include <string.h>

static nxr_message shift_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  return (nxr_message){collective->spec.y, collective->spec.axis * x_size(collective), before(collective, 1)};
}

static nxr_message shift_send(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)round, (void)step;
  return (nxr_message){collective->spec.x, collective->spec.axis * x_size(collective), behind(collective, 1)};
}

const nxr_leg nxr_leg_shift = {.name = "shift", .n_rounds = once, .n_steps = once,
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

const nxr_leg nxr_leg_transfer = {.name = "transfer", .n_rounds = once, .n_steps = once,
                                 .receive = transfer_receive, .send = transfer_send};

/* ---- votes ---- */

static nxr_message any_receive(const nxr_collective *collective, uint32_t round, uint32_t step) {
  (void)step;
  return (nxr_message){received(collective, 0, 0), collective->spec.axis * sizeof(double),
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
  const double *other = (const double *)(const void *)received(collective, 0, 0);
  for (uint64_t i = 0; i < collective->spec.axis; i++)
    if (other[i] > own[i]) own[i] = other[i];
}

const nxr_leg nxr_leg_any = {.name = "any", .n_rounds = n_doublings, .n_steps = once,
                            .receive = any_receive, .send = any_send, .begin = any_begin, .end = any_end};
