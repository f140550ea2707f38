/* SPDX-License-Identifier: Apache-2.0 */
/* What lives as long as the run (parameters, gradients, the optimizer's state) lies in places of its own: the
 * other half of what overlap.h promises, of which no replay is needed. */
#ifndef NXC_STANDING_H
#define NXC_STANDING_H

#include "compiler/arena.h"
#include "schema/plan.h"

/* Values of this arena are planned for one micro-batch; those of all others live as long as the run. */
bool nxc_is_passing(uint32_t arena);
bool nxc_standing_check(const nx_plan *plan, nxc_arena *arena, nx_fault *fault);

#endif
