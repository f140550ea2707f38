/* SPDX-License-Identifier: Apache-2.0 */
/* What adapters learned, added to a weight that is kept quantized: its numbers and what is added are
 * quantized anew, with scales that follow the sum. The matrix is made whole a few rows at a time, on all
 * ranks together. */
#ifndef NXR_REQUANTIZE_H
#define NXR_REQUANTIZE_H

#include "runtime/files/fault.h"
#include "runtime/state/pieces.h"
#include "runtime/world/world.h"

/* scale b a is added: b has as many rows as the weight, a as many columns. */
typedef struct nxr_addend {
  const double *a, *b;
  int64_t rank, columns; /* of a */
  double scale;
} nxr_addend;

double nxr_addend_at(const nxr_addend *addend, int64_t row, int64_t column);

/* `codes` is a piece of the weight. Called by all ranks. */
bool nxr_requantize(const nxr_pieces *pieces, nxr_world *world, uint32_t codes, const nxr_addend *addend,
                    nxr_fault *fault);

#endif
