/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers between neighbouring chunks of one stage: a copy from one slot to another of the rank's own
 * memory, made when the later of its two ends is started. As of other transfers, the k-th start of one end
 * meets the k-th of the other. */
#ifndef NXR_NEIGHBOURS_H
#define NXR_NEIGHBOURS_H

#include "kernels/backend.h"
#include "runtime/files/fault.h"
#include "schema/plan.h"

typedef struct nxr_neighbours nxr_neighbours;

/* NULL in *out where the stage has no such chunks. */
bool nxr_neighbours_open(const nx_plan *plan, uint32_t stage, const nxk_backend *backend, nxk_device *device,
                         nxr_neighbours **out, nxr_fault *fault);
void nxr_neighbours_close(nxr_neighbours *neighbours);
/* Whether the other end of the port is a chunk of the same stage. */
bool nxr_neighbours_are(const nx_plan *plan, uint32_t chunk, nx_port port);
/* Starts the end at these bytes. */
void nxr_neighbours_start(nxr_neighbours *neighbours, uint32_t chunk, nx_port port, void *bytes);

#endif
