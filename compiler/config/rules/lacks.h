/* SPDX-License-Identifier: Apache-2.0 */
/* Options that a system needs although it has defaults for them elsewhere: what a rule finds lacking is
 * added, with what `convert` would write. */
#ifndef NXC_CONFIG_LACKS_H
#define NXC_CONFIG_LACKS_H

#include "compiler/config/rules/rules.h"

/* None where the rule is about something else, or the value of one of them is unknown. */
nxc_repair nxc_rule_repair_lacks(nxc_rule_run *run, const nxc_rule_row *rule);

#endif
