/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the documents of a source, and the samples of them, come in each epoch.
 *
 * Both orders are Fisher-Yates shuffles with Philox keyed by (seed, epoch, source, which of the two): they
 * depend on nothing else, least of all the mesh. Without shuffling the documents and samples keep their
 * order.
 *
 * The orders of two epochs are kept where a run has more than one: where micro-batches overlap, those of an
 * epoch's end and of the next one's start are read in turn. */
#ifndef NXR_DATA_ORDER_H
#define NXR_DATA_ORDER_H

#include "runtime/data/data_source.h"

typedef struct nxr_order {
  uint64_t epoch;      /* UINT64_MAX: of none yet */
  uint64_t n_documents;
  uint64_t *documents; /* [n_documents] in order of reading */
  uint64_t *firsts;    /* [n_documents + 1] first token of each, as if they were one stream */
  uint64_t *samples;   /* [n_samples] in order of training */
} nxr_order;

typedef struct nxr_order_rule {
  uint64_t seed;
  uint32_t number; /* sources of different numbers are shuffled independently */
  bool shuffle;
  nx_order order;
  uint64_t n_needed; /* samples that may be asked for; UINT64_MAX: nobody knows */
  uint64_t n_samples; /* of an epoch; 0: those that the tokens make as one stream */
} nxr_order_rule;

typedef struct nxr_orders {
  const nxr_data_source *source;
  nxr_order_rule rule;
  bool together;      /* one order has all epochs */
  uint64_t n_samples; /* of an epoch, or of all together */
  uint32_t n;         /* epochs whose orders are kept */
  nxr_order kept[2];
} nxr_orders;

/* On failure there is nothing to close. The source has a sample at least. */
bool nxr_orders_open(const nxr_data_source *source, const nxr_order_rule *rule, nxr_orders *orders,
                     nxr_fault *fault);
void nxr_orders_close(nxr_orders *orders);
/* Samples behind which whoever reads an order of all epochs begins again, as GPT-NeoX does: it says of a
 * dataset that it has one less than it has. UINT64_MAX: nobody does. */
uint64_t nxr_orders_said(const nxr_orders *orders);
/* Stays as it is until the epoch after the next is asked for. Allocates nothing. */
const nxr_order *nxr_orders_of(nxr_orders *orders, uint64_t epoch);
/* order_megatron.c; on failure the order is to be freed all the same. */
bool nxr_order_megatron(const nxr_data_source *source, const nxr_order_rule *rule, nxr_order *order,
                        uint64_t *n_samples, nxr_fault *fault);

#endif
