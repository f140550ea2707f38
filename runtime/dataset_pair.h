/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset that is being written: PREFIX.bin and PREFIX.idx under temporary names of their own, which become
 * a dataset together when both are on disk, or not at all. Several may be written to one prefix at once: of
 * those that may replace a dataset the last counts, of the others the first. */
#ifndef NXR_DATASET_PAIR_H
#define NXR_DATASET_PAIR_H

#include "runtime/dataset.h"

#include <stdio.h>

enum { NXR_DATASET_PATH_BYTES = 4096 };

typedef struct nxr_dataset_file {
  FILE *file;
  bool started; /* the temporary file is ours */
  char temporary[NXR_DATASET_PATH_BYTES], path[NXR_DATASET_PATH_BYTES];
} nxr_dataset_file;

typedef struct nxr_dataset_pair {
  nxr_dataset_file data, index;
  const char *prefix; /* the caller's */
  bool force;         /* replaces a dataset that is there */
} nxr_dataset_pair;

/* What an index says; sequences follow one another in the data. */
typedef struct nxr_dataset_contents {
  uint8_t type_code;
  uint32_t token_bytes;
  uint64_t n_sequences, n_documents;
  const int32_t *sizes;    /* [n_sequences] tokens */
  const uint64_t *borders; /* [n_documents + 1] first sequence of each; NULL: each is one sequence */
} nxr_dataset_contents;

bool nxr_dataset_pair_open(nxr_dataset_pair *pair, const char *prefix, bool force, nxr_fault *fault);
/* Appends to the data. */
bool nxr_dataset_pair_write(nxr_dataset_pair *pair, const void *bytes, size_t n_bytes, nxr_fault *fault);
/* `written` receives what the dataset has; it has no files that are open. */
bool nxr_dataset_pair_finish(nxr_dataset_pair *pair, const nxr_dataset_contents *contents,
                             nxr_dataset *written, nxr_fault *fault);
/* Always; what was not finished is removed. */
void nxr_dataset_pair_close(nxr_dataset_pair *pair);

#endif
