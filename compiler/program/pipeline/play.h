/* SPDX-License-Identifier: Apache-2.0 */
/* When the stages do what a schedule has them do, where it is known how long each pass takes: a pass begins
 * when what it reads is there and its stage is free. Transfers take no time. */
#ifndef NXC_PLAY_H
#define NXC_PLAY_H

#include "compiler/program/pipeline/actions.h"

enum { NXC_N_ACTIONS = NXC_ACTION_WEIGHTS + 1 };

/* How long a pass of a chunk takes, by kind. */
typedef struct nxc_pass_lengths {
  double of[NXC_N_ACTIONS];
} nxc_pass_lengths;

typedef struct nxc_timed_pass {
  uint32_t stage, chunk, micro_batch;
  nxc_action_kind kind;
  double begin, end;
} nxc_timed_pass;

typedef struct nxc_played {
  nxc_timed_pass *passes; /* stage by stage */
  size_t n_passes;
  double length; /* of all passes together */
} nxc_played;

/* lengths: [chunks]. False where the passes wait for one another. */
bool nxc_play(nxc_arena *arena, const nxc_layout *layout, uint32_t n_micro, const nxc_pass_lengths *lengths,
              nxc_played *played);
/* How long a stage waits in a step, where all chunks take as long as one another. */
double nxc_play_wait(const nxc_layout *layout, uint64_t n_micro, const nxc_pass_lengths *lengths);
/* Micro-batches at most whose activations a stage keeps, each counted by the share of its chunks that do:
 * until all of its backward pass is over. */
double nxc_play_in_flight(const nxc_layout *layout, uint64_t n_micro, uint32_t stage);

#endif
