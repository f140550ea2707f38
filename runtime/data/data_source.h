/* SPDX-License-Identifier: Apache-2.0 */
/* Where documents come from: one of the plan's sources, opened. A kind of source is a table of functions.
 *
 * A source gives its part alone: its documents count from 0, and no number leads to one of another part. What
 * has no prefix is made up: tokens that are drawn, for runs that try nothing but speed. */
#ifndef NXR_DATA_SOURCE_H
#define NXR_DATA_SOURCE_H

#include "runtime/data/dataset.h"
#include "runtime/data/dataset_fingerprint.h"
#include "schema/plan.h"

typedef struct nxr_data_source nxr_data_source;

typedef struct nxr_data_source_kind {
  uint64_t (*document_tokens)(const nxr_data_source *source, uint64_t document);
  void (*read)(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n, int32_t *tokens);
  void (*weights)(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                  float *weights);
} nxr_data_source_kind;

struct nxr_data_source {
  const nxr_data_source_kind *kind;
  const nx_run *run;
  const char *name;                               /* for messages */
  uint32_t number;                                /* in the plan */
  nxr_dataset *dataset;                           /* or NULL; several sources may read one */
  nxr_dataset *rejected;                          /* of pairs: what stands beside it, document by document */
  nxr_dataset *labels, *rejected_labels;          /* or NULL: what counts of the tokens of those */
  nxr_dataset *rewards;                           /* or NULL: they are in the dataset's own file */
  uint64_t first_document, n_documents, n_tokens; /* of its part; those before it are others' */
  uint64_t all_documents;
};

/* Those of a plan; what is not opened is zero. */
typedef struct nxr_data_sources {
  const nx_plan *plan;
  nxr_data_source *sources; /* [n], as the plan's */
  nxr_dataset *datasets;    /* [NXR_SOURCE_DATASETS n]; each file is opened once */
} nxr_data_sources;

enum { NXR_SOURCE_DATASETS = 5 }; /* of a source, at most */

bool nxr_data_sources_make(const nx_plan *plan, nxr_data_sources *sources, nxr_fault *fault);
void nxr_data_sources_close(nxr_data_sources *sources);
/* NULL where it cannot be opened. */
nxr_data_source *nxr_data_source_open(nxr_data_sources *sources, uint32_t number, nxr_fault *fault);

uint64_t nxr_data_source_document_tokens(const nxr_data_source *source, uint64_t document);
/* Copies tokens [first, first + n) of a document; the caller keeps them within it. */
void nxr_data_source_read(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                          int32_t *tokens);
/* How much the losses of predicting them weigh. */
void nxr_data_source_weights(const nxr_data_source *source, uint64_t document, uint64_t first, uint64_t n,
                             float *weights);
/* Whether not all tokens weigh 1. */
bool nxr_data_source_has_weights(const nxr_data_source *source);
/* Of a document, where the objective reads them. */
double nxr_data_source_reward(const nxr_data_source *source, uint64_t document);
nxr_fingerprint nxr_data_source_fingerprint(const nxr_data_source *source);

/* source_pairs.c: a dataset with labels for its tokens, and one whose rejected answers stand in another. */
extern const nxr_data_source_kind nxr_source_labelled;
/* What stands beside the dataset has as many documents, and labels as many tokens. */
bool nxr_source_check_beside(const nxr_data_source *source, nxr_fault *fault);
/* source_rewards.c: where they are read, each document has one, above 0 or below. */
bool nxr_source_check_rewards(const nxr_data_source *source, nxr_fault *fault);

#endif
