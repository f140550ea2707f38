/* SPDX-License-Identifier: Apache-2.0 */
/* --dry-run --as RANK/RANKS: one rank of a plan for many is bound on a machine that has none of the others.
 *
 * Its plan is checked and proved, its kernels, collectives and tables are made as in a run; its arenas are
 * addresses without memory, and it meets nobody. So what the process has in memory is what a rank needs
 * beside its arenas, and its time is what a rank needs before data and weights are read, waiting for others
 * left out. */
#ifndef NXR_REHEARSE_H
#define NXR_REHEARSE_H

#include "runtime/step/bind.h"
#include "runtime/train.h"

/* RANK/RANKS */
bool nxr_rehearse_parse(const char *value, nxr_options *options);
/* The exit status. */
int nxr_rehearse(nxr_world *world, const nx_plan *plan, const nxr_options *options);
/* `bind_s` was spent to bind the machine. */
void nxr_rehearse_report(const nxr_machine *machine, const nxr_options *options, double bind_s);

#endif
