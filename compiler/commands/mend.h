/* SPDX-License-Identifier: Apache-2.0 */
/* What repairs have made of files (fixes.h): written, or shown as a diff. */
#ifndef NXC_COMMANDS_MEND_H
#define NXC_COMMANDS_MEND_H

#include "compiler/edit/fixes.h"

/* Standard input is read now, and given again whenever it is read. False, with a message: it cannot be read.
 */
bool nxc_mend_read_stdin(nxc_arena *arena);
/* Writes each file that has changed (standard input goes to standard output), from when on files are read as
 * they are. False, with messages, where one cannot be written. */
bool nxc_mend_finish(nxc_arena *arena, const nxc_fixes *fixes);
/* Prints the changes instead. The exit status says whether there are any. */
int nxc_mend_show(nxc_arena *arena, const nxc_fixes *fixes, bool colour, int status);

#endif
