/* SPDX-License-Identifier: Apache-2.0 */
/* What must happen before MPI and OpenMP start, from what the launcher says in the environment. */
#ifndef NXR_LAUNCH_H
#define NXR_LAUNCH_H

#include "schema/plan.h"

#include <stdbool.h>

/* Whether this process is the one of its run that prints what all would. */
bool nxr_launch_speaks(void);
/* The OpenMP library reads how its threads wait when it is loaded, and by default they spin, which ruins a run whose
 * threads are more than the cores. So there this program starts itself again, once, with waiting set to passive. */
void nxr_launch_prepare(const nx_run *run, char **argv);

#endif
