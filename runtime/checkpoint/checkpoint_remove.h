/* SPDX-License-Identifier: Apache-2.0 */
/* What of a run's folder may be removed: only what nxrun wrote there, and never through a link.
 *
 * A checkpoint is nxrun's own if it is a folder and no link, has a manifest.json of its step, and holds no
 * more than the manifest names. While it is written or removed the file `unfinished` marks it instead. What a
 * user linked in, or put beside these files, stays. */
#ifndef NXR_CHECKPOINT_REMOVE_H
#define NXR_CHECKPOINT_REMOVE_H

#include <stdbool.h>
#include <stdint.h>

bool nxr_checkpoint_is_own(const char *folder, uint64_t step);

/* Leaves of a checkpoint its weights alone. Its manifest forgets the other files first, and names them as
 * `removed`: so a removal that is cut short can be ended. One that is signed is left as it is. */
bool nxr_checkpoint_remove_states(const char *folder, uint64_t step);

/* Marks a folder as unfinished, or takes the mark away; false with errno. */
bool nxr_unfinished_mark(const char *folder);
bool nxr_unfinished_unmark(const char *folder);
/* Removes a folder that has the mark, or a manifest, and nothing but files of a checkpoint; or that is empty.
 * Otherwise it is left as it is, and the result is false. */
bool nxr_unfinished_remove(const char *folder);

#endif
