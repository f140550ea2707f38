/* SPDX-License-Identifier: Apache-2.0 */
/* What nxrun cannot execute of a setting, whatever the dialect: the `refused_when` of schema/settings.yaml,
 * which may name the setting's own value and other settings. The one place that knows; validate and plan ask
 * here. */
#ifndef NXC_REFUSAL_H
#define NXC_REFUSAL_H

#include "compiler/settings/settings.h"

/* False where the value, or what the answer depends on, is unknown. */
bool nxc_setting_is_refused(const nxc_settings *settings, nxc_setting_id id);

#endif
