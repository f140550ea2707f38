/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of two rows: the answer that was chosen, with its prompt, and the one that was rejected. Documents
 * 2 i and 2 i + 1 of the source are a pair, and stay together in every order. */
#include "runtime/data/sampler.h"

enum { N_ROWS = 2 };

static void pairs_read(nxr_sampler *sampler, uint64_t number, const nxr_row *row) {
  nxr_sampler_read_document(sampler, nxr_sampler_row_document(sampler, number), row);
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
  return nxr_sampler_keep(sampler, &n_read, fault) && nxr_sampler_open_orders(sampler, n_read, fault);
}

const nxr_sampler_kind nxr_sampler_pairs = {pairs_open, pairs_read, N_ROWS};
