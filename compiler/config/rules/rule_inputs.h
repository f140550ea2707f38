/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule asks about: its expressions over a run, and what their names are, and are called in the user's
 * dialect. */
#ifndef NXC_CONFIG_RULE_INPUTS_H
#define NXC_CONFIG_RULE_INPUTS_H

#include "compiler/config/rules/rules.h"

const nxc_expression *nxc_rule_parse(nxc_rule_run *run, const char *text);
/* NULL: unknown, or it failed (*error). */
const nxc_value *nxc_rule_evaluate(nxc_rule_run *run, const nxc_expression *expression, const char **error);
bool nxc_rule_applies(const nxc_rule_run *run, const nxc_rule_row *rule);
/* The option behind a name; NULL: it is none. */
const nxc_bound *nxc_rule_bound(const nxc_rule_run *run, const nxc_name *name);
/* Where an option that is not given would stand; NULL: its section is not there. */
const nxc_node *nxc_rule_section(nxc_rule_run *run, const nxc_bound *bound);
const char *nxc_rule_name(const nxc_rule_run *run, const nxc_name *name);
/* NULL: unknown. */
const nxc_value *nxc_rule_value(nxc_rule_run *run, const nxc_name *name);
/* The names of both expressions, those of the demand first. */
size_t nxc_rule_inputs(nxc_rule_run *run, const nxc_expression *demand, const nxc_expression *when,
                       nxc_name **names);
/* An option that is not given, and has no default, took no part; nor did what the system does not have. */
bool nxc_rule_is_said(const nxc_rule_run *run, const nxc_name *name);
/* An input whose being unknown hides the outcome. */
bool nxc_rule_is_missing(nxc_rule_run *run, const nxc_name *name);
/* What a violation weighs here: a code that grew out of the system may have its own mind about what that
 * demands. */
nxc_severity nxc_rule_severity(const nxc_rule_run *run, const nxc_rule_row *rule);

#endif
