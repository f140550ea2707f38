/* SPDX-License-Identifier: Apache-2.0 */
/* A run while it trains or evaluates: train_begin.c brings it to its first step, train.c through all. */
#ifndef NXR_TRAINING_H
#define NXR_TRAINING_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/evaluate.h"
#include "runtime/step/exec.h"
#include "runtime/step/finite.h"
#include "runtime/train.h"

typedef struct nxr_training {
  nxr_world *world;
  const nx_plan *plan;
  const nxr_options *options;
  nxr_arenas arenas;
  nxr_comm *comm;
  nxr_machine machine;
  nxr_finite finite;
  nxr_pieces pieces;
  nxr_checkpoint checkpoint;
  nxr_data *data;
  nxr_exec exec;
  nxr_evaluations evaluations;
  nxr_profile profile;
  nxr_loss_scale scale;
  nxr_score score; /* of the next checkpoint */
  nxr_metrics metrics;
  nxr_fault fault;
  uint64_t done;  /* steps behind the run */
  uint64_t saved; /* at which the newest checkpoint was written */
} nxr_training;

/* Whether all ranks succeeded; where one did not, it has said why. */
bool nxr_training_agree(nxr_training *run);
/* Device, memory, communication and kernels. */
bool nxr_training_set_up(nxr_training *run);
/* Data and weights: of a checkpoint, or what the run begins with. */
bool nxr_training_load(nxr_training *run);
bool nxr_only_evaluates(const nxr_training *run);

#endif
