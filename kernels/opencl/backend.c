/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions. */
#include "kernels/opencl/opencl.h"

static uint64_t workspace_bytes(const nxk_device *device) {
  return device->scratch.n_bytes + device->product_room.n_bytes;
}

static uint64_t memory_bytes(const nxk_device *device) {
  return device->memory_bytes;
}

static const char *device_name(const nxk_device *device) {
  return device->name;
}

const nxk_backend nxk_opencl = {
    .name = "opencl",
    .host_addressable = false,
    .devices = ocl_devices,
    .open = ocl_device_open,
    .close = ocl_device_close,
    .arena_open = ocl_arena_open,
    .copy_in = ocl_copy_in,
    .copy_out = ocl_copy_out,
    .bind = ocl_bind,
    .enqueue = ocl_enqueue,
    .workspace_bytes = workspace_bytes,
    .synchronize = ocl_synchronize,
    .host_open = ocl_host_open,
    .event_open = ocl_event_open,
    .start_copy_in = ocl_start_copy_in,
    .start_copy_out = ocl_start_copy_out,
    .event_record = ocl_event_record,
    .event_wait = ocl_event_wait,
    .event_done = ocl_event_done,
    .memory_bytes = memory_bytes,
    .device_name = device_name,
    .record_open = ocl_record_open,
    .record = ocl_record,
    .recorded = ocl_recorded,
};
