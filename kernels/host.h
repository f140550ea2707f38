/* SPDX-License-Identifier: Apache-2.0 */
/* What backends whose arenas are host memory share: arenas, copies, streams that run at once, the CPU's modes.
 *
 * One arena per kind and device. nxk_host owns the memory it maps; shared windows belong to whoever gave them. */
#ifndef NXK_HOST_H
#define NXK_HOST_H

#include "kernels/backend.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct nxk_host_arena {
  void *base; /* NULL: not open */
  uint64_t n_bytes;
  bool owned;
} nxk_host_arena;

typedef struct nxk_host {
  nxk_host_arena arenas[NX_N_ARENAS];
} nxk_host;

bool nxk_host_arena_open(nxk_host *host, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                         nxk_fault *fault);
void nxk_host_close(nxk_host *host);
/* Denormal inputs and results are 0, in the calling thread. */
void nxk_host_flush_denormals(void);

/* The members of nxk_backend that are the same for every host backend. */
void nxk_host_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes);
void nxk_host_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes);
nxk_stream *nxk_host_stream(nxk_device *device, uint32_t index);
nxk_event *nxk_host_event_record(nxk_device *device, nxk_stream *stream, uint32_t index);
void nxk_host_event_wait(nxk_device *device, nxk_stream *stream, nxk_event *event);
void nxk_host_synchronize(nxk_device *device);

#endif
