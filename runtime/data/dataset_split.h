/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset divided by shares of its documents, as 969,30,1 for training, validation and test: each part is a
 * run of documents, in order. */
#ifndef NXR_DATASET_SPLIT_H
#define NXR_DATASET_SPLIT_H

#include "schema/plan.h"

/* One to three numbers with , or / between them, made 1 together; false where they are none, or all 0. */
bool nxr_split_parse(const char *text, double shares[NX_PARTS]);
/* Part i is documents [borders[i], borders[i + 1]); shares are 1 together. Ends are rounded as NX_SPLIT_SUMS
 * says. */
void nxr_split_borders(const double shares[NX_PARTS], uint64_t n_documents, uint64_t borders[NX_PARTS + 1]);
/* The documents [*first, *end) of so many that are the source's. */
void nxr_split_part(const nx_source *source, uint64_t n_documents, uint64_t *first, uint64_t *end);

#endif
