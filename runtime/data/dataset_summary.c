/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset.h"

enum { CHUNK_TOKENS = 1 << 14 };

/* Widens the range of token ids by a document's; false where one of them is no token. */
static bool read_document(const nxr_dataset *dataset, uint64_t document, uint64_t n_tokens,
                          nxr_dataset_summary *summary, nxr_fault *fault) {
  int32_t tokens[CHUNK_TOKENS];
  for (uint64_t first = 0; first < n_tokens; first += CHUNK_TOKENS) {
    uint64_t n = n_tokens - first < CHUNK_TOKENS ? n_tokens - first : CHUNK_TOKENS;
    nxr_dataset_read(dataset, document, first, n, tokens);
    for (uint64_t i = 0; i < n; i++) {
      if (tokens[i] < 0)
        return nxr_fault_set(fault, "%s.bin is damaged: token %llu of document %llu is below 0, or above %d",
                             dataset->prefix, (unsigned long long)(first + i), (unsigned long long)document,
                             INT32_MAX);
      if (tokens[i] < summary->least_token) summary->least_token = tokens[i];
      if (tokens[i] > summary->greatest_token) summary->greatest_token = tokens[i];
    }
  }
  return true;
}

bool nxr_dataset_summarize(const nxr_dataset *dataset, nxr_dataset_summary *summary, nxr_fault *fault) {
  *summary = (nxr_dataset_summary){.least_token = INT64_MAX, .shortest = UINT64_MAX};
  for (uint64_t document = 0; document < dataset->n_documents; document++) {
    uint64_t n_tokens = nxr_dataset_document_tokens(dataset, document);
    if (n_tokens == 0) summary->n_empty++;
    if (n_tokens < summary->shortest) summary->shortest = n_tokens;
    if (n_tokens > summary->longest) summary->longest = n_tokens;
    if (!read_document(dataset, document, n_tokens, summary, fault)) return false;
  }
  if (dataset->n_tokens == 0) summary->least_token = 0;
  if (dataset->n_documents == 0) summary->shortest = 0;
  uint64_t used_bytes = dataset->n_tokens * dataset->token_bytes;
  if (dataset->data.n_bytes > used_bytes) summary->unused_bytes = dataset->data.n_bytes - used_bytes;
  return true;
}
