/* SPDX-License-Identifier: Apache-2.0 */
/* Which datasets are evaluated, and when: the plan's records (schema/plan.h) before their names have
 * places.
 *
 * * Validation sets are evaluated while the training goes on, test sets when it is over; where settings
 * ask for no batches of them, or there is no such set, there is no evaluation. */
#ifndef NXC_RECORDS_EVALUATIONS_H
#define NXC_RECORDS_EVALUATIONS_H

#include "compiler/program/records/datasets.h"

typedef struct nxc_evaluation {
  const char *name; /* that of its dataset */
  nx_evaluation record;
} nxc_evaluation;

typedef struct nxc_evaluations {
  uint32_t n;
  const nxc_evaluation *at;
} nxc_evaluations;

/* One batch of the settings is so many of the plan. */
nxc_evaluations nxc_evaluations_read(const nxc_settings *settings, const nxc_datasets *datasets,
                                     uint64_t times);
/* Batches of it in a training of so many steps; of a share of a set, and by epochs, none are counted. */
double nxc_evaluated_batches(const nx_evaluation *evaluation, uint64_t n_steps);
/* Index of the evaluation of that name, or NX_NONE. */
uint32_t nxc_evaluation_named(const nxc_evaluations *evaluations, const char *name);
/* Whether checkpoints are the best by a number of their last step, and by which: NX_RUN_BEST_BY_*, 0 its
 * loss. */
bool nxc_best_number(const char *metric, uint32_t *rule);
/* False, with findings, where settings name a set that is not evaluated, or ask for evaluations alone and
 * there are none. */
bool nxc_evaluations_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_evaluations *evaluations);

#endif
