/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights, drawn: zeros, ones, or normal numbers by (seed, tensor id, row, column) of the logical
 * tensor, so that every mesh draws the same. Padding stays as the arenas begin: zero. */
#ifndef NXR_INIT_H
#define NXR_INIT_H

#include "runtime/files/fault.h"
#include "runtime/state/pieces.h"

bool nxr_init_weights(const nxr_pieces *pieces, nxr_fault *fault);

#endif
