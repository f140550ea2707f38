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

/* What a command writes, and replaces: its like, and nothing else that has content. Those from CONVERTED on
 * have a --force; a TEXT has nothing that tells it from another's. */
typedef enum nxc_output_kind {
  NXC_OUTPUT_PLAN,
  NXC_OUTPUT_PICTURE,
  NXC_OUTPUT_PAGE,
  NXC_OUTPUT_CONVERTED,
  NXC_OUTPUT_TEXT
} nxc_output_kind;

/* False, with a message that names the option, where the path is a file that is not replaced. */
bool nxc_output_may_replace(const char *command, const char *option, const char *path, nxc_output_kind kind,
                            bool forced);

#endif
