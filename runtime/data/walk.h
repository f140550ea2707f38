/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a run reads the samples of a dataset, where that is not their own (nx_walk).
 *
 * An epoch's order is made when its first sample is asked for; those of two are kept, so that an epoch's end
 * and the next one's start may be read in turn. */
#ifndef NXR_WALK_H
#define NXR_WALK_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

typedef struct nxr_walk {
  nx_walk kind;
  uint64_t seed, n_samples; /* of the dataset */
  uint32_t n_ranks, micro_batch;
  uint64_t n_read, n_permuted; /* of an epoch */
  struct {
    uint64_t epoch; /* UINT64_MAX: of none yet */
    uint64_t *order; /* [n_permuted] */
  } kept[2];
} nxr_walk;

/* The samples of a step, in order of ranks: [first, first + n). */
typedef struct nxr_stride {
  uint64_t first;
  uint32_t n;
} nxr_stride;

/* Of one whose kind, seed, samples, ranks and micro-batch are there; an epoch of PyTorch's sampler is whole
 * batches. On failure there is nothing to close. */
bool nxr_walk_open(nxr_walk *walk, const char *name, uint32_t batch, nxr_fault *fault);
void nxr_walk_close(nxr_walk *walk);
/* Which sample of the dataset is read as number `sample` of a step. Allocates nothing. */
uint64_t nxr_walk_sample(nxr_walk *walk, const nxr_stride *step, uint64_t sample);

#endif
