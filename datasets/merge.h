/* SPDX-License-Identifier: Apache-2.0 */
/* Several datasets as one, as Hugging Face datasets makes it of theirs: of each the piece that is asked for
 * of its documents, shuffled, and of these what is not too long; one behind the other, each shuffled by
 * itself, or all together, or both; then what counts in the loss, and a piece of that. Shuffles are numpy's
 * default_rng(seed).permutation, each of a generator of its own. */
#ifndef NXD_MERGE_H
#define NXD_MERGE_H

#include "datasets/journal.h"
#include "runtime/data/dataset.h"

typedef struct nxd_merge {
  const char *lines; /* schema/merge.h */
  const char *prefix;
  bool each, all; /* what is shuffled */
  uint64_t seed;
  uint32_t pieces, piece; /* of all; 0 pieces: it is not cut */
} nxd_merge;

/* A document of one of several datasets. */
typedef struct nxd_merged {
  uint32_t dataset; /* its line */
  uint64_t document;
} nxd_merged;

typedef struct nxd_merge_order {
  nxd_merged *documents; /* [n], to be freed, whatever happened */
  uint64_t n, n_long, n_empty;
} nxd_merge_order;

/* merge_order.c: the documents that are written, in order; `datasets` has one for each line. */
bool nxd_merge_order_of(const nxd_merge *merge, const nxr_dataset *const *datasets, nxd_merge_order *order,
                        nxr_fault *fault);
/* Of what is merged and what was made of it. */
void nxd_merge_key(const nxd_merge *merge, char key[65]);
/* Writes it; `standing` and the type receive what was written. */
bool nxd_merge_run(const nxd_merge *merge, uint8_t *type_code, nxd_standing *standing, nxr_fault *fault);

#endif
