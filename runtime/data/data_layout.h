/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens of a sequence a rank has, and to which document each belongs. Sizes and order as nx_run
 * says. */
#ifndef NXR_DATA_LAYOUT_H
#define NXR_DATA_LAYOUT_H

#include "schema/plan.h"

#include <stdint.h>

/* Token i of a ring rank's part: where it stands in the sequence. */
uint32_t nxr_ring_place(const nx_run *run, uint32_t ring_rank, uint32_t i);
/* starts[p]: where the document that token p belongs to starts; 0 for all where documents are not told
 * apart. */
void nxr_find_documents(const nx_run *run, const int32_t *tokens, int32_t *starts);
/* weights[p]: 1 where the token after p is predicted, else 0. */
void nxr_weigh_tokens(const nx_run *run, const int32_t *tokens, float *weights);

#endif
