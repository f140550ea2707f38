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
  (void)source, (void)document, (void)first;
  for (uint64_t i = 0; i < n; i++) weights[i] = 1;
}

static const nxr_data_source_kind made_up = {made_up_tokens, made_up_read, made_up_weights};

/* ---- all ---- */

bool nxr_data_sources_make(const nx_plan *plan, nxr_data_sources *sources, nxr_fault *fault) {
  size_t n = (size_t)plan->n[NX_SECTION_SOURCES] + 1;
  *sources = (nxr_data_sources){.plan = plan,
                                .sources = calloc(n, sizeof *sources->sources),
                                .datasets = calloc(n, sizeof *sources->datasets)};
  return (sources->sources && sources->datasets) || nxr_fault_set(fault, "out of memory");
}

void nxr_data_sources_close(nxr_data_sources *sources) {
  uint32_t n = sources->plan ? sources->plan->n[NX_SECTION_SOURCES] : 0;
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

/* The files, opened now or for another source. */
static nxr_dataset *open_files(nxr_data_sources *sources, uint32_t number, nxr_fault *fault) {
  const nx_plan *plan = sources->plan;
  uint32_t prefix = plan->sources[number].prefix;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SOURCES]; i++)
    if (plan->sources[i].prefix == prefix && sources->datasets[i].prefix) return &sources->datasets[i];
  nxr_dataset *dataset = &sources->datasets[number];
  if (check_prepared(plan, &plan->sources[number], fault) &&
      nxr_dataset_open(nx_plan_string(plan, prefix), dataset, fault)) {
    if (dataset->weights.n_bytes == 0 || plan->run->weights != NX_NONE) return dataset;
    nxr_fault_set(fault,
                  "dataset %s has weights of its tokens, which the plan does not read: compile it with "
                  "data.labels, or remove %s.weights",
                  dataset->prefix, dataset->prefix);
    nxr_dataset_close(dataset);
  }
  *dataset = (nxr_dataset){0};
  return NULL;
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
  if (has_files && (source->dataset = open_files(sources, number, fault)) == NULL) return NULL;
  if (has_files) source->all_documents = source->dataset->n_documents;
  uint64_t end;
  nxr_split_part(record, source->all_documents, &source->first_document, &end);
  source->n_documents = end - source->first_document;
  for (uint64_t i = 0; i < source->n_documents; i++)
    source->n_tokens += nxr_data_source_document_tokens(source, i);
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

nxr_fingerprint nxr_data_source_fingerprint(const nxr_data_source *source) {
  if (source->dataset == NULL)
    return (nxr_fingerprint){.n_documents = source->n_documents, .n_tokens = source->n_tokens};
  return nxr_fingerprint_of(source->dataset, source->n_documents, source->n_tokens);
}
