/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of collectives, added to a plan that is complete: they depend on the machine, and are no part of the
 * plan's meaning. */
#ifndef NXC_EMIT_ROUTES_H
#define NXC_EMIT_ROUTES_H

#include "compiler/program/emit/emit.h"

void nxc_emit_routes(nxc_plan_bytes *plan, const nx_route *routes, uint32_t n_routes, nxc_arena *arena);

#endif
