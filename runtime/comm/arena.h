/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's arenas, mapped once: exactly the bytes of the rank's stage, all touched before the first step.
 *
 * Arenas flagged NX_ARENA_SHARED lie in a window that all ranks of the host map, when there are several and
 * the backend's memory is the host's; every rank's part of the window is a *segment*: the control bytes
 * (flags of runtime/comm/comm.h), then its shared arenas. All others are the backend's own memory. A rank
 * that is alone has addresses for all of them and memory for none: nothing runs there. */
#ifndef NXR_ARENA_H
#define NXR_ARENA_H

#include "kernels/backend.h"
#include "runtime/world/world.h"

typedef struct nxr_arenas {
  void *base[NX_N_ARENAS]; /* NULL where the plan has no such arena */
  uint64_t n_bytes[NX_N_ARENAS];
  bool shared[NX_N_ARENAS];
  void *control;           /* this rank's, zeroed */
  uint64_t control_bytes;
  uint64_t segment_bytes;  /* 0 without a window */
  uint8_t **segments;      /* [local_size], by local rank; NULL without a window */
  uint8_t *own_segment;
  bool reserved;           /* they are addresses alone */
} nxr_arenas;

bool nxr_arenas_open(nxr_world *world, const nx_plan *plan, const nxk_backend *backend, nxk_device *device,
                     uint64_t control_bytes, bool use_window, nxr_arenas *arenas, nxr_fault *fault);
void nxr_arenas_close(nxr_arenas *arenas);
uint64_t nxr_arenas_bytes(const nxr_arenas *arenas);

/* Where a chunk's part of each arena begins, for a slot. */
void nxr_arenas_frame(const nxr_arenas *arenas, const nx_plan *plan, uint32_t chunk, uint32_t slot,
                      void *base[NX_N_ARENAS]);

#endif
