/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset of the plan, opened: a sampler over each of its sources, and the blend of what they give. */
#ifndef NXR_DATA_SET_H
#define NXR_DATA_SET_H

#include "runtime/data/blend.h"
#include "runtime/data/sampler.h"
#include "runtime/data/walk.h"

typedef struct nxr_set {
  const nx_plan *plan;
  const nx_dataset *record;
  nxr_sampler *samplers; /* [record->n_sources]; NULL: not open */
  nxr_blend blend;
  uint64_t again; /* samples behind which the blend begins again; 0: it never does */
  uint64_t n_rows; /* that its sources have together: one for each sample, or two */
  nxr_fingerprint fingerprint;
  bool empty; /* it could not be opened because a source has no sample */
  nxr_walk walk; /* of samples; of those that are in order straight all the same */
  bool in_order; /* row k is the k-th document of all sources, one after another: where rows are documents */
} nxr_set;

/* `n_needed` rows are read at most. On failure there is nothing to close. */
bool nxr_set_open(const nx_plan *plan, const nx_dataset *record, uint64_t n_needed, nxr_data_sources *sources,
                  nxr_set *set, nxr_fault *fault);
void nxr_set_close(nxr_set *set);
/* Row `number` of a step of the set is this row of it. */
uint64_t nxr_set_walk(nxr_set *set, const nxr_stride *step, uint64_t number);
/* Row `number` of the set, over all epochs; false where it has what is no word of the model. Allocates
 * nothing. */
bool nxr_set_read(nxr_set *set, uint64_t number, const nxr_row *row, nxr_fault *fault);
/* Where rows are documents: the place of row `number` among the documents of all sources, one after another.
 */
uint64_t nxr_set_document(nxr_set *set, uint64_t number);
/* And its reward, and the mean of this over the sequence, where it stands at each token. */
void nxr_set_reward(nxr_set *set, uint64_t number, double reward[2]);

#endif
