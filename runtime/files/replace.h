/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a command makes under a name that its user gave. */
#ifndef NXR_REPLACE_H
#define NXR_REPLACE_H

#include "runtime/files/fault.h"

/* False with a fault where the name is taken by what does not begin as this command's files do: by a
 * configuration, say, or the very file that is read. Devices and pipes are written to. */
bool nxr_may_replace(const char *path, const char *beginning, nxr_fault *fault);
/* Whether a file of that name can take another's place: not a device, a pipe or a link, which stay. */
bool nxr_is_renamed_over(const char *path);

#endif
