/* SPDX-License-Identifier: Apache-2.0 */
/* How a process leaves MPI when the run is over. */
#ifndef NXR_WORLD_END_H
#define NXR_WORLD_END_H

#include <stdint.h>

/* All ranks have met, and nothing is left to send. */
void nxr_end_mpi(uint32_t n_hosts);

#endif
