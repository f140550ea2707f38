/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's evaluations: which batches of which dataset, and when; their losses go to log and metrics.
 *
 * An evaluation's loss is the mean over the tokens of its samples: sums over a batch are the plan's own,
 * those over batches are added in order. So it hangs on no mesh, and on one batch it is the loss that
 * training would report of it. Which batches an evaluation reads follows from the step alone, so that a run
 * that is resumed reads the same. */
#ifndef NXR_EVALUATE_H
#define NXR_EVALUATE_H

#include "runtime/step/exec.h"
#include "runtime/logs/metrics.h"

typedef struct nxr_evaluation {
  const nx_evaluation *record;
  const char *name;
  uint64_t every;     /* steps; 0: not while the training goes on */
  uint64_t n_batches; /* 0: the set has no sample */
  uint64_t evaluated; /* the step after which it was evaluated last; UINT64_MAX: not yet by this program */
  double loss;        /* that was found then */
  double bytes_per_token; /* of the set's text; 0: not known */
} nxr_evaluation;

typedef struct nxr_evaluations {
  nxr_exec *exec;
  nxr_data *data;
  nxr_metrics *metrics;                          /* NULL on ranks that report nothing */
  bool (*stops)(void *context);       /* whether any rank was told to end; meets all ranks */
  void *context;
  bool given_up; /* the last one was told to end */
  uint32_t n;
  nxr_evaluation *at;
} nxr_evaluations;

/* So many epochs of the training's dataset in steps, rounded down, one at least. */
uint64_t nxr_steps_of_epochs(double epochs, const nxr_data *data, const nx_run *run);

/* Of the plan of `exec`; the other fields are set before. */
bool nxr_evaluations_open(nxr_evaluations *evaluations, nxr_fault *fault);
void nxr_evaluations_close(nxr_evaluations *evaluations);

/* Those that come after this many steps of a training that goes on, before its first step, or when it is
 * over. False, with a fault, where data cannot be read; one that is told to end is given up, and reports
 * nothing. */
bool nxr_evaluate_step(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault);
bool nxr_evaluate_sanity(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault);
bool nxr_evaluate_end(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault);
/* All of them, from the first sample on, of a model that has so many steps behind it. */
bool nxr_evaluate_all(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault);

#endif
