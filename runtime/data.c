/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data.h"

#include "runtime/dataset.h"
#include "schema/philox.h"

#include <stdlib.h>
#include <string.h>

/* The order of samples. An epoch reads the documents one after another, in an order drawn for that epoch, as
 * one stream; sample i of it are the sequence + 1 tokens from i x sequence on, so neighbours share one token.
 * The samples are then drawn in random order too. What is left at the end of an epoch is not read. Both
 * orders are Fisher-Yates shuffles with Philox keyed by (seed, epoch, which of the two): they depend on
 * nothing else, least of all the mesh. Without shuffling the documents and samples keep their order. */
struct nxr_data {
  const nx_plan *plan;
  nxr_dataset dataset;
  uint32_t data_rank;
  uint64_t n_samples;  /* per epoch */
  uint64_t epoch;      /* whose order the tables hold */
  uint64_t *documents; /* [n_documents] in order of reading */
  uint64_t *starts;    /* [n_documents + 1] first token of each in the stream */
  uint64_t *samples;   /* [n_samples] in order of training */
  int32_t *tokens;     /* [sequence + 1] one sample */
};

enum { ORDER_OF_DOCUMENTS = 0x446f6373, ORDER_OF_SAMPLES = 0x53616d70 };

static uint64_t draw_below(uint64_t bound, uint64_t seed, uint32_t what, uint64_t epoch, uint64_t index) {
  nx_philox words = nx_philox_draw(seed, what, (uint32_t)index, (uint32_t)(index >> 32), (uint32_t)epoch,
                                   (uint32_t)(epoch >> 32));
  uint64_t random = (uint64_t)words.word[0] << 32 | words.word[1];
  return (uint64_t)((unsigned __int128)random * bound >> 64);
}

static void shuffle(uint64_t *items, uint64_t n, uint64_t seed, uint32_t what, uint64_t epoch) {
  for (uint64_t i = 0; i < n; i++) items[i] = i;
  for (uint64_t i = n; i > 1; i--) {
    uint64_t j = draw_below(i, seed, what, epoch, i), item = items[i - 1];
    items[i - 1] = items[j];
    items[j] = item;
  }
}

static void identity(uint64_t *items, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) items[i] = i;
}

static void order_epoch(nxr_data *data, uint64_t epoch) {
  const nx_run *run = data->plan->run;
  uint64_t n_documents = data->dataset.n_documents;
  if (run->shuffle) {
    shuffle(data->documents, n_documents, run->seed, ORDER_OF_DOCUMENTS, epoch);
    shuffle(data->samples, data->n_samples, run->seed, ORDER_OF_SAMPLES, epoch);
  } else {
    identity(data->documents, n_documents);
    identity(data->samples, data->n_samples);
  }
  data->starts[0] = 0;
  for (uint64_t i = 0; i < n_documents; i++)
    data->starts[i + 1] = data->starts[i] + nxr_dataset_document_tokens(&data->dataset, data->documents[i]);
  data->epoch = epoch;
}

static bool allocate(nxr_data *data, nxr_fault *fault) {
  uint64_t n_documents = data->dataset.n_documents;
  data->documents = calloc(n_documents, sizeof *data->documents);
  data->starts = calloc(n_documents + 1, sizeof *data->starts);
  data->samples = calloc(data->n_samples, sizeof *data->samples);
  data->tokens = calloc((size_t)data->plan->run->sequence + 1, sizeof *data->tokens);
  if (data->documents && data->starts && data->samples && data->tokens) return true;
  return nxr_fault_set(fault, "out of memory for the order of %llu samples",
                       (unsigned long long)data->n_samples);
}

static bool open_dataset(nxr_data *data, nxr_fault *fault) {
  const nx_plan *plan = data->plan;
  if (plan->n[NX_SECTION_DATA_PATHS] != 1)
    return nxr_fault_set(fault,
                         "the plan names %u datasets; this version reads one: compile it with one data.path",
                         plan->n[NX_SECTION_DATA_PATHS]);
  if (!nxr_dataset_open(nx_plan_string(plan, plan->data_paths[0]), &data->dataset, fault)) return false;
  uint64_t sequence = plan->run->sequence, n_tokens = data->dataset.n_tokens;
  data->n_samples = n_tokens > 0 ? (n_tokens - 1) / sequence : 0;
  if (data->n_samples == 0)
    return nxr_fault_set(fault, "dataset %s has %llu tokens, fewer than one sample of %llu + 1",
                         data->dataset.prefix, (unsigned long long)n_tokens, (unsigned long long)sequence);
  return allocate(data, fault);
}

bool nxr_data_open(const nx_plan *plan, uint32_t data_rank, nxr_data **out, nxr_fault *fault) {
  *out = NULL;
  nxr_data *data = calloc(1, sizeof *data);
  if (data == NULL) return nxr_fault_set(fault, "out of memory");
  *data = (nxr_data){.plan = plan, .data_rank = data_rank};
  if (!open_dataset(data, fault)) {
    nxr_data_close(data);
    return false;
  }
  order_epoch(data, 0);
  *out = data;
  return true;
}

void nxr_data_close(nxr_data *data) {
  if (data == NULL) return;
  nxr_dataset_close(&data->dataset);
  free(data->documents);
  free(data->starts);
  free(data->samples);
  free(data->tokens);
  free(data);
}

/* The document of the epoch's order that holds a token of the stream. */
static uint64_t find_document(const nxr_data *data, uint64_t token) {
  uint64_t low = 0, high = data->dataset.n_documents;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    if (data->starts[middle] <= token) low = middle;
    else high = middle;
  }
  return low;
}

static void read_stream(nxr_data *data, uint64_t first, uint64_t n, int32_t *tokens) {
  for (uint64_t at = find_document(data, first); n > 0; at++) {
    uint64_t n_left = data->starts[at + 1] - first, n_here = n < n_left ? n : n_left;
    nxr_dataset_read(&data->dataset, data->documents[at], first - data->starts[at], n_here, tokens);
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

bool nxr_data_read(nxr_data *data, uint64_t step, uint32_t micro_batch, int32_t *tokens, int32_t *labels,
                   int32_t *positions, int64_t *samples, nxr_fault *fault) {
  const nx_run *run = data->plan->run;
  uint64_t share = run->global_batch / run->data_size, sequence = run->sequence;
  uint64_t first =
      step * run->global_batch + data->data_rank * share + (uint64_t)micro_batch * run->micro_batch;
  for (uint32_t i = 0; i < run->micro_batch; i++) {
    uint64_t sample = first + i, epoch = sample / data->n_samples;
    if (epoch != data->epoch) order_epoch(data, epoch);
    read_stream(data, data->samples[sample % data->n_samples] * sequence, sequence + 1, data->tokens);
    if (!check_tokens(data, sample, fault)) return false;
    memcpy(tokens + i * sequence, data->tokens, sequence * sizeof *tokens);
    memcpy(labels + i * sequence, data->tokens + 1, sequence * sizeof *labels);
    for (uint32_t at = 0; at < sequence; at++) positions[i * sequence + at] = (int32_t)at;
    samples[i] = (int64_t)sample;
  }
  return true;
}
