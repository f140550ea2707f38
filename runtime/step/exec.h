/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: the items of this rank's stage, operator by operator. No choice is made here, and nothing
 * allocates. */
#ifndef NXR_EXEC_H
#define NXR_EXEC_H

#include "runtime/step/bind.h"
#include "runtime/data/data.h"
#include "runtime/state/loss_scale.h"
#include "runtime/state/plateau.h"
#include "runtime/logs/profile.h"
#include "runtime/logs/timers.h"

/* Looks at memory before an operator of a program runs. */
typedef struct nxr_watch {
  uint32_t operator;
  void (*look)(void *context, const nxk_frame *frame);
  void *context;
} nxr_watch;

typedef struct nxr_exec {
  nxr_machine *machine;
  nxr_data *data;
  uint32_t set; /* of the plan's datasets, that is read, */
  uint64_t number; /* and the batch of it */
  uint32_t loaded_set; /* of the micro-batch that stands in the input arena */
  uint64_t loaded_number;
  uint32_t loaded; /* NX_NONE: none */
  nxr_batch batch; /* host copies */
  const nxr_watch *watch; /* NULL: nobody looks */
  nxr_profile *profile; /* NULL: nothing is recorded */
  nxr_timers *timers;   /* NULL: nothing is timed */
  int64_t optimizer_began; /* steps behind which what optimizers keep was empty */
  double *sequence_sums; /* [micro-batches, B] receives those of an evaluation; NULL: nobody asks */
} nxr_exec;

typedef struct nxr_numbers {
  double loss; /* mean over the tokens of the step, all ranks */
  double tokens; /* of the step */
  double grad_norm, lr;
  double loss_scale; /* with which the step was made */
  double measures[NX_MAX_MEASURES]; /* as the plan's */
  double answers[NX_N_ANSWER_METRICS]; /* sums over the samples of the step, where it compares them */
} nxr_numbers;

/* Of a batch that was evaluated, sums over all ranks. */
typedef struct nxr_evaluated {
  double loss;                         /* of its tokens */
  double answers[NX_N_ANSWER_METRICS]; /* as nxr_numbers' */
} nxr_evaluated;

/* `data` may be NULL where only the plan's programs are run, with the input arena as it is. */
bool nxr_exec_open(nxr_exec *exec, nxr_machine *machine, nxr_data *data, nxr_fault *fault);
void nxr_exec_close(nxr_exec *exec);
/* One training step, `step` from 0, with gradients that carry the factor of `scale`, and a learning rate that
 * was reduced as `plateau` says, where the plan has one. Only reading data can fail. */
bool nxr_exec_step(nxr_exec *exec, uint64_t step, const nxr_loss_scale *scale, const nxr_plateau *plateau,
                   nxr_numbers *numbers, nxr_fault *fault);
/* One batch of an evaluation of a dataset, after `step` steps of training. Nothing that training goes on from
 * is changed. Only reading data can fail. */
bool nxr_exec_evaluate(nxr_exec *exec, uint32_t set, uint64_t batch, uint64_t step, nxr_evaluated *evaluated,
                       nxr_fault *fault);
/* The evaluation program of a plan with one chunk, once, over the first `n` tokens of a sequence; what stands
 * behind them is anything. */
void nxr_exec_forward(nxr_exec *exec, const int32_t *tokens, uint32_t n, const nxr_watch *watch);

#endif
