/* SPDX-License-Identifier: Apache-2.0 */
/* Whole documents, as many as fit, in rows of one length.
 *
 * What goes where depends on the lengths alone, so every rank finds the same rows. Documents are packed in
 * groups, one group after another; a row has documents of one group. Each costs O(log n) of the documents of
 * its group. */
#ifndef NXR_PACKING_H
#define NXR_PACKING_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

typedef struct nxr_packing {
  nx_packing kind;
  uint64_t row_tokens;
  uint64_t group; /* documents; 0: all are one */
} nxr_packing;

typedef struct nxr_rows {
  uint64_t n;
  uint64_t *firsts;    /* [n + 1] in documents */
  uint64_t *documents; /* row after row, in the order in which they were put there */
} nxr_rows;

/* Lengths are at most row_tokens. On failure there is nothing to free. */
bool nxr_rows_make(const nxr_packing *packing, const uint32_t *lengths, uint64_t n_documents, nxr_rows *rows,
                   nxr_fault *fault);
void nxr_rows_free(nxr_rows *rows);

#endif
