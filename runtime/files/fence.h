/* SPDX-License-Identifier: Apache-2.0 */
/* Folders outside of which nothing is read or written that a plan names (nxrun --allow).
 *
 * A path counts as what its links lead to; what does not exist yet, as what it would be. The fence is one for
 * the process, and stands for good; without one everything is allowed. It is looked at before a run touches
 * what its plan names, and once more of every file that is mapped, after it was opened; who may write in the
 * allowed folders can change links while a run begins, and so must be trusted. */
#ifndef NXR_FENCE_H
#define NXR_FENCE_H

#include "runtime/files/fault.h"

enum { NXR_MOST_ALLOWED = 64 };

/* A folder, or a file. What is `given` must exist; else it is a part of the command line that may be made. */
bool nxr_fence_add(const char *path, bool given, nxr_fault *fault);
/* `what` names the path in a message. Of a folder the links in it, and in the folders in it, are judged too. */
bool nxr_fence_allows_folder(const char *path, const char *what, nxr_fault *fault);
/* An open file of this name. */
bool nxr_fence_allows_open(int file, const char *path, nxr_fault *fault);

#endif
