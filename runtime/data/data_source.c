/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/data_source.h"

#include "runtime/data/dataset_split.h"
#include "schema/philox.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- indexed datasets ---- */

static uint64_t indexed_tokens(const nxr_data_source *source, uint64_t document) {
  return nxr_dataset_document_tokens(source->dataset, document);
}

static void indexed_read(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                         int32_t *tokens) {
  nxr_dataset_read(source->dataset, document, first, n, tokens);
}

static void indexed_weights(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                            float *weights) {
  nxr_dataset_weights(source->dataset, document, first, n, weights);
}

static const nxr_data_source_kind indexed = {indexed_tokens, indexed_read, indexed_weights};

/* ---- what is made up ---- */

enum { N_MADE_UP = 10000, LONGEST_MADE_UP = 4096, LENGTHS = 0x4c656e67, TOKENS = 0x546f6b73 };

static uint64_t made_up_tokens(const nxr_data_source *source, uint64_t document) {
  nx_philox words = nx_philox_draw(source->run->seed, LENGTHS, (uint32_t)document, 0, 0, 0);
  return 1 + words.word[0] % LONGEST_MADE_UP;
}

/* Four tokens of a draw; the last of a document is its end, where the plan knows one. */
static void made_up_read(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                         int32_t *tokens) {
  const nx_run *run = source->run;
  uint64_t last = made_up_tokens(source, document) - 1;
  nx_philox words = {{0}};
  for (uint64_t i = 0; i < n; i++) {
    uint64_t at = first + i;
    if (i == 0 || at % 4 == 0)
      words = nx_philox_draw(run->seed, TOKENS, (uint32_t)(at / 4), (uint32_t)document, 0, 0);
    bool ends = at == last && run->end_of_document < run->vocab;
    tokens[i] = (int32_t)(ends ? run->end_of_document : words.word[at % 4] % run->vocab);
  }
}

static void made_up_weights(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                            float *weights) {
  bool values = nx_objective_find(source->run->objective)->has_values; /* one token says where */
  (void)document;
  for (uint64_t i = 0; i < n; i++) weights[i] = values && first + i != 1 ? 0 : 1;
}

static const nxr_data_source_kind made_up = {made_up_tokens, made_up_read, made_up_weights};

/* ---- all ---- */

bool nxr_data_sources_make(const nx_plan *plan, nxr_data_sources *sources, nxr_fault *fault) {
  size_t n = (size_t)plan->n[NX_SECTION_SOURCES] + 1;
  *sources = (nxr_data_sources){.plan = plan,
                                .sources = calloc(n, sizeof *sources->sources),
                                .datasets = calloc(NXR_SOURCE_DATASETS * n, sizeof *sources->datasets)};
  return (sources->sources && sources->datasets) || nxr_fault_set(fault, "out of memory");
}

void nxr_data_sources_close(nxr_data_sources *sources) {
  uint32_t n = sources->plan ? NXR_SOURCE_DATASETS * sources->plan->n[NX_SECTION_SOURCES] : 0;
  for (uint32_t i = 0; sources->datasets && i < n; i++)
    if (sources->datasets[i].prefix) nxr_dataset_close(&sources->datasets[i]);
  free(sources->datasets);
  free(sources->sources);
  *sources = (nxr_data_sources){0};
}

/* What nxdata makes must have been made. */
static bool check_prepared(const nx_plan *plan, const nx_source *source, nxr_fault *fault) {
  char path[4096];
  const char *prefix = nx_plan_string(plan, source->prefix);
  if (nx_source_recipe(plan, source) == NULL) return true;
  if (snprintf(path, sizeof path, "%s.idx", prefix) >= (int)sizeof path || access(path, F_OK) == 0)
    return true;
  return nxr_fault_set(fault, "%s is not there: nxdata prepare, with this plan and in this folder, makes it",
                       path);
}

static bool check_weights(const nx_plan *plan, const nxr_dataset *dataset, nxr_fault *fault) {
  return dataset->weights.n_bytes == 0 || plan->run->weights != NX_NONE ||
         nxr_fault_set(
             fault,
             "dataset %s has weights of its tokens, which the plan does not read: compile it with "
             "data.labels, or remove %s.weights; of pairs of answers the plan says alignment.strategy",
             dataset->prefix, dataset->prefix);
}

/* The files of a prefix (a string of the plan), opened now or before; NULL: they cannot be. */
static nxr_dataset *open_files(nxr_data_sources *sources, uint32_t prefix, nxr_fault *fault) {
  const nx_plan *plan = sources->plan;
  const char *name = nx_plan_string(plan, prefix);
  nxr_dataset *dataset = sources->datasets;
  while (dataset->prefix && dataset->prefix != name) dataset++;
  if (dataset->prefix) return dataset;
  if (nxr_dataset_open(name, dataset, fault)) {
    if (check_weights(plan, dataset, fault)) return dataset;
    nxr_dataset_close(dataset);
  }
  *dataset = (nxr_dataset){0};
  return NULL;
}

static bool open_all_files(nxr_data_sources *sources, const nx_source *record, nxr_data_source *source,
                           nxr_fault *fault) {
  if (!check_prepared(sources->plan, record, fault)) return false;
  const struct {
    uint32_t prefix;
    nxr_dataset **dataset;
  } files[NXR_SOURCE_DATASETS] = {{record->prefix, &source->dataset},
                                  {record->rejected, &source->rejected},
                                  {record->labels, &source->labels},
                                  {record->rejected_labels, &source->rejected_labels},
                                  {record->rewards, &source->rewards}};
  for (int i = 0; i < NXR_SOURCE_DATASETS; i++)
    if (files[i].prefix != 0 && (*files[i].dataset = open_files(sources, files[i].prefix, fault)) == NULL)
      return false;
  source->all_documents = source->dataset->n_documents * (source->rejected ? 2 : 1);
  if (source->rejected || source->labels) source->kind = &nxr_source_labelled;
  return nxr_source_check_beside(source, fault) && nxr_source_check_rewards(source, fault);
}

/* Its part of all documents; those of a sample stay together. */
static void choose_part(const nx_plan *plan, const nx_source *record, nxr_data_source *source) {
  uint64_t rows = nx_plan_sample_rows(plan), end;
  nxr_split_part(record, source->all_documents / rows, &source->first_document, &end);
  source->n_documents = rows * (end - source->first_document);
  source->first_document *= rows;
  for (uint64_t i = 0; i < source->n_documents; i++)
    source->n_tokens += nxr_data_source_document_tokens(source, i);
}

nxr_data_source *nxr_data_source_open(nxr_data_sources *sources, uint32_t number, nxr_fault *fault) {
  const nx_plan *plan = sources->plan;
  const nx_source *record = &plan->sources[number];
  nxr_data_source *source = &sources->sources[number];
  bool has_files = record->prefix != 0;
  *source = (nxr_data_source){.kind = has_files ? &indexed : &made_up,
                              .run = plan->run,
                              .number = number,
                              .name = has_files ? nx_plan_string(plan, record->prefix) : "of made-up tokens",
                              .all_documents = N_MADE_UP};
  if (has_files && !open_all_files(sources, record, source, fault)) return NULL;
  choose_part(plan, record, source);
  return source;
}

uint64_t nxr_data_source_document_tokens(const nxr_data_source *source, uint64_t document) {
  return source->kind->document_tokens(source, source->first_document + document);
}

void nxr_data_source_read(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                          int32_t *tokens) {
  source->kind->read(source, source->first_document + document, first, n, tokens);
}

void nxr_data_source_weights(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                             float *weights) {
  source->kind->weights(source, source->first_document + document, first, n, weights);
}

bool nxr_data_source_has_weights(const nxr_data_source *source) {
  return source->dataset == NULL || source->labels || source->dataset->weights.n_bytes > 0;
}

nxr_fingerprint nxr_data_source_fingerprint(const nxr_data_source *source) {
  if (source->dataset == NULL)
    return (nxr_fingerprint){.n_documents = source->n_documents, .n_tokens = source->n_tokens};
  const nxr_dataset *beside[] = {source->rejected, source->labels, source->rejected_labels, source->rewards};
  nxr_fingerprint each[NXR_SOURCE_DATASETS] = {
      nxr_fingerprint_of(source->dataset, source->n_documents, source->n_tokens)};
  uint32_t n = 1;
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
    if (beside[i]) each[n++] = nxr_fingerprint_of(beside[i], 0, 0);
  return nxr_fingerprint_together(each, n);
}
