/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of two rows: the answer that was chosen, with its prompt, and the one that was rejected. Documents
 * 2 i and 2 i + 1 of the source are a pair, and stay together in every order. */
#include "runtime/data/sampler.h"

#include <stdlib.h>

enum { N_ROWS = 2, SOME = 256 };

uint64_t nxr_sampler_pair_document(nxr_sampler *sampler, uint64_t number) {
  return N_ROWS * sampler->pairs[nxr_sampler_ordered(sampler, number / N_ROWS)] + number % N_ROWS;
}

static void pairs_read(nxr_sampler *sampler, uint64_t number, const nxr_row *row) {
  nxr_sampler_read_document(sampler, nxr_sampler_pair_document(sampler, number), row);
}

/* Whether a token counts that a row has room for; the first of a document is not predicted. */
static bool counts(const nxr_data_source *source, uint64_t document, uint64_t most) {
  float weights[SOME];
  uint64_t n_tokens = nxr_data_source_document_tokens(source, document);
  if (n_tokens > most) n_tokens = most;
  for (uint64_t first = 1; first < n_tokens; first += SOME) {
    uint64_t n = n_tokens - first < SOME ? n_tokens - first : SOME;
    nxr_data_source_weights(source, document, first, n, weights);
    for (uint64_t i = 0; i < n; i++)
      if (weights[i] > 0) return true;
  }
  return false;
}

static bool say_long(const nxr_data_source *source, uint64_t document, uint64_t most, nxr_fault *fault) {
  return nxr_fault_set(
      fault,
      "document %llu of dataset %s has %llu tokens, and a row has room for %llu: prepare it with "
      "data.document_tokens, or say by data.long_pairs what becomes of such pairs",
      (unsigned long long)document, source->name,
      (unsigned long long)nxr_data_source_document_tokens(source, document), (unsigned long long)most);
}

/* Whether a pair is read. */
static bool judge(const nxr_sampler *sampler, uint64_t pair, bool *is_read, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  uint64_t most = (uint64_t)sampler->run->sequence + 1;
  *is_read = true;
  for (uint64_t document = N_ROWS * pair; document < N_ROWS * (pair + 1); document++) {
    bool is_long = nxr_data_source_document_tokens(source, document) > most;
    if (is_long && sampler->long_pairs == NX_LONG_PAIRS_FAIL) return say_long(source, document, most, fault);
    if ((is_long && sampler->long_pairs == NX_LONG_PAIRS_DROP) || !counts(source, document, most))
      *is_read = false;
  }
  return true;
}

static bool find_pairs(nxr_sampler *sampler, uint64_t *n_read, nxr_fault *fault) {
  uint64_t n = sampler->source->n_documents / N_ROWS;
  bool is_read;
  sampler->pairs = calloc(n + 1, sizeof *sampler->pairs);
  if (sampler->pairs == NULL) return nxr_fault_set(fault, "out of memory for pairs");
  *n_read = 0;
  for (uint64_t pair = 0; pair < n; pair++) {
    if (!judge(sampler, pair, &is_read, fault)) return false;
    if (is_read) sampler->pairs[(*n_read)++] = pair;
  }
  return *n_read > 0 || nxr_fault_set(fault, "dataset %s has no pair to read, of %llu", sampler->source->name,
                                      (unsigned long long)n);
}

/* Prompts do not count, so a dataset of pairs has weights. */
static bool pairs_open(nxr_sampler *sampler, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  uint64_t n_read = 0;
  if (!nxr_data_source_has_weights(source))
    return nxr_fault_set(
        fault,
        "dataset %s does not say which of its tokens are answers, so it is none of pairs: nxdata "
        "prepare makes one (data.kind: pairs), or nxdata build --chosen",
        source->name);
  if (source->n_documents % N_ROWS != 0)
    return nxr_fault_set(fault, "dataset %s has %llu documents, and pairs have two each", source->name,
                         (unsigned long long)source->n_documents);
  return find_pairs(sampler, &n_read, fault) && nxr_sampler_open_orders(sampler, n_read, fault);
}

const nxr_sampler_kind nxr_sampler_pairs = {pairs_open, pairs_read, N_ROWS};
