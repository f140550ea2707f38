/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the documents of a dataset, and the samples of their stream, come.
 *
 * An epoch reads the documents one after another, in an order drawn for that epoch, as one stream; sample i
 * of it are the sequence + 1 tokens from i x sequence on, so neighbours share one token. The samples are then
 * drawn in random order too. What is left at the end of an epoch is not read. Both orders are Fisher-Yates
 * shuffles with Philox keyed by (seed, epoch, which of the two): they depend on nothing else, least of all
 * the mesh. Without shuffling the documents and samples keep their order.
 *
 * The orders of two epochs are kept where a run has more than one: where micro-batches overlap, those of an
 * epoch's end and of the next one's start are read in turn. */
#ifndef NXR_DATA_ORDER_H
#define NXR_DATA_ORDER_H

#include "runtime/dataset.h"
#include "schema/plan.h"

typedef struct nxr_order {
  uint64_t epoch;      /* UINT64_MAX: of none yet */
  uint64_t *documents; /* [n_documents] in order of reading */
  uint64_t *firsts;    /* [n_documents + 1] first token of each in the stream */
  uint64_t *samples;   /* [n_samples] in order of training */
} nxr_order;

typedef struct nxr_orders {
  const nxr_dataset *dataset;
  const nx_run *run;
  bool shuffle;
  uint64_t n_documents, n_tokens, n_samples; /* of an epoch */
  uint32_t n; /* epochs whose orders are kept */
  nxr_order kept[2];
} nxr_orders;

/* Of the documents from the first. On failure there is nothing to close. */
bool nxr_orders_open(const nxr_dataset *dataset, uint64_t n_documents, const nx_run *run, bool shuffle,
                     nxr_orders *orders, nxr_fault *fault);
void nxr_orders_close(nxr_orders *orders);
/* Stays as it is until the epoch after the next is asked for. Allocates nothing. */
const nxr_order *nxr_orders_of(nxr_orders *orders, uint64_t epoch);

#endif
