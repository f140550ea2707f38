/* SPDX-License-Identifier: Apache-2.0 */
/* A run that begins anew with the weights that its own folder has, as fine-tuning may: what was there is set
 * aside first, so that the steps of both trainings may have the same names.
 *
 *   DIR/before-1/checkpoints/step-000120   what the folder had when the first such run began
 *   DIR/checkpoints/step-000010            this run's own
 *
 * For one rank alone, which holds the folder's lock. */
#ifndef NXR_CHECKPOINT_BEFORE_H
#define NXR_CHECKPOINT_BEFORE_H

#include "runtime/files/fault.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether both are the same folder; the run's is made. */
bool nxr_before_is_own(const char *directory, const char *load);
/* Sets aside what there is; where the run resumes, only if no such run has begun there. *n is the number of
 * the folder that has what the run begins with, 0 where none has checkpoints. */
bool nxr_before_set_aside(const char *directory, bool resume, uint64_t *n, bool *moved, nxr_fault *fault);
/* DIR itself for 0. */
void nxr_before_path(const char *directory, uint64_t n, char *path, size_t room);

#endif
