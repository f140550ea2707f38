/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset divided by shares of its documents, as 969,30,1 for training, validation and test: each part is a
 * run of documents, in order, whose borders are rounded as Megatron-LM rounds them. */
#ifndef NXR_DATASET_SPLIT_H
#define NXR_DATASET_SPLIT_H

#include "runtime/dataset.h"

enum { NXR_PARTS = 3 };

/* Where a part ends that has this share, with those before it: the nearest number, of two the even one. */
uint64_t nxr_split_end(double share, uint64_t n_documents);
/* One to three numbers with , or / between them; false where they are none, or all 0. */
bool nxr_split_parse(const char *text, double shares[NXR_PARTS]);
/* Part i is documents [borders[i], borders[i + 1]). */
void nxr_split_borders(const double shares[NXR_PARTS], uint64_t n_documents, uint64_t borders[NXR_PARTS + 1]);

/* Writes documents [first, end) as a dataset of their own; `written` as nxr_dataset_build's. */
bool nxr_dataset_copy(const nxr_dataset *from, uint64_t first, uint64_t end, const char *prefix, bool force,
                      nxr_dataset *written, nxr_fault *fault);

#endif
