/* SPDX-License-Identifier: Apache-2.0 */
/* A run while it trains or evaluates: train_begin.c brings it to its first step, train.c through all,
 * train_metrics.c reports them and train_save.c saves it. */
#ifndef NXR_TRAINING_H
#define NXR_TRAINING_H

#include "runtime/checkpoint/checkpoint_save.h"
#include "runtime/evaluate.h"
#include "runtime/logs/progress.h"
#include "runtime/reference.h"
#include "runtime/step/exec.h"
#include "runtime/state/replicas.h"
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
  nxr_replicas replicas;
  nxr_checkpoint checkpoint;
  char temporary[4096]; /* folder of temporary checkpoints */
  char before[4096]; /* where what the run's own folder had is now, of which it begins with the weights; "":
                        elsewhere */
  nxr_data *data;
  nxr_exec exec;
  nxr_evaluations evaluations;
  nxr_reference reference;
  nxr_profile profile;
  nxr_loss_scale scale;
  nxr_plateau plateau;
  nxr_score score; /* of the next checkpoint */
  nxr_metrics metrics;
  nxr_timers timers;
  nxr_progress progress;
  double loss; /* of the last step */
  bool stopped; /* before its last step, to be resumed */
  nxr_fault fault;
  uint64_t n_steps; /* that it has: the plan's, or those that its epochs come to */
  uint64_t done;  /* steps behind the run */
  nxr_saver *saver;
  uint64_t saved;       /* at which the newest checkpoint was begun */
  uint64_t found;       /* the newest that was there when the run began; 0: none */
  uint64_t save_epochs; /* steps of run_names.save_epochs; 0: none are saved for it */
  double saved_s;       /* when */
  bool unsaved;         /* a checkpoint has failed, and the run ends for it */
} nxr_training;

/* Whether all ranks succeeded; where one did not, it has said why. */
static inline bool nxr_training_agree(nxr_training *run) {
  return nxr_world_agree(run->world, &run->fault);
}
/* Device, memory, communication and kernels. */
bool nxr_training_set_up(nxr_training *run);
/* Data and weights: of a checkpoint, or what the run begins with. */
bool nxr_training_load(nxr_training *run);
bool nxr_only_evaluates(const nxr_training *run);

bool nxr_saves_open(nxr_training *run);
/* Whether this rank has a reason for a checkpoint that the others do not know: a signal, or its clock. */
bool nxr_saves_ask(nxr_training *run);
/* Goes on with a checkpoint that is under way; `busy`: some rank is still writing. This and those below are
 * false where one has failed and the run ends for it, which has been said. */
bool nxr_saves_continue(nxr_training *run, bool busy);
/* Begins one between two steps where it is due, or some rank has asked for it. */
bool nxr_saves_step(nxr_training *run, bool asked);
/* Saves the end of the run; nothing is under way behind it. */
bool nxr_saves_end(nxr_training *run);
/* Has what is under way come to its end. */
bool nxr_saves_finish(nxr_training *run);

/* Where the metrics go to. */
bool nxr_metrics_begin(nxr_training *run);
/* The step that is just done, in so many seconds. */
void nxr_metrics_step(nxr_training *run, const nxr_numbers *numbers, double seconds);

/* Says to who looks from outside what the run is about; an event is also a line of progress.txt. */
void nxr_tell(nxr_training *run, const char *phase, const char *event);

#endif
