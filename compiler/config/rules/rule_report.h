/* SPDX-License-Identifier: Apache-2.0 */
/* The finding of a rule that is broken: where, with what it read, and with its remedy in words and as data. */
#ifndef NXC_CONFIG_RULE_REPORT_H
#define NXC_CONFIG_RULE_REPORT_H

#include "compiler/config/rules/rules.h"

void nxc_rule_report(nxc_rule_run *run, const nxc_rule_row *rule, const nxc_expression *demand,
                     const nxc_expression *when);

#endif
