/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, scratch, memory of the host, and copies. */
#include "kernels/opencl/opencl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Zeroed, which also makes the driver give the memory now. */
static bool clear(nxk_device *device, cl_mem buffer, uint64_t n_bytes, nxk_fault *fault) {
  const cl_uint zero = 0;
  cl_command_queue queue = device->queues[NXK_KERNELS];
  cl_int error =
      clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, (n_bytes + 3) / 4 * 4, 0, NULL, NULL);
  if (error == CL_SUCCESS) error = clFinish(queue);
  return error == CL_SUCCESS || ocl_fault(fault, "memory", error);
}

/* A driver may give more in one piece than it promises, but not more than the device has: that is memory of
 * the host then. */
static cl_mem buffer_new(nxk_device *device, uint64_t n_bytes, nxk_fault *fault) {
  cl_int error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  cl_mem buffer = NULL;
  if (device->arena_bytes + n_bytes <= device->memory_bytes)
    buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE, (n_bytes + 3) / 4 * 4, NULL, &error);
  if (buffer && clear(device, buffer, n_bytes, fault)) return buffer;
  if (buffer) {
    clReleaseMemObject(buffer);
    return NULL;
  }
  snprintf(fault->text, sizeof fault->text,
           "%s has %llu MiB, %llu promised in one piece, of which %llu are taken (%d)", device->name,
           (unsigned long long)(device->memory_bytes >> 20), (unsigned long long)(device->most_bytes >> 20),
           (unsigned long long)(device->arena_bytes >> 20), error);
  return NULL;
}

bool ocl_arena_open(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                    nxk_fault *fault) {
  if (shared) {
    snprintf(fault->text, sizeof fault->text, "no memory of the host can be an arena of a device");
    return false;
  }
  cl_mem buffer = buffer_new(device, n_bytes, fault);
  if (!buffer) return false;
  void *pages = mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    snprintf(fault->text, sizeof fault->text, "addresses: %s", strerror(errno));
    clReleaseMemObject(buffer);
    return false;
  }
  device->arenas[kind] = (ocl_arena){pages, n_bytes, buffer};
  device->arena_bytes += n_bytes;
  *base = pages;
  return true;
}

void ocl_arenas_close(nxk_device *device) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    ocl_arena *arena = &device->arenas[kind];
    if (!arena->base) continue;
    munmap(arena->base, arena->n_bytes);
    clReleaseMemObject(arena->buffer);
  }
  if (device->scratch.buffer) clReleaseMemObject(device->scratch.buffer);
  if (device->product_room.buffer) clReleaseMemObject(device->product_room.buffer);
  while (device->pinned) {
    ocl_pinned *pinned = device->pinned;
    device->pinned = pinned->next;
    clReleaseMemObject(pinned->buffer);
    free(pinned);
  }
}

static const ocl_arena *arena_of(const nxk_device *device, const void *address) {
  const uint8_t *at = address;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    const ocl_arena *arena = &device->arenas[kind];
    if (arena->base && at >= arena->base && at < arena->base + arena->n_bytes) return arena;
  }
  fprintf(stderr, "opencl: %p is no address of an arena\n", address);
  abort();
}

bool ocl_room_reserve(nxk_device *device, ocl_room *room, uint64_t n_bytes, nxk_fault *fault) {
  if (n_bytes <= room->n_bytes) return true;
  uint64_t all = device->scratch.n_bytes + device->product_room.n_bytes - room->n_bytes + n_bytes;
  if (device->workspace_limit && all > device->workspace_limit) {
    snprintf(fault->text, sizeof fault->text, "needs %llu bytes of workspace, the limit is %llu",
             (unsigned long long)all, (unsigned long long)device->workspace_limit);
    return false;
  }
  cl_mem larger = buffer_new(device, n_bytes, fault);
  if (!larger) return false;
  if (room->buffer) clReleaseMemObject(room->buffer);
  device->arena_bytes += n_bytes - room->n_bytes;
  *room = (ocl_room){n_bytes, larger};
  return true;
}

/* A buffer that the driver keeps on the host and that stays mapped. */
void *ocl_host_open(nxk_device *device, uint64_t n_bytes, nxk_fault *fault) {
  cl_int error = CL_OUT_OF_HOST_MEMORY;
  ocl_pinned *pinned = calloc(1, sizeof *pinned);
  if (pinned)
    pinned->buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                    n_bytes ? n_bytes : 1, NULL, &error);
  if (error == CL_SUCCESS)
    pinned->host = clEnqueueMapBuffer(device->queues[NXK_COPIES_IN], pinned->buffer, CL_TRUE,
                                      CL_MAP_READ | CL_MAP_WRITE, 0, n_bytes ? n_bytes : 1, 0, NULL, NULL,
                                      &error);
  if (error != CL_SUCCESS) {
    if (pinned && pinned->buffer) clReleaseMemObject(pinned->buffer);
    free(pinned);
    ocl_fault(fault, "memory of the host", error);
    return NULL;
  }
  memset(pinned->host, 0, n_bytes);
  pinned->next = device->pinned;
  device->pinned = pinned;
  return pinned->host;
}

static void write(nxk_device *device, nxk_queue queue, void *destination, const void *host, uint64_t n_bytes,
                  bool waits, cl_event *event) {
  const ocl_arena *arena = arena_of(device, destination);
  size_t at = (size_t)((uint8_t *)destination - arena->base);
  ocl_check(device,
            clEnqueueWriteBuffer(device->queues[queue], arena->buffer, waits, at, n_bytes, host, 0, NULL,
                                 event),
            "copy to the device");
}

static void read(nxk_device *device, nxk_queue queue, void *host, const void *source, uint64_t n_bytes,
                 bool waits, cl_event *event) {
  const ocl_arena *arena = arena_of(device, source);
  size_t at = (size_t)((const uint8_t *)source - arena->base);
  ocl_check(device,
            clEnqueueReadBuffer(device->queues[queue], arena->buffer, waits, at, n_bytes, host, 0, NULL,
                                event),
            "copy from the device");
}

void ocl_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes) {
  if (n_bytes) write(device, NXK_KERNELS, destination, host, n_bytes, true, NULL);
}

void ocl_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes) {
  if (n_bytes) read(device, NXK_KERNELS, host, source, n_bytes, true, NULL);
}

void ocl_start_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes,
                       uint32_t label) {
  if (n_bytes == 0) return;
  cl_event event;
  ocl_command *command = ocl_command_begin(device, NXK_COPIES_IN, label, n_bytes);
  write(device, NXK_COPIES_IN, destination, host, n_bytes, false, command ? &event : NULL);
  if (command) ocl_command_add(command, event);
}

void ocl_start_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes,
                        uint32_t label) {
  if (n_bytes == 0) return;
  cl_event event;
  ocl_command *command = ocl_command_begin(device, NXK_COPIES_OUT, label, n_bytes);
  read(device, NXK_COPIES_OUT, host, source, n_bytes, false, command ? &event : NULL);
  if (command) ocl_command_add(command, event);
}
