/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a plan: from verified bytes to trained weights, in the order of train.c's nxr_train. */
#ifndef NXR_TRAIN_H
#define NXR_TRAIN_H

#include "runtime/generate/generate.h"
#include "runtime/logs/metrics.h"
#include "runtime/world/world.h"
#include "schema/signature.h"

typedef struct nxr_options {
  const char *plan_path;
  const char *backend;   /* NULL: that of the plan's target where this build has it, else ref */
  const char *device; /* of those of the backend (nxrun --devices); NULL: by the rank's place on its host */
  const char *directory; /* NULL: the plan's */
  const char *metrics;   /* NULL: metrics.jsonl in the run's folder */
  const char *dump_gradients; /* folder for the first step's gradients, or NULL */
  uint64_t
      stop_after; /* end, with a checkpoint, when so many steps are behind the run; 0: the plan's number */
  uint64_t profile_first, profile_last; /* steps to record, instead of the plan's; 0: the plan's */
  const char *profile_ranks;            /* "": all */
  bool resume, dry_run, force_p2p;
  uint64_t as_rank, as_ranks; /* with dry_run: bind this rank of so many, of whom no other is there; 0: no */
  double begun_s, opened_s; /* when the program began, and when its plan was read, checked and proved */
  bool evaluate;             /* train nothing, and evaluate the newest checkpoint, */
  nxr_generation generation; /* or continue a text with it; */
  const char *checkpoint;    /* this one, or a folder of weights; NULL: the newest */
  bool check_numbers; /* each kernel's output is looked at (finite.h) */
  bool new_dataset; /* a run that is resumed may read another dataset than before */
  nxr_log log;
  const nx_trusted_keys *trusted; /* who must have signed what the run begins with; NULL: anybody */
} nxr_options;

/* Stopped before its last step, with a checkpoint from which it can go on. */
enum { NXR_EXIT_OK = 0, NXR_EXIT_FAILED = 1, NXR_EXIT_USAGE = 2, NXR_EXIT_STOPPED = 3 };

/* The exit status; the same on every rank. SIGTERM, SIGINT and SIGHUP end the run after the current step,
 * with a checkpoint; a second one, later than a second after the first, ends it at once. */
int nxr_train(nxr_world *world, const nx_plan *plan, const nxr_options *options);

#endif
