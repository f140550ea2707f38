/* SPDX-License-Identifier: Apache-2.0 */
/* FILEs of a command line, where one may be a folder: it stands for what may be a training's below it, every
 * *.yaml, *.yml and script (*.sh, *.slurm, *.sbatch).
 *
 * Names come sorted, those below . without it; files and folders whose names begin with a dot are left out,
 * and so are links to folders, what git ignores, and what `exclude` of .nxcfg.yaml names. A file that is
 * named itself is never left out. */
#ifndef NXC_COMMANDS_FOLDERS_H
#define NXC_COMMANDS_FOLDERS_H

#include "compiler/commands/options.h"

typedef struct nxc_found_files {
  nxc_texts names;
  bool *below; /* each: it was found below a folder, and not named */
} nxc_found_files;

/* Whether a file of this name is looked at below folders. */
bool nxc_folders_take(const char *name);

/* Replaces each folder by what is below it. False, with a message on stderr, where a folder cannot be read or
 * has none. */
bool nxc_folders_expand(nxc_arena *arena, const char *command, const nxc_texts *files,
                        nxc_found_files *found);
/* Files that are named are as if they were found below their folders: those that these leave out are gone. */
void nxc_folders_search(nxc_arena *arena, nxc_found_files *found);

#endif
