/* SPDX-License-Identifier: Apache-2.0 */
/* Links beside checkpoints, with names for people: checkpoints/NAME leads to checkpoints/step-000120.
 *
 * The name is a pattern in which {step}, {samples}, {epoch} (from 0) and {loss} become numbers; behind a
 * colon may stand 0N (N digits at least, with zeros before them) or .N (N digits behind the point). What is
 * not known is left out. Links with / lie in folders below checkpoints/, which go with the last link in them.
 */
#ifndef NXR_CHECKPOINT_LINK_H
#define NXR_CHECKPOINT_LINK_H

#include "runtime/checkpoint/checkpoint_manifest.h"

enum { NXR_LINK_BYTES = 200 };

/* False where the pattern makes no name of a file, which may lie in folders (NAME/NAME): one is empty, or
 * begins with a point, or all is too long. */
bool nxr_link_name(const char *pattern, uint64_t step, uint64_t n_samples, uint64_t epoch,
                   const nxr_score *score, char name[NXR_LINK_BYTES]);
/* Where it cannot be made that is said on stderr; nothing else fails for it. */
void nxr_link_make(const char *directory, uint64_t step, const char *name);
/* Removes all links that lead to the checkpoint. */
void nxr_link_remove(const char *directory, uint64_t step);

#endif
