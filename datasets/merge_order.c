/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/merge.h"

#include "datasets/pieces.h"
#include "schema/merge.h"

#include <stdlib.h>
#include <string.h>

static bool shuffle(nxd_merged *documents, uint64_t n, uint64_t seed) {
  nxd_pcg64 random = nxd_pcg64_of(seed);
  uint64_t *order = malloc((n + 1) * sizeof *order);
  nxd_merged *before = malloc((n + 1) * sizeof *before);
  if (order && before) {
    nxd_permutation(&random, order, n);
    memcpy(before, documents, n * sizeof *before);
    for (uint64_t i = 0; i < n; i++) documents[i] = before[order[i]];
  }
  bool good = order && before;
  free(order);
  free(before);
  return good;
}

/* Those of a part, as far as they are not too long, behind what stands there. */
static bool add_part(const nxd_merge *merge, const nx_merge_part *part, bool shuffled,
                     const nxr_dataset *from, uint32_t index, nxd_merge_order *order) {
  uint64_t n = from->n_documents, first = 0, n_read = n;
  nxd_merged *room = realloc(order->documents, (order->n + n + 1) * sizeof *room), *at = room + order->n;
  if (room == NULL) return false;
  order->documents = room;
  for (uint64_t i = 0; i < n; i++) at[i] = (nxd_merged){index, i};
  if (part->pieces > 0) {
    n_read = nxd_piece_span(part->pieces, part->piece, n, &first);
    if (!shuffle(at, n, merge->seed)) return false;
  }
  uint64_t n_kept = 0;
  for (uint64_t i = first; i < first + n_read; i++) {
    bool is_long = part->tokens > 0 && nxr_dataset_document_tokens(from, at[i].document) > part->tokens;
    if (is_long) order->n_long++;
    else at[n_kept++] = at[i];
  }
  order->n += n_kept;
  return !shuffled || shuffle(at, n_kept, merge->seed);
}

static bool counts(const nxr_dataset *from, uint64_t document) {
  float weights[1024];
  uint64_t n = nxr_dataset_document_tokens(from, document);
  for (uint64_t first = 0; first < n; first += 1024) {
    uint64_t n_here = n - first < 1024 ? n - first : 1024;
    nxr_dataset_weights(from, document, first, n_here, weights);
    for (uint64_t i = 0; i < n_here; i++)
      if (weights[i] > 0) return true;
  }
  return false;
}

static void leave_out_empty(const nxr_dataset *const *datasets, nxd_merge_order *order) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < order->n; i++) {
    const nxd_merged *is = &order->documents[i];
    if (counts(datasets[is->dataset], is->document)) order->documents[n++] = *is;
  }
  order->n_empty = order->n - n;
  order->n = n;
}

static uint32_t count_parts(const char *lines) {
  uint32_t n = 0;
  for (nx_merge_part part; nx_merge_next(&lines, &part);) n++;
  return n;
}

bool nxd_merge_order_of(const nxd_merge *merge, const nxr_dataset *const *datasets, nxd_merge_order *order,
                        nxr_fault *fault) {
  uint32_t n = count_parts(merge->lines);
  const char *lines = merge->lines;
  *order = (nxd_merge_order){.n = 0};
  nx_merge_part part;
  bool good = true;
  for (uint32_t i = 0; good && nx_merge_next(&lines, &part); i++)
    good = add_part(merge, &part, merge->each && n > 1, datasets[i], i, order);
  if (good && merge->all) good = shuffle(order->documents, order->n, merge->seed);
  if (!good) return nxr_fault_set(fault, "out of memory for the order of the documents");
  leave_out_empty(datasets, order);
  if (merge->pieces == 0) return true;
  uint64_t first, n_read = nxd_piece_span(merge->pieces, merge->piece, order->n, &first);
  memmove(order->documents, order->documents + first, n_read * sizeof *order->documents);
  order->n = n_read;
  return true;
}
