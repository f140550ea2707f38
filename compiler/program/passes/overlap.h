/* SPDX-License-Identifier: Apache-2.0 */
/* Proves, from a plan's bytes, that no value is overwritten while it is still needed.
 *
 * The schedule is replayed with its operators expanded, and for every byte of an arena it is remembered which
 * value wrote it last: an operator may read a value only where that is the value itself, and may write
 * nothing that a started collective still reads or writes. Parameters, gradients and optimizer state, which
 * live as long as the run, must be disjoint. It knows nothing of how the addresses were chosen. */
#ifndef NXC_OVERLAP_H
#define NXC_OVERLAP_H

#include "compiler/arena.h"
#include "schema/plan.h"

bool nxc_overlap_check(const nx_plan *plan, nxc_arena *arena, nx_fault *fault);

#endif
