/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `far`, for tests: ref behind addresses that the host cannot touch.
 *
 * An arena's address is that of pages without access; its bytes lie elsewhere, and only what goes through the
 * table of functions is led there. So a host that reads or writes an arena as if it were its own memory ends
 * with a fault, as on an accelerator, and an address of the host that is passed for one of the device is
 * noticed. Kernels run at once; copies that are only started run as late as events allow, so that whoever
 * does not wait for one finds what stood there before. */
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

enum { POLLS_TO_RUN = 3 /* after so many looks at its event a copy runs */ };

struct nxk_event {
  nxk_event *next;
  nxk_queue queue;
  uint32_t pending, polls;
};

/* A copy, or what an event stands behind. */
typedef struct far_command {
  void *to;
  const void *from;
  uint64_t n_bytes;
  nxk_event *event;
} far_command;

typedef struct far_queue {
  far_command *commands;
  size_t first, n, room;
} far_queue;

typedef struct far_block {
  struct far_block *next;
  _Alignas(64) uint8_t bytes[];
} far_block;

struct nxk_device {
  nxk_device *ref;
  far_block *blocks;
  far_arena arenas[NX_N_ARENAS];
  far_queue queues[NXK_N_QUEUES];
  nxk_event *events;
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
  for (int queue = 0; queue < NXK_N_QUEUES; queue++) free(device->queues[queue].commands);
  while (device->blocks) {
    far_block *block = device->blocks;
    device->blocks = block->next;
    free(block);
  }
  while (device->events) {
    nxk_event *event = device->events;
    device->events = event->next;
    free(event);
  }
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

static void kernel_enqueue(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame) {
  nxk_frame near = *frame;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const far_arena *arena = &device->arenas[kind];
    if (frame->base[kind]) near.base[kind] = arena->near + ((uint8_t *)frame->base[kind] - arena->far);
  }
  nxk_ref.enqueue(device->ref, kernel, &near);
}

/* ---- what runs late ---- */

/* Runs what is in a queue, up to the command with an event; NULL: all of it. */
static void run_queue(nxk_device *device, nxk_queue queue, const nxk_event *event) {
  far_queue *own = &device->queues[queue];
  while (own->first < own->n) {
    const far_command *command = &own->commands[own->first++];
    if (command->n_bytes) memcpy(command->to, command->from, command->n_bytes);
    if (!command->event) continue;
    command->event->pending--;
    if (command->event == event && event->pending == 0) return;
  }
  own->first = own->n = 0;
}

static void add_command(nxk_device *device, nxk_queue queue, const far_command *command) {
  far_queue *own = &device->queues[queue];
  if (own->n == own->room) {
    own->room = 2 * own->room + 64;
    own->commands = realloc(own->commands, own->room * sizeof *own->commands);
    if (!own->commands) abort();
  }
  own->commands[own->n++] = *command;
}

static void *host_open(nxk_device *device, uint64_t n_bytes, nxk_fault *fault) {
  far_block *block = aligned_alloc(64, sizeof *block + (n_bytes + 63) / 64 * 64);
  if (!block) {
    snprintf(fault->text, sizeof fault->text, "far: out of memory");
    return NULL;
  }
  memset(block, 0, sizeof *block + n_bytes);
  block->next = device->blocks;
  device->blocks = block;
  return block->bytes;
}

static nxk_event *event_open(nxk_device *device, nxk_fault *fault) {
  nxk_event *event = calloc(1, sizeof *event);
  if (!event) {
    snprintf(fault->text, sizeof fault->text, "far: out of memory");
    return NULL;
  }
  event->next = device->events;
  return device->events = event;
}

static void start_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes,
                          uint32_t label) {
  (void)label;
  if (n_bytes)
    add_command(device, NXK_COPIES_IN, &(far_command){near_of(device, destination), host, n_bytes, NULL});
}

static void start_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes,
                           uint32_t label) {
  (void)label;
  if (n_bytes)
    add_command(device, NXK_COPIES_OUT, &(far_command){host, near_of(device, source), n_bytes, NULL});
}

/* Kernels have run already. */
static void event_record(nxk_device *device, nxk_queue queue, nxk_event *event) {
  if (queue == NXK_KERNELS) return;
  event->queue = queue;
  event->polls = 0;
  event->pending++;
  add_command(device, queue, &(far_command){NULL, NULL, 0, event});
}

/* Copies wait for kernels alone, and those have run. */
static void event_wait(nxk_device *device, nxk_queue queue, nxk_event *event) {
  if (queue == NXK_KERNELS && event->pending) run_queue(device, event->queue, event);
}

static bool event_done(nxk_device *device, nxk_event *event) {
  if (event->pending && ++event->polls > POLLS_TO_RUN) run_queue(device, event->queue, event);
  return event->pending == 0;
}

static void synchronize(nxk_device *device) {
  run_queue(device, NXK_COPIES_OUT, NULL);
  run_queue(device, NXK_COPIES_IN, NULL);
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
    .workspace_bytes = workspace_bytes,
    .synchronize = synchronize,
    .host_open = host_open,
    .event_open = event_open,
    .start_copy_in = start_copy_in,
    .start_copy_out = start_copy_out,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_done = event_done,
};
