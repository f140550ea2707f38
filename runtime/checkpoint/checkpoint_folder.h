/* SPDX-License-Identifier: Apache-2.0 */
/* The run's folder on disk: which checkpoints there are, and how one appears and disappears as a whole.
 *
 *   DIR/lock                        held while a run uses the folder
 *   DIR/checkpoints/step-000120     a checkpoint: renamed to this name when all of it is on disk
 *   DIR/checkpoints/step-000120.tmp being written or removed, or .tmp-2 … where that name is taken; the next
 * run clears away what a killed one left DIR/checkpoints/step-000120.damaged   passed over by a resume, and
 * set aside
 *
 * For one rank alone; runtime/checkpoint/checkpoint.c makes the ranks meet. */
#ifndef NXR_CHECKPOINT_FOLDER_H
#define NXR_CHECKPOINT_FOLDER_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

#include <stddef.h>
#include <stdint.h>

enum { NXR_PATH_BYTES = 4096 };

/* Makes the folder, takes its lock (until the process ends or opens another) and clears away what a killed
 * run left. Without `resume` a folder that has checkpoints is refused. Where they shall be `elsewhere` (NULL,
 * "": they are not), DIR/checkpoints is a link to that folder. */
bool nxr_folder_open(const char *directory, const char *elsewhere, bool resume, nxr_fault *fault);

/* DIR/checkpoints/step-NNNNNN followed by `rest`. */
void nxr_folder_path(const char *directory, uint64_t step, const char *rest, char path[NXR_PATH_BYTES]);
bool nxr_folder_has(const char *directory, uint64_t step);
/* The newest checkpoint of fewer steps than `below`. */
bool nxr_folder_newest(const char *directory, uint64_t below, uint64_t *step);

/* Whether checkpoints can be made in it: asked before the training, which would be lost. */
bool nxr_folder_may_grow(const char *directory, nxr_fault *fault);

/* A folder with a temporary name for the checkpoint of this step; then its own name at last, when everything
 * is synced. checkpoint_remove.h removes it. */
bool nxr_folder_begin(const char *directory, uint64_t step, char path[NXR_PATH_BYTES], nxr_fault *fault);
bool nxr_folder_publish(const char *directory, uint64_t step, const char *temporary, nxr_fault *fault);
/* Of nxrun's own keeps the newest, as many as `keep` says (below 0: all; one at least), and the best by their
 * scores; removes the others, oldest first, and from those that stay the optimizer's states, but of the
 * newest `keep_states`. What cannot be removed is a warning. */
void nxr_folder_prune(const char *directory, const nx_run_names *names);
/* Of a folder of temporary checkpoints, which is a run's folder without a lock: all but the newest go; and
 * all of them where a run begins that does not resume. */
void nxr_folder_keep_newest(const char *directory);
bool nxr_folder_open_temporary(const char *directory, bool resume, nxr_fault *fault);
bool nxr_folder_set_aside(const char *directory, uint64_t step, nxr_fault *fault);

/* mkdir, for the folders above it too. */
bool nxr_folder_make(const char *path, nxr_fault *fault);
bool nxr_folder_sync(const char *path, nxr_fault *fault);

#endif
