/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of `nxcfg plan --html` shows, as the JSON that compiler/render/page.html reads: the whole of
 * `plan --format json`, and what its pictures need. */
#ifndef NXC_COMMANDS_PLAN_PAGE_H
#define NXC_COMMANDS_PLAN_PAGE_H

#include "compiler/commands/plan_report.h"

json_t *nxc_plan_page(const nxc_plan_report *report);

#endif
