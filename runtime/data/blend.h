/* SPDX-License-Identifier: Apache-2.0 */
/* Which source of a dataset gives its k-th sample, and which of the source's samples that is.
 *
 * The source that is furthest behind its weight gives the next one: of the products weight x k, less the
 * samples that the source has given, the greatest, of equal ones the first (of k = 0 as of 1). This is
 * Megatron's rule, in its arithmetic. It is walked from the first sample; what it chose for two runs of
 * samples is kept, so memory grows neither with the samples nor with their number times the sources'. */
#ifndef NXR_BLEND_H
#define NXR_BLEND_H

#include "runtime/files/fault.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxr_pick {
  uint32_t source; /* in the dataset */
  uint64_t sample; /* of the source, over all of its epochs */
} nxr_pick;

typedef struct nxr_blend {
  uint32_t n;
  double *weights;
  uint64_t *given; /* [n] samples so far */
  uint64_t n_given;
  nxr_pick *picks; /* of the last two runs */
} nxr_blend;

/* Weights from what sources have, 1 together: in proportion to it; or the shares of their documents to the
 * power of alpha, the smaller the larger the share (GPT-NeoX's weights_by_num_docs). */
void nxr_weigh_by_size(const uint64_t *sizes, uint32_t n, double *weights);
void nxr_weigh_by_documents(const uint64_t *n_documents, uint32_t n, double alpha, double *weights);

/* As both systems do before they blend by weights that are 1 together already, but for the last bits. */
void nxr_weigh_again(double *weights, uint32_t n);

/* Weights are 1 together. On failure there is nothing to close. */
bool nxr_blend_open(const double *weights, uint32_t n, nxr_blend *blend, nxr_fault *fault);
void nxr_blend_close(nxr_blend *blend);
/* Going on costs little; before the last two runs it begins anew. Allocates nothing. */
nxr_pick nxr_blend_pick(nxr_blend *blend, uint64_t sample);

#endif
