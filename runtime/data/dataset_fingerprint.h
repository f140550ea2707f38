/* SPDX-License-Identifier: Apache-2.0 */
/* What tells one dataset from another: all of its index, the size of its data, and some of its tokens.
 *
 * SHA-256 of the type, the numbers of sequences, documents and bytes, how many of the documents are trained
 * on, the index, and the data: all of it up to 16 MiB, else 1024 blocks of 4 KiB spread evenly from its first
 * to its last bytes. So it costs little for any size, and finds another text, another tokenizer or a longer
 * dataset; a few tokens that were changed within a large one it may miss. */
#ifndef NXR_DATASET_FINGERPRINT_H
#define NXR_DATASET_FINGERPRINT_H

#include "runtime/data/dataset.h"

typedef struct nxr_fingerprint {
  uint8_t sha256[32];
  uint64_t n_documents, n_tokens; /* trained on */
} nxr_fingerprint;

/* Of a run that trains on the first `n_documents`, which have `n_tokens` together. */
nxr_fingerprint nxr_fingerprint_of(const nxr_dataset *dataset, uint64_t n_documents, uint64_t n_tokens);
/* Of several, in order; of one alone its own. */
nxr_fingerprint nxr_fingerprint_together(const nxr_fingerprint *each, uint32_t n);
bool nxr_fingerprint_equal(const nxr_fingerprint *one, const nxr_fingerprint *other);

#endif
