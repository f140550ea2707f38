/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a command writes: they appear under their names only when they are whole. */
#ifndef NXC_COMMANDS_OUTPUT_H
#define NXC_COMMANDS_OUTPUT_H

#include "compiler/arena.h"
#include "compiler/texts.h"

#include <stdbool.h>
#include <stddef.h>

/* What is there stays until the new is whole and synced, and nothing else is left behind; a device or a pipe
 * is written to. False, with a message on stderr that names the command, where it cannot be written. */
bool nxc_output_write(nxc_arena *arena, const char *command, const char *path, const void *bytes,
                      size_t n_bytes);

/* False, with a message, where the path is one of the files that the command reads. */
bool nxc_output_spares(const char *command, const char *path, const nxc_texts *inputs);

/* False, with a message, where the path is a file with content that is no plan: a configuration, say. */
bool nxc_output_may_replace_plan(const char *command, const char *path);

#endif
