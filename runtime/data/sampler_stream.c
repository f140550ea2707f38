/* SPDX-License-Identifier: Apache-2.0 */
/* An epoch reads the documents one after another, in its order, as one stream; sample i of it are the
 * sequence + 1 tokens from i x sequence on, so neighbours share one token. What is left at the end of an
 * epoch is not read. Where one order has all epochs, an epoch may have fewer tokens than a sample. */
#include "runtime/data/data_layout.h"
#include "runtime/data/sampler.h"

static bool is_too_short(const nxr_sampler *sampler) {
  const nxr_data_source *source = sampler->source;
  bool together = sampler->shuffle && sampler->order != NX_ORDER_EPOCHS && sampler->n_needed < UINT64_MAX;
  return source->n_tokens <= (together ? 1 : sampler->run->sequence);
}

static bool stream_open(nxr_sampler *sampler, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  uint32_t sequence = sampler->run->sequence;
  if (is_too_short(sampler))
    return nxr_fault_set(
        fault,
        "dataset %s has %llu tokens, in %llu of its %llu documents (data.split): fewer than one "
        "sample of %u + 1",
        source->name, (unsigned long long)source->n_tokens, (unsigned long long)source->n_documents,
        (unsigned long long)source->all_documents, sequence);
  const nxr_order_rule rule = {.seed = sampler->run->seed,
                               .number = source->number,
                               .shuffle = sampler->shuffle,
                               .order = sampler->order,
                               .n_needed = sampler->n_needed};
  if (!nxr_orders_open(source, &rule, &sampler->orders, fault)) return false;
  sampler->n_samples = source->n_tokens > sequence ? (source->n_tokens - 1) / sequence : 1;
  return true;
}

/* The document of an epoch's order that holds a token of the stream. */
static uint64_t find_document(const nxr_order *order, uint64_t n_documents, uint64_t token) {
  uint64_t low = 0, high = n_documents;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    if (order->firsts[middle] <= token) low = middle;
    else high = middle;
  }
  return low;
}

/* Weights of the stream's tokens from the first label on, on top of those that they have. */
static void weigh_labels(const nxr_sampler *sampler, const nxr_order *order, uint64_t first, float *weights) {
  const nxr_data_source *source = sampler->source;
  float some[256];
  uint64_t n = sampler->run->weights == NX_NONE ? 0 : sampler->run->sequence;
  for (uint64_t at = find_document(order, order->n_documents, first); n > 0;) {
    uint64_t n_left = order->firsts[at + 1] - first, n_here = n < n_left ? n : n_left;
    if (n_here > sizeof some / sizeof *some) n_here = sizeof some / sizeof *some;
    nxr_data_source_weights(source, order->documents[at], first - order->firsts[at], n_here, some);
    for (uint64_t i = 0; i < n_here; i++) weights[i] *= some[i];
    weights += n_here, first += n_here, n -= n_here;
    at += first == order->firsts[at + 1];
  }
}

static uint64_t wrapped(const nxr_sampler *sampler, uint64_t sample) {
  uint64_t n = nxr_orders_said(&sampler->orders);
  return n > 0 && sample > n ? sample % n : sample;
}

static void stream_read(nxr_sampler *sampler, uint64_t number, const nxr_row *row) {
  const nxr_data_source *source = sampler->source;
  uint64_t sample = wrapped(sampler, number);
  const nxr_order *order = nxr_orders_of(&sampler->orders, sample / sampler->orders.n_samples);
  uint64_t sequence = sampler->run->sequence, n = sequence + 1;
  const uint64_t start = order->samples[sample % sampler->orders.n_samples] * sequence;
  uint64_t first = start;
  bool indexed = sampler->run->documents & NX_DOCUMENTS_INDEX;
  for (uint64_t at = find_document(order, order->n_documents, first); n > 0; at++) {
    uint64_t n_left = order->firsts[at + 1] - first, n_here = n < n_left ? n : n_left, begins = first - start;
    nxr_data_source_read(source, order->documents[at], first - order->firsts[at], n_here, row->tokens + begins);
    for (uint64_t i = begins; indexed && i < begins + n_here && i < sequence; i++) row->starts[i] = (int32_t)begins;
    first += n_here, n -= n_here;
  }
  if (!indexed) nxr_find_documents(sampler->run, row->tokens, row->starts);
  nxr_weigh_tokens(sampler->run, row->tokens, row->weights);
  weigh_labels(sampler, order, start + 1, row->weights);
}

const nxr_sampler_kind nxr_sampler_stream = {stream_open, stream_read, 1};
