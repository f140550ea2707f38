/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/data_set.h"

#include <math.h>
#include <stdlib.h>

static const float MOST_WEIGHT = 1e6F;

static bool open_sources(nxr_set *set, nxr_data_sources *sources, nxr_fault *fault) {
  const nx_dataset *record = set->record;
  for (uint32_t i = 0; i < record->n_sources; i++) {
    set->samplers[i] = (nxr_sampler){.run = set->plan->run,
                                     .source = nxr_data_source_open(sources, record->first_source + i, fault),
                                     .shuffle = record->shuffle,
                                     .long_samples = record->long_samples,
                                     .packing = {.kind = record->packing, .group = record->packing_group},
                                     .order = record->order};
    if (set->samplers[i].source == NULL) return false;
  }
  return true;
}

/* What the blend goes by, 1 together; `sizes` has room for a number of each source. By samples only when the
 * samplers are open. */
static void weigh(const nxr_set *set, uint64_t *sizes, double *weights) {
  const nx_dataset *record = set->record;
  bool by_documents = record->blend == NX_BLEND_DOCUMENTS;
  for (uint32_t i = 0; i < record->n_sources; i++) {
    const nxr_sampler *sampler = &set->samplers[i];
    weights[i] = set->plan->sources[record->first_source + i].weight;
    sizes[i] = by_documents ? sampler->source->n_documents : sampler->n_samples;
  }
  if (record->blend == NX_BLEND_EPOCHS)
    for (uint32_t i = 0; i < record->n_sources; i++) weights[i] = 1.0 / record->n_sources;
  if (by_documents) nxr_weigh_by_documents(sizes, record->n_sources, record->blend_alpha, weights);
  else if (record->blend == NX_BLEND_SAMPLES) nxr_weigh_by_size(sizes, record->n_sources, weights);
}

/* Of a source with this weight: with the systems' surplus, which is more than the blend ever asks for; they
 * ask it of a single source too where that has a weight. What gives as much as it has is asked for one
 * epoch. */
static uint64_t needed_of(const nxr_set *set, double weight, uint64_t n_needed) {
  const nx_dataset *record = set->record;
  if (record->blend == NX_BLEND_SAMPLES && record->n_sources == 1) return n_needed;
  if (record->blend == NX_BLEND_SAMPLES || record->blend == NX_BLEND_EPOCHS || n_needed >= UINT64_C(1) << 53)
    return UINT64_MAX;
  double wanted = weight * (double)n_needed;
  return (uint64_t)ceil((record->order == NX_ORDER_NEOX ? wanted : ceil(wanted)) * 1.005);
}

static bool open_samplers(nxr_set *set, const double *weights, uint64_t n_needed, nxr_fault *fault) {
  for (uint32_t i = 0; i < set->record->n_sources; i++) {
    set->samplers[i].n_needed = needed_of(set, weights[i], n_needed);
    set->empty = !nxr_sampler_open(&set->samplers[i], set->record->sampler, fault);
    if (set->empty) return false;
    set->n_rows += set->samplers[i].n_samples * set->samplers[i].kind->n_rows;
  }
  return true;
}

/* A blend has as many samples as its sources say, together, and takes those behind modulo that. Of an epoch
 * that is read again and again the loader takes the micro-batches that all ranks have whole. */
static uint64_t samples_until_again(const nxr_set *set) {
  const nx_dataset *record = set->record;
  bool blended = record->n_sources > 1 || record->blend != NX_BLEND_SAMPLES;
  uint64_t n = 0;
  for (uint32_t i = 0; blended && i < record->n_sources; i++) {
    uint64_t n_here = nxr_orders_said(&set->samplers[i].orders);
    if (n_here == UINT64_MAX) return 0;
    n += n_here;
  }
  uint64_t at_once = (uint64_t)set->plan->run->data_size * set->plan->run->micro_batch;
  return record->blend == NX_BLEND_EPOCHS && at_once > 0 && n >= at_once ? n / at_once * at_once : n;
}

static bool open_blend(nxr_set *set, uint64_t n_rows, nxr_fault *fault) {
  uint32_t n = set->record->n_sources, of_sample = nx_plan_sample_rows(set->plan);
  uint64_t n_needed = n_rows == UINT64_MAX ? n_rows : (n_rows + of_sample - 1) / of_sample;
  double *weights = calloc(n, sizeof *weights);
  uint64_t *sizes = calloc(n, sizeof *sizes);
  bool good = weights && sizes;
  if (!good) nxr_fault_set(fault, "out of memory");
  else weigh(set, sizes, weights);
  good = good && open_samplers(set, weights, n_needed, fault);
  if (good) weigh(set, sizes, weights);
  if (good && set->record->blend != NX_BLEND_SAMPLES) nxr_weigh_again(weights, n);
  good = good && nxr_blend_open(weights, n, &set->blend, fault);
  if (good) set->again = samples_until_again(set);
  free(weights);
  free(sizes);
  return good;
}

/* Samples of the dataset as its system counts them: where all epochs are one order, those of that; of a blend
 * by weights, what each weight takes of those that are asked for, rounded up. */
static uint64_t count_samples(const nxr_set *set, uint64_t n_needed) {
  const nx_dataset *record = set->record;
  uint64_t n = 0, n_blended = 0;
  for (uint32_t i = 0; i < record->n_sources; i++) {
    const nxr_orders *orders = &set->samplers[i].orders;
    n += orders->together ? orders->n_samples : set->samplers[i].n_samples;
    n_blended += n_needed >= UINT64_C(1) << 53 ? 0 : (uint64_t)ceil(set->blend.weights[i] * (double)n_needed);
  }
  if (n_needed >= UINT64_C(1) << 53 || (record->n_sources == 1 && record->blend == NX_BLEND_SAMPLES))
    return n;
  return record->blend == NX_BLEND_WEIGHTS ? n_blended : n_needed < n ? n_needed : n;
}

static bool open_walk(nxr_set *set, uint64_t n_needed, nxr_fault *fault) {
  const nx_run *run = set->plan->run;
  uint32_t of_sample = nx_plan_sample_rows(set->plan);
  bool trains = set->record->role == NX_DATASET_TRAIN;
  uint32_t batch = trains ? run->global_batch : nx_plan_evaluated_batch(set->plan);
  set->walk =
      (nxr_walk){.kind = set->record->walk,
                 .seed = run->seed,
                 .n_samples = count_samples(set, n_needed == UINT64_MAX ? n_needed : n_needed / of_sample),
                 .n_ranks = run->data_size,
                 .micro_batch = run->micro_batch / of_sample};
  return nxr_walk_open(&set->walk, nx_plan_string(set->plan, set->record->name), batch / of_sample, fault);
}

uint64_t nxr_set_walk(nxr_set *set, const nxr_stride *step, uint64_t number) {
  uint32_t n_rows = set->samplers[0].kind->n_rows;
  const nxr_stride samples = {step->first / n_rows, step->n / n_rows};
  if (set->in_order) return number;
  return nxr_walk_sample(&set->walk, &samples, number / n_rows) * n_rows + number % n_rows;
}

static bool add_fingerprints(nxr_set *set, nxr_fault *fault) {
  uint32_t n = set->record->n_sources;
  nxr_fingerprint *each = calloc(n, sizeof *each);
  if (each == NULL) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < n; i++) each[i] = nxr_data_source_fingerprint(set->samplers[i].source);
  set->fingerprint = nxr_fingerprint_together(each, n);
  free(each);
  return true;
}

bool nxr_set_open(const nx_plan *plan, const nx_dataset *record, uint64_t n_needed, nxr_data_sources *sources,
                  nxr_set *set, nxr_fault *fault) {
  *set =
      (nxr_set){.plan = plan, .record = record, .samplers = calloc(record->n_sources, sizeof *set->samplers)};
  if (set->samplers == NULL) return nxr_fault_set(fault, "out of memory");
  bool good = open_sources(set, sources, fault) && open_blend(set, n_needed, fault) &&
              open_walk(set, n_needed, fault) && add_fingerprints(set, fault);
  bool empty = set->empty;
  if (!good) nxr_set_close(set);
  set->empty = empty;
  return good;
}

void nxr_set_close(nxr_set *set) {
  for (uint32_t i = 0; set->samplers && i < set->record->n_sources; i++) nxr_sampler_close(&set->samplers[i]);
  free(set->samplers);
  nxr_walk_close(&set->walk);
  nxr_blend_close(&set->blend);
  *set = (nxr_set){0};
}

static bool token_fault(const nxr_sampler *sampler, uint64_t sample, int32_t token, nxr_fault *fault) {
  uint64_t vocab = sampler->run->vocab;
  return nxr_fault_set(fault,
                       "dataset %s has token %d in sample %llu, and the model's vocabulary has %llu "
                       "words: the dataset was made with another tokenizer, or model.vocab is wrong",
                       sampler->source->name, token, (unsigned long long)sample, (unsigned long long)vocab);
}

/* Which sampler gives a row, and the row's number there. */
static nxr_pick pick(nxr_set *set, uint64_t number) {
  uint32_t n_rows = set->samplers[0].kind->n_rows;
  uint64_t sample = number / n_rows;
  nxr_pick of = nxr_blend_pick(&set->blend, set->again ? sample % set->again : sample);
  of.sample = of.sample * n_rows + number % n_rows;
  return of;
}

/* Document k of all sources, one after another. */
static nxr_pick pick_document(const nxr_set *set, uint64_t document) {
  nxr_pick of = {.source = 0, .sample = document};
  while (of.source + 1 < set->record->n_sources && of.sample >= set->samplers[of.source].source->n_documents)
    of.sample -= set->samplers[of.source++].source->n_documents;
  return of;
}

/* The source of a row that is a document, as a pick of that. */
static nxr_pick pick_row(nxr_set *set, uint64_t number) {
  if (set->in_order) return pick_document(set, number);
  nxr_pick of = pick(set, number);
  of.sample = nxr_sampler_row_document(&set->samplers[of.source], of.sample);
  return of;
}

uint64_t nxr_set_document(nxr_set *set, uint64_t number) {
  nxr_pick of = pick_row(set, number);
  for (uint32_t i = 0; i < of.source; i++) of.sample += set->samplers[i].source->n_documents;
  return of.sample;
}

void nxr_set_reward(nxr_set *set, uint64_t number, double reward[2]) {
  nxr_pick of = pick_row(set, number);
  const nxr_data_source *source = set->samplers[of.source].source;
  uint64_t sequence = set->plan->run->sequence, n = nxr_data_source_document_tokens(source, of.sample);
  reward[0] = nxr_data_source_reward(source, of.sample);
  reward[1] = reward[0] * (double)(n < sequence ? n : sequence) / (double)sequence;
}

bool nxr_set_read(nxr_set *set, uint64_t number, const nxr_row *row, nxr_fault *fault) {
  const nx_run *run = set->plan->run;
  nxr_pick of = set->in_order ? pick_document(set, number) : pick(set, number);
  nxr_sampler *sampler = &set->samplers[of.source];
  if (set->in_order) nxr_sampler_read_document(sampler, of.sample, row);
  else sampler->kind->read(sampler, of.sample, row);
  for (uint32_t i = 0; i <= run->sequence; i++)
    if (row->tokens[i] < 0 || (uint64_t)row->tokens[i] >= run->vocab)
      return token_fault(sampler, of.sample, row->tokens[i], fault);
  for (uint32_t i = 0; i < run->sequence; i++)
    if (!(row->weights[i] >= 0 && row->weights[i] <= MOST_WEIGHT))
      return nxr_fault_set(fault, "dataset %s is damaged: sample %llu has a token that weighs %g",
                           sampler->source->name, (unsigned long long)of.sample, (double)row->weights[i]);
  return true;
}
