/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run agrees with a checkpoint that it would go on from: the plan and the dataset that its manifest
 * names. */
#ifndef NXR_CHECKPOINT_AGREE_H
#define NXR_CHECKPOINT_AGREE_H

#include "runtime/checkpoint/checkpoint_manifest.h"

/* The plans' settings differ in nothing that binds a run, and the datasets are the same: what differs without
 * binding is said on stderr, what binds in the fault. */
bool nxr_manifest_agrees(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                         nxr_fault *fault);

#endif
