/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `far`, for tests: ref behind addresses that the host cannot touch.
 *
 * An arena's address is that of pages without access; its bytes lie elsewhere, and only what goes through the
 * table of functions is led there. So a host that reads or writes an arena as if it were its own memory ends
 * with a fault, as on an accelerator, and an address of the host that is passed for one of the device is
 * noticed. */
#include "kernels/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct far_arena {
  uint8_t *far, *near; /* NULL: not open */
  uint64_t n_bytes;
} far_arena;

struct nxk_device {
  nxk_device *ref;
  far_arena arenas[NX_N_ARENAS];
  const void **sources; /* room for a sum */
  uint32_t n_sources;
};

/* Where the bytes of an address of the device lie. */
static void *near_of(const nxk_device *device, const void *address) {
  const uint8_t *at = address;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const far_arena *arena = &device->arenas[kind];
    if (arena->far && at >= arena->far && at < arena->far + arena->n_bytes)
      return arena->near + (at - arena->far);
  }
  fprintf(stderr, "far: %p is no address of an arena\n", address);
  abort();
}

static bool device_open(const nxk_device_options *options, nxk_device **device, nxk_fault *fault) {
  *device = calloc(1, sizeof **device);
  if (*device) return nxk_ref.open(options, &(*device)->ref, fault);
  snprintf(fault->text, sizeof fault->text, "far: out of memory");
  return false;
}

static void device_close(nxk_device *device) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    if (device->arenas[kind].far) munmap(device->arenas[kind].far, device->arenas[kind].n_bytes);
  if (device->ref) nxk_ref.close(device->ref);
  free(device->sources);
  free(device);
}

static bool arena_open(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                       nxk_fault *fault) {
  far_arena *arena = &device->arenas[kind];
  void *near;
  if (shared) {
    snprintf(fault->text, sizeof fault->text, "far: no memory of the host can be an arena");
    return false;
  }
  if (!nxk_ref.arena_open(device->ref, kind, n_bytes, NULL, &near, fault)) return false;
  void *pages = mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    snprintf(fault->text, sizeof fault->text, "far: %s", strerror(errno));
    return false;
  }
  *arena = (far_arena){.far = pages, .near = near, .n_bytes = n_bytes};
  *base = pages;
  return true;
}

static void copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes) {
  if (n_bytes) memcpy(near_of(device, destination), host, n_bytes);
}

static void copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes) {
  if (n_bytes) memcpy(host, near_of(device, source), n_bytes);
}

static bool kernel_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel ** kernel,
                        nxk_fault *fault) {
  return nxk_ref.bind(device->ref, operator, kernel, fault);
}

static void kernel_enqueue(nxk_device *device, nxk_stream *stream, nxk_kernel *kernel,
                           const nxk_frame *frame) {
  nxk_frame near = *frame;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const far_arena *arena = &device->arenas[kind];
    if (frame->base[kind]) near.base[kind] = arena->near + ((uint8_t *)frame->base[kind] - arena->far);
  }
  nxk_ref.enqueue(device->ref, stream, kernel, &near);
}

static void device_sum(nxk_device *device, nxk_stream *stream, void *y, nx_dtype y_dtype,
                       const void *const *x, uint32_t n_sources, nx_dtype x_dtype, uint64_t n_elements) {
  if (n_sources > device->n_sources) {
    free(device->sources);
    device->sources = calloc(n_sources, sizeof *device->sources);
    device->n_sources = n_sources;
    if (!device->sources) abort();
  }
  for (uint32_t i = 0; i < n_sources; i++) device->sources[i] = near_of(device, x[i]);
  nxk_ref.sum(device->ref, stream, near_of(device, y), y_dtype, device->sources, n_sources, x_dtype,
              n_elements);
}

static nxk_stream *stream_get(nxk_device *device, uint32_t index) {
  return nxk_ref.stream(device->ref, index);
}

static nxk_event *event_record(nxk_device *device, nxk_stream *stream, uint32_t index) {
  return nxk_ref.event_record(device->ref, stream, index);
}

static void event_wait(nxk_device *device, nxk_stream *stream, nxk_event *event) {
  nxk_ref.event_wait(device->ref, stream, event);
}

static void synchronize(nxk_device *device) {
  nxk_ref.synchronize(device->ref);
}

static uint64_t workspace_bytes(const nxk_device *device) {
  return nxk_ref.workspace_bytes(device->ref);
}

const nxk_backend nxk_far = {
    .name = "far",
    .host_addressable = false,
    .open = device_open,
    .close = device_close,
    .arena_open = arena_open,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .bind = kernel_bind,
    .enqueue = kernel_enqueue,
    .sum = device_sum,
    .stream = stream_get,
    .event_record = event_record,
    .event_wait = event_wait,
    .synchronize = synchronize,
    .workspace_bytes = workspace_bytes,
};
