/* SPDX-License-Identifier: Apache-2.0 */
/* A world size that is told from outside, beside the one that the file itself has. */
#ifndef NXC_CONFIG_WORLD_H
#define NXC_CONFIG_WORLD_H

#include "compiler/config/compile_settings.h"

/* Hosts of another world size are as large as the file's own: 1024 ranks of a file of 1 host with 8 are 128
 * hosts. Where the file has no world of its own and no host has so many ranks, their number is unknown. */
void nxc_world_spread(nxc_arena *arena, const nxc_compiled *compiled, nxc_sink *sink);
/* Notes a world size of the command line where the file has another. */
void nxc_world_note_other(nxc_arena *arena, const nxc_compiled *compiled, nxc_sink *sink);

#endif
