/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody who is trusted has signed a checkpoint or a folder of weights (schema/signed.h). What is
 * read later is what was looked at as long as nothing writes in the folder meanwhile. */
#ifndef NXR_CHECKPOINT_TRUST_H
#define NXR_CHECKPOINT_TRUST_H

#include "runtime/checkpoint/checkpoint.h"

/* A folder, or the folder that a file is in. Meets all ranks, which share the reading. */
bool nxr_checkpoint_trusts(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault);

#endif
