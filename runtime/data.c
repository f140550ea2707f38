/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data.h"

#include "runtime/data_layout.h"
#include "runtime/data_order.h"
#include "runtime/dataset_split.h"

#include <stdlib.h>

struct nxr_data {
  const nx_plan *plan;
  nxr_dataset dataset;
  nxr_fingerprint fingerprint;
  nxr_orders orders;
  uint32_t data_rank, ring_rank;
  uint32_t n_part, n_own; /* tokens of a sequence: of the ring rank, and of this rank among them */
  uint32_t first_own;     /* in the part */
  int32_t *tokens;        /* [sequence + 1] one sample */
  int32_t *starts;        /* [sequence] of its documents */
  int32_t *places;        /* [ring_size, n_part] */
};

static bool allocate(nxr_data *data, nxr_fault *fault) {
  uint32_t sequence = data->plan->run->sequence;
  data->tokens = calloc((size_t)sequence + 1, sizeof *data->tokens);
  data->starts = calloc(sequence, sizeof *data->starts);
  data->places = calloc(sequence, sizeof *data->places);
  return (data->tokens && data->starts && data->places) || nxr_fault_set(fault, "out of memory for a sample");
}

static bool open_dataset(nxr_data *data, nxr_fault *fault) {
  const nx_plan *plan = data->plan;
  const nx_dataset *set = nx_plan_train_set(plan);
  if (set == NULL || set->n_sources != 1)
    return nxr_fault_set(fault,
                         "the plan has %u sources to train on; this version reads one: compile it with one "
                         "data.path",
                         set ? set->n_sources : 0);
  const nx_source *source = &plan->sources[set->first_source];
  if (!nxr_dataset_open(nx_plan_string(plan, source->prefix), &data->dataset, fault)) return false;
  uint64_t first, n_documents;
  nxr_split_part(source, data->dataset.n_documents, &first, &n_documents);
  if (!nxr_orders_open(&data->dataset, n_documents, plan->run, set->shuffle, &data->orders, fault))
    return false;
  data->fingerprint = nxr_fingerprint_of(&data->dataset, n_documents, data->orders.n_tokens);
  return allocate(data, fault);
}

/* Row t: the part of the t-th ring rank before this one. */
static void make_places(nxr_data *data) {
  const nx_run *run = data->plan->run;
  for (uint32_t row = 0; row < run->ring_size; row++) {
    uint32_t ring_rank = (data->ring_rank + run->ring_size - row) % run->ring_size;
    for (uint32_t i = 0; i < data->n_part; i++)
      data->places[(size_t)row * data->n_part + i] = (int32_t)nxr_ring_place(run, ring_rank, i);
  }
}

bool nxr_data_open(const nx_plan *plan, uint32_t rank, nxr_data **out, nxr_fault *fault) {
  const nx_run *run = plan->run;
  *out = NULL;
  nxr_data *data = calloc(1, sizeof *data);
  if (data == NULL) return nxr_fault_set(fault, "out of memory");
  *data = (nxr_data){.plan = plan, .n_part = run->sequence / run->ring_size};
  data->data_rank = (uint32_t)nx_constant_value(plan, run->data_rank, rank, 0);
  data->ring_rank = (uint32_t)nx_constant_value(plan, run->ring_rank, rank, 0);
  data->n_own = data->n_part / run->ulysses_size;
  data->first_own = (uint32_t)nx_constant_value(plan, run->ulysses_rank, rank, 0) * data->n_own;
  if (!open_dataset(data, fault)) {
    nxr_data_close(data);
    return false;
  }
  make_places(data);
  *out = data;
  return true;
}

void nxr_data_close(nxr_data *data) {
  if (data == NULL) return;
  nxr_orders_close(&data->orders);
  nxr_dataset_close(&data->dataset);
  free(data->starts);
  free(data->tokens);
  free(data->places);
  free(data);
}

/* The document of an epoch's order that holds a token of the stream. */
static uint64_t find_document(const nxr_data *data, const nxr_order *order, uint64_t token) {
  uint64_t low = 0, high = data->orders.n_documents;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    if (order->firsts[middle] <= token) low = middle;
    else high = middle;
  }
  return low;
}

/* Sample `sample` of the run, into data->tokens. */
static void read_sample(nxr_data *data, uint64_t sample) {
  const nxr_order *order = nxr_orders_of(&data->orders, sample / data->orders.n_samples);
  uint64_t sequence = data->plan->run->sequence, n = sequence + 1;
  uint64_t first = order->samples[sample % data->orders.n_samples] * sequence;
  int32_t *tokens = data->tokens;
  for (uint64_t at = find_document(data, order, first); n > 0; at++) {
    uint64_t n_left = order->firsts[at + 1] - first, n_here = n < n_left ? n : n_left;
    nxr_dataset_read(&data->dataset, order->documents[at], first - order->firsts[at], n_here, tokens);
    tokens += n_here, first += n_here, n -= n_here;
  }
}

static bool check_tokens(const nxr_data *data, uint64_t sample, nxr_fault *fault) {
  for (uint32_t i = 0; i <= data->plan->run->sequence; i++) {
    int32_t token = data->tokens[i];
    if (token < 0 || (uint64_t)token >= data->plan->run->vocab)
      return nxr_fault_set(fault,
                           "dataset %s has token %d in sample %llu, and the model's vocabulary has %llu "
                           "words: the dataset was made with another tokenizer, or model.vocab is wrong",
                           data->dataset.prefix, token, (unsigned long long)sample,
                           (unsigned long long)data->plan->run->vocab);
  }
  return true;
}

const nxr_fingerprint *nxr_data_fingerprint(const nxr_data *data) {
  return &data->fingerprint;
}

const int32_t *nxr_data_places(const nxr_data *data) {
  return data->places;
}

/* Sequence i of the micro-batch from the sample at hand; weights of 0 and 1. */
static void give_sequence(const nxr_data *data, uint32_t i, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  bool restart = run->documents & NX_DOCUMENTS_POSITIONS, separate = run->documents & NX_DOCUMENTS_ATTENTION;
  const int32_t *own = data->places + data->first_own;
  size_t first = (size_t)i * data->n_own;
  for (uint32_t at = 0; at < data->n_own; at++) {
    int32_t place = own[at];
    batch->tokens[first + at] = data->tokens[place];
    batch->labels[first + at] = data->tokens[place + 1];
    batch->positions[first + at] = place - (restart ? data->starts[place] : 0);
    if (batch->weights) batch->weights[first + at] = nxr_is_predicted(run, data->tokens[place]) ? 1.0F : 0.0F;
  }
  for (uint32_t at = 0; batch->starts && at < data->n_part; at++)
    batch->starts[(size_t)i * data->n_part + at] = separate ? data->starts[data->places[at]] : 0;
}

/* The losses of a micro-batch weigh as much together as if all of its tokens were predicted. */
static void scale_weights(const nxr_data *data, uint64_t n_predicted, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  double all = (double)run->micro_batch * run->sequence;
  float factor = n_predicted ? (float)(all / (double)n_predicted) : 0.0F;
  size_t n = batch->weights ? (size_t)run->micro_batch * data->n_own : 0;
  for (size_t i = 0; i < n; i++) batch->weights[i] *= factor;
}

bool nxr_data_read(nxr_data *data, uint64_t step, uint32_t micro_batch, const nxr_batch *batch,
                   nxr_fault *fault) {
  const nx_run *run = data->plan->run;
  uint64_t share = run->global_batch / run->data_size, n_predicted = 0;
  uint64_t first =
      step * run->global_batch + data->data_rank * share + (uint64_t)micro_batch * run->micro_batch;
  for (uint32_t i = 0; i < run->micro_batch; i++) {
    uint64_t sample = first + i;
    read_sample(data, sample);
    if (!check_tokens(data, sample, fault)) return false;
    nxr_find_documents(run, data->tokens, data->starts);
    n_predicted += nxr_count_predicted(run, data->tokens);
    give_sequence(data, i, batch);
    batch->samples[i] = (int64_t)sample;
  }
  scale_weights(data, n_predicted, batch);
  return true;
}
