/* SPDX-License-Identifier: Apache-2.0 */
/* Whole documents, as many as fit, in rows of one length.
 *
 * What goes where depends on the lengths alone, so every rank finds the same rows. Documents are packed in
 * groups, one group after another; a row has documents of one group. Each costs O(log n) of the documents of
 * its group. */
#ifndef NX_PACKING_H
#define NX_PACKING_H

#include "schema/plan.h"

typedef struct nx_packing_rule {
  nx_packing kind;
  uint64_t row_tokens;
  uint64_t group; /* documents; 0: all are one */
} nx_packing_rule;

typedef struct nx_rows {
  uint64_t n;
  uint64_t *firsts;    /* [n + 1] in documents */
  uint64_t *documents; /* row after row, in the order in which they were put there */
} nx_rows;

/* By the name that data.packing gives it. */
nx_packing nx_packing_named(const char *name);
/* Lengths are at most row_tokens. False where memory is short: there is nothing to free then. */
bool nx_rows_make(const nx_packing_rule *packing, const uint32_t *lengths, uint64_t n_documents,
                  nx_rows *rows);
void nx_rows_free(nx_rows *rows);

#endif
