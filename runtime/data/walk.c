/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/walk.h"

#include "runtime/data/mt19937.h"

#include <stdlib.h>

/* Samples that all ranks read at once. */
static uint64_t together(const nxr_walk *walk) {
  return (uint64_t)walk->n_ranks * walk->micro_batch;
}

static bool deals(const nxr_walk *walk) {
  return walk->kind == NX_WALK_AGAIN || walk->kind == NX_WALK_DEALT;
}

static uint64_t rounded_up(uint64_t n, uint64_t to) {
  return (n + to - 1) / to * to;
}

/* Of an epoch, for batches of so many samples. */
static uint64_t samples_read(const nxr_walk *walk, uint64_t batch) {
  if (walk->kind == NX_WALK_DISTRIBUTED) return rounded_up(walk->n_samples, walk->n_ranks) / batch * batch;
  if (deals(walk)) return walk->n_samples / batch * batch;
  return walk->n_samples / together(walk) * together(walk);
}

static uint64_t samples_permuted(const nxr_walk *walk) {
  uint64_t n_batches = walk->n_samples / walk->micro_batch;
  return walk->kind == NX_WALK_DISTRIBUTED || deals(walk) ? walk->n_samples
         : walk->kind == NX_WALK_CYCLIC                   ? n_batches * walk->micro_batch
                                                          : n_batches / walk->n_ranks * walk->micro_batch;
}

bool nxr_walk_open(nxr_walk *walk, const char *name, uint32_t batch, nxr_fault *fault) {
  if (walk->kind == NX_WALK_STRAIGHT) return true;
  bool divides = walk->n_ranks > 0 && walk->micro_batch > 0 && batch >= walk->n_ranks;
  walk->n_read = divides ? samples_read(walk, batch) : 0;
  if (walk->n_read == 0)
    return nxr_fault_set(
        fault,
        "dataset %s has %llu samples, and an epoch has none of %u: give more data, or smaller "
        "batches",
        name, (unsigned long long)walk->n_samples, batch);
  if (walk->kind == NX_WALK_AGAIN) return true;
  walk->n_permuted = samples_permuted(walk);
  for (int i = 0; i < 2; i++) {
    walk->kept[i].epoch = UINT64_MAX;
    walk->kept[i].order = calloc(walk->n_permuted, sizeof *walk->kept[i].order);
  }
  if (walk->kept[0].order && walk->kept[1].order) return true;
  nxr_walk_close(walk);
  return nxr_fault_set(fault, "out of memory for the order of %llu samples",
                       (unsigned long long)walk->n_permuted);
}

void nxr_walk_close(nxr_walk *walk) {
  for (int i = 0; i < 2; i++) free(walk->kept[i].order);
  *walk = (nxr_walk){.kind = NX_WALK_STRAIGHT};
}

static const uint64_t *order_of(nxr_walk *walk, uint64_t epoch) {
  nxr_mt19937 random;
  uint64_t *order = walk->kept[epoch % 2].order;
  if (walk->kept[epoch % 2].epoch == epoch) return order;
  nxr_mt19937_seed(&random, (uint32_t)(epoch + (walk->kind == NX_WALK_DISTRIBUTED ? walk->seed : 0)));
  nxr_mt19937_permute(&random, order, walk->n_permuted);
  walk->kept[epoch % 2].epoch = epoch;
  return order;
}

/* Samples of a step that a rank reads. */
static uint64_t share_of(const nxr_walk *walk, const nxr_stride *step) {
  return step->n > walk->n_ranks ? step->n / walk->n_ranks : 1;
}

/* Ranks take samples of a step in turn. */
static uint64_t dealt(const nxr_walk *walk, const nxr_stride *step, uint64_t sample) {
  uint64_t share = share_of(walk, step), at = sample - step->first;
  return step->first + at % share * walk->n_ranks + at / share;
}

/* Each rank has its own samples, one behind those of the rank before. */
static uint64_t of_shards(nxr_walk *walk, const nxr_stride *step, uint64_t sample) {
  uint64_t share = share_of(walk, step), at = sample - step->first;
  uint64_t number = step->first / walk->n_ranks + at % share, of_rank = walk->n_read / walk->n_ranks;
  return at / share * of_rank + order_of(walk, number / of_rank)[number % of_rank];
}

uint64_t nxr_walk_sample(nxr_walk *walk, const nxr_stride *step, uint64_t sample) {
  if (walk->kind == NX_WALK_STRAIGHT) return sample;
  if (deals(walk)) sample = dealt(walk, step, sample);
  if (walk->kind == NX_WALK_AGAIN) return sample % walk->n_read;
  if (walk->kind == NX_WALK_CYCLIC_SHARDS) return of_shards(walk, step, sample);
  return order_of(walk, sample / walk->n_read)[sample % walk->n_read % walk->n_permuted];
}
