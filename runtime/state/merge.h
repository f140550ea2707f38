/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters that are added to the frozen weights beside them while the training goes on, and begin anew.
 *
 * A weight becomes W + scale B A. Both matrices are small: every rank gets them whole, from those that write
 * them to checkpoints, whatever the layout; then each adds to what it holds of W. */
#ifndef NXR_MERGE_H
#define NXR_MERGE_H

#include "runtime/files/fault.h"
#include "runtime/state/pieces.h"
#include "runtime/world/world.h"

/* Merges all adapters; `times`: how often that was done before. Meets all ranks. */
bool nxr_merge_adapters(const nxr_pieces *pieces, nxr_world *world, uint64_t times, nxr_fault *fault);

#endif
