/* SPDX-License-Identifier: Apache-2.0 */
/* One file of logical tensors, written by all ranks at once: each puts its own spans where they belong. */
#ifndef NXR_CHECKPOINT_WRITE_H
#define NXR_CHECKPOINT_WRITE_H

#include "runtime/checkpoint/checkpoint_tensors.h"
#include "runtime/world/world.h"

/* Meets all ranks and returns the same on each. The file must not exist; it is synced. After a failure what
 * there is of it is the caller's to remove. */
bool nxr_tensors_write(const nxr_tensors *tensors, nxr_world *world, nxr_content content, const char *path,
                       nxr_fault *fault);

/* Whether it is true on all ranks; meets them. */
bool nxr_world_all(nxr_world *world, bool own);

#endif
