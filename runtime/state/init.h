/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights, drawn: zeros, ones, or normal numbers by (seed, tensor id, row, column) of the logical
 * tensor, so that every mesh draws the same. Padding stays as the arenas begin: zero. */
#ifndef NXR_INIT_H
#define NXR_INIT_H

#include "runtime/files/fault.h"
#include "runtime/state/pieces.h"

bool nxr_init_weights(const nxr_pieces *pieces, nxr_fault *fault);

/* What an adapter's matrix begins anew with: `first` is drawn, with another seed, and the second is 0. */
void nxr_init_adapter(const nxr_pieces *pieces, uint32_t piece, bool first, uint64_t seed, float *values,
                      void *room);

#endif
