/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that the command line gives: --set nx:PATH=VALUE and --world-size; the project's world size where
 * the command line gives none. */
#ifndef NXC_CONFIG_COMMAND_LINE_H
#define NXC_CONFIG_COMMAND_LINE_H

#include "compiler/config/compile_settings.h"

/* nx:PATH=VALUE, which is none of the dialect's own keys. */
bool nxc_command_line_is_setting(const char *assignment);
/* False when an error was reported. */
bool nxc_command_line_set(nxc_arena *arena, const nxc_request *request, nxc_compiled *compiled,
                          nxc_sink *sink);

#endif
