/* SPDX-License-Identifier: Apache-2.0 */
/* What the settings catalogue itself says that nxrun cannot execute, whatever the dialect (NX1401): an error
 * for nxrun, a note else. An option that was refused in its dialect's own words is not refused again. */
#ifndef NXC_REFUSE_SETTINGS_H
#define NXC_REFUSE_SETTINGS_H

#include "compiler/config/compile_settings.h"

void nxc_refuse_settings(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                         nxc_sink *sink);

#endif
