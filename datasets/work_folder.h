/* SPDX-License-Identifier: Apache-2.0 */
/* PREFIX.building: where the parts of a dataset grow until they are whole. Its file `lock` is locked as long
 * as somebody writes there. */
#ifndef NXD_WORK_FOLDER_H
#define NXD_WORK_FOLDER_H

#include "datasets/journal.h"

#include <stdbool.h>

/* Makes a work folder that is nobody's, or takes one that holds an unfinished dataset of the same key (NULL:
 * none): `standing` then says how far it came. `lock` is the open lock. Folders of other keys stay. */
bool nxd_work_folder_open(const char *prefix, const char *key, char folder[NXD_PATH_BYTES], int *lock,
                          nxd_standing *standing, nxr_fault *fault);
/* Removes it, whatever it holds, and closes the lock. */
void nxd_work_folder_remove(const char *folder, int lock);

#endif
