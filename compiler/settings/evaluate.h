/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over settings alone. */
#ifndef NXC_SETTINGS_EVALUATE_H
#define NXC_SETTINGS_EVALUATE_H

#include "compiler/settings/settings.h"

/* `value` is what that name means in the expression; may be NULL. The result is NULL where it is not
 * known. */
const nxc_value *nxc_settings_evaluate(const nxc_settings *settings, const nxc_value *value,
                                       const char *expression);

#endif
