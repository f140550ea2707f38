/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage computes in a step, in order: which of its chunks goes forward or back with which micro-batch.
 *
 * A backward pass may be cut in two: that of the inputs, which the stage before waits for, and that of the
 * weights, which nothing waits for and which fills what would be a bubble. Chunks go forward in ascending
 * order of micro-batches, and so they go back. */
#ifndef NXC_ACTIONS_H
#define NXC_ACTIONS_H

#include "compiler/arena.h"
#include "compiler/program/records/layout.h"

typedef enum nxc_action_kind {
  NXC_ACTION_FORWARD,
  NXC_ACTION_BACKWARD,
  NXC_ACTION_INPUTS, /* of the backward pass, what its inputs need */
  NXC_ACTION_WEIGHTS /* and the rest */
} nxc_action_kind;

typedef struct nxc_action {
  nxc_action_kind kind;
  uint32_t chunk, micro_batch;
} nxc_action;

typedef struct nxc_actions {
  nxc_action *list;
  size_t n;
} nxc_actions;

/* Of a step of n_micro micro-batches. */
nxc_actions nxc_actions_of(nxc_arena *arena, const nxc_layout *layout, uint32_t n_micro, uint32_t stage);

#endif
