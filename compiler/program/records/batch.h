/* SPDX-License-Identifier: Apache-2.0 */
/* How many sequences there are in a step, and in each pass.
 *
 * A batch that grows does so in phases: batch.growth says from how many sequences on, that are trained on
 * before a step, it has which size. A phase begins with the first step that finds so many behind it. */
#ifndef NXC_RECORDS_BATCH_H
#define NXC_RECORDS_BATCH_H

#include "compiler/program/records/layout.h"

typedef struct nxc_batch_phase {
  int64_t first_step, first_sample;
  int64_t global, n_micro;
} nxc_batch_phase;

typedef struct nxc_batch {
  int64_t rows;          /* of a sample: 2 where answers are compared */
  int64_t micro, global; /* global: when it has grown */
  int64_t n_micro; /* micro-batches of a rank in a step */
  int64_t n_evaluated; /* in a batch of an evaluation, no more */
  int64_t times_evaluated; /* such batches in one of evaluate.batch sequences */
  const nxc_batch_phase *phases; /* as many as steps come to */
  size_t n_phases;               /* 0: all steps have one size */
} nxc_batch;

/* A sample of the settings is so many rows: sequences, here and in the plan. */
nxc_batch nxc_batch_read(const nxc_settings *settings, const nxc_layout *layout, int64_t rows);
/* What is wrong with batch.growth as a whole, or NULL. */
const char *nxc_growth_fault(const nxc_settings *settings, const nxc_batch *batch, const nxc_layout *layout);
/* Sequences that are trained on before a step. */
int64_t nxc_batch_samples_before(const nxc_batch *batch, int64_t step);
/* The first step that has as many behind it. */
int64_t nxc_batch_step_behind(const nxc_batch *batch, int64_t samples);

#endif
