/* SPDX-License-Identifier: Apache-2.0 */
/* Where all ranks wait for each other outside of steps, so that no wait is for ever and the one who is late
 * is named.
 *
 * Every rank says to rank 0 that it has come, and goes on when rank 0 has heard all. A rank that works on
 * before it comes (it writes a checkpoint, say) gives signs of life meanwhile: nxr_world_beat. Who waits
 * hears from rank 0 that it is not forgotten. So each wait ends the deadline after the last sign of the rank
 * that it is for: rank 0 names the rank that is missing, the others name rank 0. */
#ifndef NXR_WORLD_MEET_H
#define NXR_WORLD_MEET_H

#include "runtime/world/world.h"

#include <mpi.h>

bool nxr_meet_open(nxr_world *world, nxr_fault *fault);
void nxr_meet_close(void);
/* Returns when all ranks have called it. */
void nxr_meet(nxr_world *world);
/* The same, with bytes: those of every rank go to rank 0, are combined there in the order of the ranks (`all`
 * with what `one` has; piece by piece, where they are many), and what becomes of them is everybody's. */
typedef void nxr_combine(void *all, const void *one, size_t n_bytes);
void nxr_meet_exchange(nxr_world *world, void *bytes, size_t n_bytes, nxr_combine *combine);
/* Waits for a collective call of MPI that all ranks of a host make, right after they have met. */
void nxr_meet_complete(const nxr_world *world, MPI_Request *request);

#endif
