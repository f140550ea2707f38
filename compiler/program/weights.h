/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of run.init_from beside those of a plan: by the beginnings of the files, where they are on this
 * machine.
 *
 * nxrun compares them once more when it reads them; what does not fit is better known before a launch. */
#ifndef NXC_WEIGHTS_H
#define NXC_WEIGHTS_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/settings/settings.h"
#include "schema/plan.h"

/* Reports names and shapes that do not fit, and files that are damaged. */
void nxc_weights_check(const nx_plan *plan, const nxc_settings *settings, nxc_severity severity,
                       nxc_sink *sink);

#endif
