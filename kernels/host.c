/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/host.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

bool nxk_host_arena_open(nxk_host *host, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                         nxk_fault *fault) {
  nxk_host_arena *arena = &host->arenas[kind];
  assert(!arena->base);
  void *memory = shared;
  if (!shared) {
    size_t n_mapped = n_bytes ? n_bytes : 1;
    memory = mmap(NULL, n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      snprintf(fault->text, sizeof fault->text, "arena %s: %llu bytes: %s", nx_arena_name(kind),
               (unsigned long long)n_bytes, strerror(errno));
      return false;
    }
  }
  memset(memory, 0, n_bytes); /* the first touch places the pages */
  *arena = (nxk_host_arena){memory, n_bytes, !shared};
  *base = memory;
  return true;
}

void nxk_host_close(nxk_host *host) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    nxk_host_arena *arena = &host->arenas[kind];
    if (arena->owned) munmap(arena->base, arena->n_bytes ? arena->n_bytes : 1);
    *arena = (nxk_host_arena){0};
  }
}

void nxk_host_flush_denormals(void) {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

void nxk_host_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes) {
  (void)device;
  memcpy(destination, host, n_bytes);
}

void nxk_host_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes) {
  (void)device;
  memcpy(host, source, n_bytes);
}

/* Streams run at once, so every handle may be the same one: the device. */
nxk_stream *nxk_host_stream(nxk_device *device, uint32_t index) {
  (void)index;
  return (nxk_stream *)(void *)device;
}

nxk_event *nxk_host_event_record(nxk_device *device, nxk_stream *stream, uint32_t index) {
  (void)stream;
  (void)index;
  return (nxk_event *)(void *)device;
}

void nxk_host_event_wait(nxk_device *device, nxk_stream *stream, nxk_event *event) {
  (void)device;
  (void)stream;
  (void)event;
}

void nxk_host_synchronize(nxk_device *device) {
  (void)device;
}
