/* SPDX-License-Identifier: Apache-2.0 */
/* A command that runs again whenever what it reads has changed. */
#ifndef NXC_COMMANDS_WATCH_H
#define NXC_COMMANDS_WATCH_H

#include "compiler/texts.h"

/* Runs it now, and after each change of a FILE, of a file below a folder, or of the project's .nxcfg.yaml,
 * each time as a process of its own, until a signal ends it. */
int nxc_watch(const nxc_texts *files, int (*run)(void *context), void *context);

#endif
