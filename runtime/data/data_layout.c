/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/data_layout.h"

uint32_t nxr_ring_place(const nx_run *run, uint32_t ring_rank, uint32_t i) {
  if (run->ring_size == 1) return i;
  uint32_t piece = run->sequence / run->ring_size / 2;
  return i < piece ? ring_rank * piece + i : run->sequence - (ring_rank + 2) * piece + i;
}

static bool ends_document(const nx_run *run, int32_t token) {
  return run->documents != 0 && (uint32_t)token == run->end_of_document;
}

void nxr_find_documents(const nx_run *run, const int32_t *tokens, int32_t *starts) {
  int32_t start = 0;
  for (uint32_t at = 0; at < run->sequence; at++) {
    starts[at] = start;
    if (ends_document(run, tokens[at])) start = (int32_t)at + 1;
  }
}

void nxr_weigh_tokens(const nx_run *run, const int32_t *tokens, float *weights) {
  bool masks = run->documents & NX_DOCUMENTS_LOSS;
  for (uint32_t at = 0; at < run->sequence; at++)
    weights[at] = masks && ends_document(run, tokens[at]) ? 0 : 1;
}
