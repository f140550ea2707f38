/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/data.h"

#include "runtime/data/data_layout.h"
#include "runtime/data/data_set.h"

#include <stdlib.h>
#include <string.h>

struct nxr_data {
  const nx_plan *plan;
  nxr_data_sources sources;
  nxr_set *sets; /* as the plan's datasets; what nothing reads is not open */
  uint64_t *limits; /* of their rows */
  const double **references; /* of their documents; NULL: none */
  nxr_fingerprint everything;
  uint32_t trained; /* the set */
  uint32_t data_rank, ring_rank;
  uint32_t n_part, n_own; /* tokens of a sequence: of the ring rank, and of this rank among them */
  uint32_t first_own;     /* in the part */
  nxr_row row;            /* one sample */
  struct {
    uint32_t set; /* NX_NONE: of no step yet */
    uint64_t step;
    uint32_t n_sequences; /* that are there */
    uint32_t n_voters; /* micro-batches that weigh anything */
    double weight;
  } counted; /* the step whose weights were added last */
  int32_t *places;        /* [ring_size, n_part] */
};

static bool allocate(nxr_data *data, nxr_fault *fault) {
  uint32_t sequence = data->plan->run->sequence;
  data->row.tokens = calloc((size_t)sequence + 1, sizeof *data->row.tokens);
  data->row.starts = calloc(sequence, sizeof *data->row.starts);
  data->row.weights = calloc(sequence, sizeof *data->row.weights);
  data->row.labels = calloc((size_t)sequence + 1, sizeof *data->row.labels);
  data->places = calloc(sequence, sizeof *data->places);
  data->sets = calloc((size_t)data->plan->n[NX_SECTION_DATASETS] + 1, sizeof *data->sets);
  data->limits = calloc((size_t)data->plan->n[NX_SECTION_DATASETS] + 1, sizeof *data->limits);
  data->references = calloc((size_t)data->plan->n[NX_SECTION_DATASETS] + 1, sizeof *data->references);
  bool good = data->row.tokens && data->row.starts && data->row.weights && data->row.labels && data->places &&
              data->sets && data->limits && data->references;
  return good ? nxr_data_sources_make(data->plan, &data->sources, fault)
              : nxr_fault_set(fault, "out of memory for a sample");
}

/* Whether any schedule reads the set: what is held out alone needs no files. */
static bool is_read(const nx_plan *plan, uint32_t set, nxr_reads reads) {
  if (reads == NXR_READS_NOTHING) return false;
  if (plan->datasets[set].role == NX_DATASET_TRAIN) return reads == NXR_READS_ALL;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++)
    if (plan->evaluations[i].dataset == set) return true;
  return false;
}

/* Rows that the whole run reads of a set, as Megatron counts them; UINT64_MAX where shares say how many. */
static uint64_t needed_of(const nx_plan *plan, uint32_t set) {
  const nx_run *run = plan->run;
  if (plan->datasets[set].role == NX_DATASET_TRAIN) return nx_plan_samples_before(plan, run->n_steps);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++) {
    const nx_evaluation *evaluation = &plan->evaluations[i];
    uint64_t n_times = evaluation->every > 0 ? run->n_steps / evaluation->every + 1 : 1;
    if (evaluation->dataset == set && evaluation->batches > 0)
      return n_times * evaluation->batches * nx_plan_evaluated_batch(plan);
  }
  return UINT64_MAX;
}

static bool open_set(nxr_data *data, uint32_t index, nxr_fault *fault) {
  const nx_plan *plan = data->plan;
  nxr_set *set = &data->sets[index];
  data->limits[index] = UINT64_MAX;
  if (nxr_set_open(plan, &plan->datasets[index], needed_of(plan, index), &data->sources, set, fault))
    return true;
  if (index == data->trained || !set->empty) return false;
  fault->text[0] = '\0';
  return true;
}

static bool open_sets(nxr_data *data, nxr_reads reads, nxr_fault *fault) {
  const nx_plan *plan = data->plan;
  const nx_dataset *trained = nx_plan_train_set(plan);
  if (trained == NULL && reads == NXR_READS_ALL)
    return nxr_fault_set(fault, "the plan names no dataset to train on: set data.path");
  data->trained = trained ? (uint32_t)(trained - plan->datasets) : NX_NONE;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++)
    if (is_read(plan, i, reads) && !open_set(data, i, fault)) return false;
  return true;
}

static bool add_fingerprints(nxr_data *data, nxr_fault *fault) {
  uint32_t n = 0;
  nxr_fingerprint *each = calloc(data->plan->n[NX_SECTION_DATASETS], sizeof *each);
  if (each == NULL) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < data->plan->n[NX_SECTION_DATASETS]; i++)
    if (data->sets[i].samplers) each[n++] = data->sets[i].fingerprint;
  data->everything = nxr_fingerprint_together(each, n);
  free(each);
  return true;
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

bool nxr_data_open(const nx_plan *plan, uint32_t rank, nxr_reads reads, nxr_data **out, nxr_fault *fault) {
  const nx_run *run = plan->run;
  *out = NULL;
  nxr_data *data = calloc(1, sizeof *data);
  if (data == NULL) return nxr_fault_set(fault, "out of memory");
  *data = (nxr_data){.plan = plan, .n_part = run->sequence / run->ring_size, .counted.set = NX_NONE};
  data->data_rank = (uint32_t)nx_constant_value(plan, run->data_rank, rank, 0);
  data->ring_rank = (uint32_t)nx_constant_value(plan, run->ring_rank, rank, 0);
  data->n_own = data->n_part / run->ulysses_size;
  data->first_own = (uint32_t)nx_constant_value(plan, run->ulysses_rank, rank, 0) * data->n_own;
  if (!allocate(data, fault) || !open_sets(data, reads, fault) || !add_fingerprints(data, fault)) {
    nxr_data_close(data);
    return false;
  }
  make_places(data);
  *out = data;
  return true;
}

void nxr_data_close(nxr_data *data) {
  if (data == NULL) return;
  for (uint32_t i = 0; data->sets && i < data->plan->n[NX_SECTION_DATASETS]; i++)
    nxr_set_close(&data->sets[i]);
  nxr_data_sources_close(&data->sources);
  free(data->sets);
  free(data->limits);
  free(data->references);
  free(data->row.tokens);
  free(data->row.starts);
  free(data->row.weights);
  free(data->row.labels);
  free(data->places);
  free(data);
}

const nxr_fingerprint *nxr_data_fingerprint(const nxr_data *data) {
  return &data->sets[data->trained].fingerprint;
}

const nxr_fingerprint *nxr_data_everything(const nxr_data *data) {
  return &data->everything;
}

uint32_t nxr_data_trained(const nxr_data *data) {
  return data->trained;
}

void nxr_data_limit(nxr_data *data, uint32_t set, uint64_t n_rows) {
  data->limits[set] = n_rows;
}

uint64_t nxr_data_documents(const nxr_data *data, uint32_t set) {
  uint64_t n = 0;
  const nxr_set *is = &data->sets[set];
  for (uint32_t i = 0; is->samplers && i < is->record->n_sources; i++)
    n += is->samplers[i].source->n_documents;
  return n;
}

void nxr_data_in_order(nxr_data *data, uint32_t set, bool in_order) {
  data->sets[set].in_order = in_order;
  data->limits[set] = in_order ? nxr_data_documents(data, set) : UINT64_MAX;
}

void nxr_data_refer(nxr_data *data, uint32_t set, const double *reference) {
  data->references[set] = reference;
}

uint64_t nxr_data_samples(const nxr_data *data, uint32_t set) {
  return data->sets[set].n_rows;
}

uint64_t nxr_data_pass(const nxr_data *data, uint32_t index, uint32_t batch) {
  const nxr_set *set = &data->sets[index];
  bool again = set->record != NULL && set->record->blend == NX_BLEND_EPOCHS && set->again > 0;
  return again ? set->again : set->n_rows / batch * batch;
}

double nxr_data_bytes_per_token(const nxr_data *data, uint32_t index) {
  const nx_plan *plan = data->plan;
  const nxr_set *set = &data->sets[index];
  const nx_dataset *record = &plan->datasets[index];
  bool all = record->sampler == NX_SAMPLER_STREAM && !(plan->run->documents & NX_DOCUMENTS_LOSS);
  double n_bytes = 0, n_tokens = 0;
  for (uint32_t i = 0; all && set->samplers && i < record->n_sources; i++) {
    const nx_source *source = &plan->sources[record->first_source + i];
    double per_token = nxr_dataset_bytes_per_token(nx_plan_string(plan, source->prefix));
    double share =
        record->blend == NX_BLEND_WEIGHTS ? source->weight : (double)set->samplers[i].source->n_tokens;
    if (per_token == 0) return 0;
    n_bytes += share * per_token, n_tokens += share;
  }
  return n_tokens > 0 ? n_bytes / n_tokens : 0;
}

const int32_t *nxr_data_places(const nxr_data *data) {
  return data->places;
}

/* How many tokens behind the labels are told of. */
static int64_t n_later(const nx_plan *plan) {
  return plan->run->later_labels == NX_NONE ? 0 : plan->values[plan->run->later_labels].dims[0];
}

/* The tokens behind the labels of sequence i; their weights are not yet scaled where the tokens have any. */
static void give_later(const nxr_data *data, uint32_t i, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  const int32_t *own = data->places + data->first_own;
  int64_t n = n_later(data->plan), sequence = run->sequence;
  for (int64_t depth = 1; depth <= n; depth++) {
    double weight = run->later_factor / (double)n * (double)sequence / (double)(sequence - depth);
    size_t first = ((size_t)(depth - 1) * run->micro_batch + i) * data->n_own;
    for (uint32_t at = 0; at < data->n_own; at++) {
      int64_t place = own[at] + depth;
      bool inside = place < sequence;
      float of_token = inside && batch->weights ? data->row.weights[place] : 1;
      batch->later_labels[first + at] = inside ? data->row.tokens[place + 1] : 0;
      batch->later_weights[first + at] = inside ? (float)weight * of_token : 0;
    }
  }
}

/* Sequence i of the micro-batch from the sample at hand; its weights are not yet scaled. */
static void give_sequence(const nxr_data *data, uint32_t i, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  const nxr_row *row = &data->row;
  bool restart = run->documents & NX_DOCUMENTS_POSITIONS, separate = run->documents & NX_DOCUMENTS_ATTENTION;
  const int32_t *own = data->places + data->first_own;
  size_t first = (size_t)i * data->n_own;
  for (uint32_t at = 0; at < data->n_own; at++) {
    int32_t place = own[at];
    batch->tokens[first + at] = row->tokens[place];
    batch->labels[first + at] = row->tokens[place + 1];
    batch->positions[first + at] = place - (restart ? row->starts[place] : 0);
    if (batch->weights) batch->weights[first + at] = row->weights[place];
  }
  if (batch->later_labels) give_later(data, i, batch);
  for (uint32_t at = 0; batch->starts && at < data->n_part; at++)
    batch->starts[(size_t)i * data->n_part + at] = separate ? row->starts[data->places[at]] : 0;
}

static double reference_of(const nxr_data *data, uint32_t set, uint64_t row) {
  const double *reference = data->references[set];
  return reference && row < data->limits[set] ? reference[nxr_set_document(&data->sets[set], row)] : 0;
}

static void give_reward(nxr_data *data, uint32_t set, uint64_t row, double reward[2]) {
  reward[0] = reward[1] = 0;
  if (row < data->limits[set]) nxr_set_reward(&data->sets[set], row, reward);
}

static double weight_of(const nx_run *run, const nxr_row *row) {
  double sum = 0;
  for (uint32_t at = 0; at < run->sequence; at++) sum += row->weights[at];
  return sum;
}

/* Sequence i is absent: words that the model has, and weigh nothing. */
static void give_nothing(const nxr_data *data, const nxr_row *row) {
  uint32_t sequence = data->plan->run->sequence;
  memset(row->tokens, 0, ((size_t)sequence + 1) * sizeof *row->tokens);
  memset(row->starts, 0, sequence * sizeof *row->starts);
  memset(row->weights, 0, sequence * sizeof *row->weights);
}

/* The losses of a micro-batch, or of a step, weigh as much together as if each token of its `n` sequences
 * weighed 1. Of answers the sums are compared, each as it is. */
static void scale_weights(const nxr_data *data, uint32_t n_sequences, double weight, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  double all = (double)n_sequences * run->sequence;
  if (run->objective != NX_OBJECTIVE_TOKENS) return;
  float factor = weight > 0 ? (float)(all / weight) : 0.0F;
  size_t n = batch->weights ? (size_t)run->micro_batch * data->n_own : 0;
  for (size_t i = 0; i < n; i++) batch->weights[i] *= factor;
  for (size_t i = 0; i < n * (size_t)n_later(data->plan); i++) batch->later_weights[i] *= factor;
}

/* The sequences of a set's step: the training's batch may grow, but while its documents are asked for in
 * order. */
static uint64_t first_of(const nxr_data *data, uint32_t set, uint64_t step, uint32_t *n) {
  const nx_plan *plan = data->plan;
  bool trains = plan->datasets[set].role == NX_DATASET_TRAIN && !data->sets[set].in_order;
  *n = trains ? nx_plan_phase(plan, step).global_batch : nx_plan_evaluated_batch(plan);
  return trains ? nx_plan_samples_before(plan, step) : step * *n;
}

/* The row that is read for a sequence of a step. */
static uint64_t row_of(nxr_data *data, uint32_t set, const nxr_stride *step, uint64_t sequence) {
  const nx_run *run = data->plan->run;
  bool trains = data->plan->datasets[set].role == NX_DATASET_TRAIN && !data->sets[set].in_order;
  uint64_t n_repeated = (uint64_t)run->repeat_batches * run->global_batch;
  nxr_stride read = *step;
  if (trains && n_repeated) sequence %= n_repeated, read.first %= n_repeated;
  return nxr_set_walk(&data->sets[set], &read, sequence);
}

/* Of all ranks' sequences of a step, added in one order by each rank. */
static bool count_step(nxr_data *data, uint32_t set, uint64_t step, nxr_fault *fault) {
  uint32_t n;
  uint64_t first = first_of(data, set, step, &n);
  if (data->counted.set == set && data->counted.step == step) return true;
  const nxr_stride is = {first, n};
  data->counted.set = NX_NONE;
  double before = data->counted.weight = 0; /* the micro-batch */
  data->counted.n_sequences = data->counted.n_voters = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (first + i >= data->limits[set]) break;
    if (!nxr_set_read(&data->sets[set], row_of(data, set, &is, first + i), &data->row, fault)) return false;
    data->counted.weight += weight_of(data->plan->run, &data->row);
    data->counted.n_sequences++;
    if ((i + 1) % data->plan->run->micro_batch) continue;
    data->counted.n_voters += data->counted.weight > before;
    before = data->counted.weight;
  }
  data->counted.set = set, data->counted.step = step;
  return true;
}

bool nxr_data_voters(nxr_data *data, uint32_t set, uint64_t step, double *share, nxr_fault *fault) {
  uint32_t n;
  first_of(data, set, step, &n);
  if (!count_step(data, set, step, fault)) return false;
  *share = data->counted.n_voters ? (double)data->counted.n_voters * data->plan->run->micro_batch / n : 1;
  return true;
}

bool nxr_data_read(nxr_data *data, uint32_t set, uint64_t step, uint32_t micro_batch, const nxr_batch *batch,
                   nxr_fault *fault) {
  const nx_run *run = data->plan->run;
  uint32_t n;
  uint64_t first = first_of(data, set, step, &n);
  const nxr_stride is = {first, n};
  first += (uint64_t)data->data_rank * (n / run->data_size) + (uint64_t)micro_batch * run->micro_batch;
  double weight = 0;
  uint32_t n_present = 0;
  bool of_step = run->loss_mean == NX_MEAN_STEP;
  if (of_step && !count_step(data, set, step, fault)) return false;
  for (uint32_t i = 0; i < run->micro_batch; i++) {
    uint64_t number = row_of(data, set, &is, first + i);
    bool present = first + i < data->limits[set];
    n_present += present;
    if (!present) give_nothing(data, &data->row);
    else if (!nxr_set_read(&data->sets[set], number, &data->row, fault)) return false;
    weight += weight_of(run, &data->row);
    give_sequence(data, i, batch);
    batch->samples[i] = (int64_t)(first + i);
    if (batch->reference) batch->reference[i] = reference_of(data, set, number);
    if (batch->rewards) give_reward(data, set, number, &batch->rewards[(size_t)2 * i]);
  }
  if (of_step) scale_weights(data, data->counted.n_sequences, data->counted.weight, batch);
  else scale_weights(data, n_present, weight, batch);
  return true;
}

void nxr_data_give(nxr_data *data, const int32_t *tokens, uint32_t n, const nxr_batch *batch) {
  const nx_run *run = data->plan->run;
  give_nothing(data, &data->row);
  memcpy(data->row.tokens, tokens, n * sizeof *tokens);
  nxr_find_documents(run, data->row.tokens, data->row.starts);
  for (uint32_t i = 0; i < run->micro_batch; i++) {
    give_sequence(data, i, batch);
    batch->samples[i] = 0;
  }
}

uint32_t nxr_data_place(const nxr_data *data, uint32_t place) {
  for (uint32_t i = 0; data->data_rank == 0 && i < data->n_own; i++)
    if (data->places[data->first_own + i] == (int32_t)place) return i;
  return NX_NONE;
}
