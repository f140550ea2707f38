/* SPDX-License-Identifier: Apache-2.0 */
/* What must happen before MPI and OpenMP start, from what the launcher says in the environment. */
#ifndef NXR_LAUNCH_H
#define NXR_LAUNCH_H

#include "schema/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* How many processes the launcher has started; 1 where nothing says it. */
uint32_t nxr_launch_ranks(void);
/* Ranks of this host, as the launcher tells; 1 where nothing does. */
uint32_t nxr_launch_local_ranks(void);
/* Whether what has started this rank is there no longer: nobody would hear of its end, or end it. */
bool nxr_launch_is_orphan(void);
/* Says what of this host's limits MPI fails at without telling its user. */
void nxr_launch_look_around(void);
/* Between hosts without RDMA: from which size on MPI's messages are announced before they are sent, unless
 * UCX_RNDV_THRESH says it. Of one rank alone: none, unless UCX_TLS says by what. */
void nxr_launch_choose_messages(void);
/* The largest message that is not announced, or more. */
uint64_t nxr_launch_unannounced_bytes(void);
/* The OpenMP library reads how its threads wait when it is loaded, and by default they spin for milliseconds,
 * which ruins a run as soon as another process wants a core. So a run of several threads starts itself again,
 * once, with threads that spin briefly and then sleep, or sleep at once where they are more than the
 * cores. */
void nxr_launch_prepare(const nx_run *run, char **argv);

#endif
