/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are read of those that have whole documents, as many as they have rows: documents n_rows i
 * and those behind it are sample i of the source. */
#include "runtime/data/sampler.h"

#include <stdlib.h>

enum { SOME = 256 };

/* How many tokens count that a row has room for, up to 2; the first of a document is not predicted. */
static uint32_t count(const nxr_data_source *source, uint64_t document, uint64_t most) {
  float weights[SOME];
  uint32_t n_found = 0;
  uint64_t n_tokens = nxr_data_source_document_tokens(source, document);
  if (n_tokens > most) n_tokens = most;
  for (uint64_t first = 1; first < n_tokens; first += SOME) {
    uint64_t n = n_tokens - first < SOME ? n_tokens - first : SOME;
    nxr_data_source_weights(source, document, first, n, weights);
    for (uint64_t i = 0; i < n; i++)
      if (weights[i] > 0 && ++n_found > 1) return n_found;
  }
  return n_found;
}

static bool say_many(const nxr_data_source *source, uint64_t document, nxr_fault *fault) {
  return nxr_fault_set(
      fault,
      "document %llu of dataset %s has several tokens that count, and of an answer one says where "
      "its value is read: make its labels with nxdata prepare, or GPT-NeoX's --for-rm",
      (unsigned long long)document, source->name);
}

static bool say_long(const nxr_data_source *source, uint64_t document, uint64_t most, nxr_fault *fault) {
  return nxr_fault_set(
      fault,
      "document %llu of dataset %s has %llu tokens, and a row has room for %llu: prepare it with "
      "data.document_tokens, or say by data.long_samples what becomes of such documents",
      (unsigned long long)document, source->name,
      (unsigned long long)nxr_data_source_document_tokens(source, document), (unsigned long long)most);
}

static bool judge(const nxr_sampler *sampler, uint64_t sample, bool *is_read, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  uint64_t most = (uint64_t)sampler->run->sequence + 1, n_rows = sampler->kind->n_rows;
  nx_long_samples rule = sampler->long_samples;
  bool values = nx_objective_find(sampler->run->objective)->has_values;
  *is_read = true;
  for (uint64_t document = n_rows * sample; document < n_rows * (sample + 1); document++) {
    bool is_long = nxr_data_source_document_tokens(source, document) > most;
    if (is_long && rule == NX_LONG_SAMPLES_FAIL) return say_long(source, document, most, fault);
    uint32_t n_counting = count(source, document, most);
    if ((is_long && rule == NX_LONG_SAMPLES_DROP) || n_counting == 0) *is_read = false;
    else if (values && n_counting > 1) return say_many(source, document, fault);
  }
  return true;
}

bool nxr_sampler_keep(nxr_sampler *sampler, uint64_t *n_read, nxr_fault *fault) {
  uint64_t n = sampler->source->n_documents / sampler->kind->n_rows;
  bool is_read;
  sampler->kept = calloc(n + 1, sizeof *sampler->kept);
  if (sampler->kept == NULL) return nxr_fault_set(fault, "out of memory for samples");
  *n_read = 0;
  for (uint64_t sample = 0; sample < n; sample++) {
    if (!judge(sampler, sample, &is_read, fault)) return false;
    if (is_read) sampler->kept[(*n_read)++] = sample;
  }
  return *n_read > 0 || nxr_fault_set(fault, "dataset %s has no sample to read, of %llu",
                                      sampler->source->name, (unsigned long long)n);
}
