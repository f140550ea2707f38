/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json of the model: the one that the command line or the project names, or the file itself. */
#ifndef NXC_CONFIG_MODEL_CONFIG_H
#define NXC_CONFIG_MODEL_CONFIG_H

#include "compiler/config/compile_settings.h"

/* Its values become those of the binding's model; without one the settings know what is missed. */
void nxc_model_config_read(nxc_arena *arena, const nxc_request *request, nxc_compiled *compiled);

#endif
