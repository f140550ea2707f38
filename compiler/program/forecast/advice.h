/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a rank fits into the memory that there is, and what would make it smaller.
 *
 * What a rank needs is exact: the plan's arenas, and its ceiling of workspace. Advice is exact too: the same
 * settings with one of them changed are compiled to a plan in memory, and its bytes are told. A change with
 * which there is no plan is no advice. */
#ifndef NXC_ADVICE_H
#define NXC_ADVICE_H

#include "compiler/program/program.h"

/* Arenas, all slots, and workspace; of the stage that needs most. */
uint64_t nxc_memory_need(const nx_plan *plan);
/* False, with a finding that tells what is largest and what would help, where a rank does not fit. `source`
 * says where the limit stands: "--memory", the name of a machine. */
bool nxc_memory_check(const nxc_settings *settings, const nx_plan *plan, uint64_t limit_bytes,
                      const char *source, nxc_arena *arena, nxc_sink *sink);
/* Why the memory cannot be judged, as a note: there is no plan, and `obstacles` says why. Returns its
 * text. */
const char *nxc_memory_skip(const nxc_sink *obstacles, nxc_arena *arena, nxc_sink *sink);

#endif
