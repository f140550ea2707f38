/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder: checkpoints written and read, weights imported, gradients dumped.
 *
 * A checkpoint holds logical tensors (safetensors, one file per kind of storage) and a manifest with plan_id, step and
 * checksums; it is written to a temporary name by all ranks together, synced and renamed. Every function here meets
 * all ranks: it returns the same on each, and the fault is filled on the ranks that have something to say. */
#ifndef NXR_CHECKPOINT_H
#define NXR_CHECKPOINT_H

#include "runtime/fault.h"
#include "runtime/pieces.h"
#include "runtime/world.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxr_checkpoint {
  const nx_plan *plan;
  nxr_world *world;
  const nxr_pieces *pieces;
  const char *directory; /* the run's folder */
} nxr_checkpoint;

/* Makes the run's folder, or looks at the one that exists: without `resume` one that already holds a run is refused.
 * Nothing is overwritten. */
bool nxr_checkpoint_prepare(const nxr_checkpoint *checkpoint, bool resume, nxr_fault *fault);
/* Writes the state after `step` steps, and removes older ones beyond the plan's `keep`. */
bool nxr_checkpoint_save(const nxr_checkpoint *checkpoint, uint64_t step, nxr_fault *fault);
/* Reads the newest complete checkpoint; *step is how many steps it has behind it, 0 where the folder has none (then
 * nothing is read). One of another plan_id is refused. */
bool nxr_checkpoint_resume(const nxr_checkpoint *checkpoint, uint64_t *step, nxr_fault *fault);
/* Reads the initial weights from a safetensors file or folder with the plan's tensor names. */
bool nxr_checkpoint_import(const nxr_checkpoint *checkpoint, const char *path, nxr_fault *fault);
/* Writes `directory`/gradients.safetensors: every logical tensor's gradient as the arena holds it. */
bool nxr_checkpoint_gradients(const nxr_checkpoint *checkpoint, const char *directory, nxr_fault *fault);

#endif
