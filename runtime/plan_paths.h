/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that a plan names and a run reads or writes. */
#ifndef NXR_PLAN_PATHS_H
#define NXR_PLAN_PATHS_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

/* Whether all of them lie within the fence (files/fence.h). `directory` is the run's folder, `temporary` that
 * of temporary checkpoints, as they are after the command line; NULL: there is none. */
bool nxr_plan_paths_allowed(const nx_plan *plan, const char *directory, const char *temporary,
                            nxr_fault *fault);

#endif
