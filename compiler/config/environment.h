/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment has to do with a configuration: variables that the file reads, which a project may
 * want declared, and variables that would win over the file where the training is launched. */
#ifndef NXC_CONFIG_ENVIRONMENT_H
#define NXC_CONFIG_ENVIRONMENT_H

#include "compiler/config/compile_settings.h"

/* With --hermetic every variable that the file reads must be declared in the project file. */
void nxc_environment_check(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                           nxc_sink *sink);
/* What a launcher finds set it leaves so, and the file's word is lost. */
void nxc_environment_warn(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                          nxc_sink *sink);

#endif
