/* SPDX-License-Identifier: Apache-2.0 */
/* A source of several datasets: labels for each token, rejected answers beside the chosen ones, or both. Its
 * document 2 i is the i-th that was chosen, and 2 i + 1 the one that was rejected instead. */
#include "runtime/data/data_source.h"

enum { SOME = 256 };

/* Where a document of the source stands. */
typedef struct place {
  const nxr_dataset *tokens, *labels;
  uint64_t document;
} place;

static place find(const nxr_data_source *source, uint64_t document) {
  if (source->rejected == NULL) return (place){source->dataset, source->labels, document};
  if (document % 2 == 0) return (place){source->dataset, source->labels, document / 2};
  return (place){source->rejected, source->rejected_labels, document / 2};
}

static uint64_t labelled_tokens(const nxr_data_source *source, uint64_t document) {
  place at = find(source, document);
  return nxr_dataset_document_tokens(at.tokens, at.document);
}

static void labelled_read(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                          int32_t *tokens) {
  place at = find(source, document);
  nxr_dataset_read(at.tokens, at.document, first, n, tokens);
}

/* A label below 0 says that its token does not count. */
static void labelled_weights(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                             float *weights) {
  place at = find(source, document);
  int32_t labels[SOME];
  if (at.labels == NULL) {
    nxr_dataset_weights(at.tokens, at.document, first, n, weights);
    return;
  }
  for (uint64_t n_here; n > 0; first += n_here, n -= n_here) {
    n_here = n < SOME ? n : SOME;
    nxr_dataset_read(at.labels, at.document, first, n_here, labels);
    for (uint64_t i = 0; i < n_here; i++) *weights++ = labels[i] < 0 ? 0.0F : 1.0F;
  }
}

const nxr_data_source_kind nxr_source_labelled = {labelled_tokens, labelled_read, labelled_weights};

static bool check_labels(const nxr_dataset *dataset, const nxr_dataset *labels, nxr_fault *fault) {
  if (labels == NULL) return true;
  if (labels->n_documents != dataset->n_documents)
    return nxr_fault_set(fault, "dataset %s has %llu documents, and %s has labels of %llu", dataset->prefix,
                         (unsigned long long)dataset->n_documents, labels->prefix,
                         (unsigned long long)labels->n_documents);
  for (uint64_t i = 0; i < dataset->n_documents; i++)
    if (nxr_dataset_document_tokens(labels, i) != nxr_dataset_document_tokens(dataset, i))
      return nxr_fault_set(
          fault, "document %llu of dataset %s has %llu tokens, and %s has %llu labels for it",
          (unsigned long long)i, dataset->prefix, (unsigned long long)nxr_dataset_document_tokens(dataset, i),
          labels->prefix, (unsigned long long)nxr_dataset_document_tokens(labels, i));
  return true;
}

bool nxr_source_check_beside(const nxr_data_source *source, nxr_fault *fault) {
  if (source->rejected && source->rejected->n_documents != source->dataset->n_documents)
    return nxr_fault_set(fault,
                         "dataset %s has %llu answers that were chosen, and %s has %llu that were rejected",
                         source->dataset->prefix, (unsigned long long)source->dataset->n_documents,
                         source->rejected->prefix, (unsigned long long)source->rejected->n_documents);
  return check_labels(source->dataset, source->labels, fault) &&
         (source->rejected == NULL || check_labels(source->rejected, source->rejected_labels, fault));
}
