/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset of the plan, opened: a sampler over each of its sources, and the blend of what they give. */
#ifndef NXR_DATA_SET_H
#define NXR_DATA_SET_H

#include "runtime/data/blend.h"
#include "runtime/data/sampler.h"

typedef struct nxr_set {
  const nx_plan *plan;
  const nx_dataset *record;
  nxr_sampler *samplers; /* [record->n_sources]; NULL: not open */
  nxr_blend blend;
  uint64_t n_samples; /* that its sources have together */
  nxr_fingerprint fingerprint;
  bool empty; /* it could not be opened because a source has no sample */
} nxr_set;

/* `n_needed` samples are read at most. On failure there is nothing to close. */
bool nxr_set_open(const nx_plan *plan, const nx_dataset *record, uint64_t n_needed, nxr_data_sources *sources,
                  nxr_set *set, nxr_fault *fault);
void nxr_set_close(nxr_set *set);
/* Sample `sample` of the set, over all epochs; false where it has what is no word of the model. Allocates
 * nothing. */
bool nxr_set_read(nxr_set *set, uint64_t sample, const nxr_row *row, nxr_fault *fault);

#endif
