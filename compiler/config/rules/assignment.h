/* SPDX-License-Identifier: Apache-2.0 */
/* A settings record filled without any dialect: settings by their own paths, then the rules of every dialect.
 * The whole way from files is compile_settings.h. */
#ifndef NXC_CONFIG_ASSIGNMENT_H
#define NXC_CONFIG_ASSIGNMENT_H

#include "compiler/settings/settings.h"

/* nxc_settings_set by path and YAML text ("2", "[0.9, 0.95]", "null"). Reports an unknown path. */
bool nxc_settings_set_text(nxc_settings *settings, const char *path, const char *text, nxc_sink *sink);
/* The same, as an assumption; `why` says what it follows from. */
bool nxc_settings_assume(nxc_settings *settings, nxc_setting_id id, const char *text, const char *why,
                         nxc_sink *sink);
/* Runs the deriving rules that belong to every dialect (mesh.data, batch.accumulation, model.head_dim,
 * ...). */
bool nxc_settings_derive(nxc_settings *settings, nxc_sink *sink);

#endif
