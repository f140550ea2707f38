/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions. One queue runs everything in order, so every stream is that queue, and what an
 * event would wait for is done. */
#include "kernels/opencl/opencl.h"

#include "kernels/moe.h"

#include <stdlib.h>

static nxk_stream *stream_get(nxk_device *device, uint32_t index) {
  (void)index;
  return (nxk_stream *)(void *)device;
}

static nxk_event *event_record(nxk_device *device, nxk_stream *stream, uint32_t index) {
  (void)stream;
  (void)index;
  return (nxk_event *)(void *)device;
}

static void event_wait(nxk_device *device, nxk_stream *stream, nxk_event *event) {
  (void)device;
  (void)stream;
  (void)event;
}

/* What kernels had to say about data that the plan has no room for. */
static void read_status(nxk_device *device) {
  const nxk_frame *frame = device->reports;
  cl_int most = 0;
  device->reports = NULL;
  ocl_check(clEnqueueReadBuffer(device->queue, device->status, CL_TRUE, 0, sizeof most, &most, 0, NULL, NULL),
            "status");
  if (most > 0)
    nxk_fail(frame, NXK_MOE_FULL, (long long)most, (long long)device->rows,
             (double)most / (double)device->rows);
}

static void synchronize(nxk_device *device) {
  ocl_check(clFinish(device->queue), "kernels");
  if (device->reports) read_status(device);
}

static uint64_t workspace_bytes(const nxk_device *device) {
  return device->scratch_bytes;
}

static uint64_t memory_bytes(const nxk_device *device) {
  return device->memory_bytes;
}

/* Sources of a sum as operands of a pseudo-operator: x is the first input, y the output. */
static void run_sum(nxk_device *device, nxk_kernel *kernel, uint32_t launch, const void *x, void *y) {
  const ocl_arena *arenas[2] = {ocl_arena_of(device, x), ocl_arena_of(device, y)};
  const void *addresses[2] = {x, y};
  size_t local = device->local, global = kernel->groups[launch] * local;
  cl_kernel own = kernel->kernels[launch];
  for (cl_uint i = 0; i < 2; i++) {
    kernel->words[kernel->first_at + i] = (const uint8_t *)addresses[i] - arenas[i]->base;
    ocl_check(clSetKernelArg(own, i, sizeof arenas[i]->buffer, &arenas[i]->buffer), "sum");
  }
  ocl_check(clSetKernelArg(own, 2, sizeof device->scratch, &device->scratch), "sum");
  ocl_check(clSetKernelArg(own, 3, sizeof device->status, &device->status), "sum");
  ocl_check(clSetKernelArg(own, 4, kernel->n_words * sizeof *kernel->words, kernel->words), "sum");
  ocl_check(clEnqueueNDRangeKernel(device->queue, own, 1, NULL, &global, &local, 0, NULL, NULL), "sum");
}

static void device_sum(nxk_device *device, nxk_stream *stream, void *y, nx_dtype y_dtype,
                       const void *const *x, uint32_t n_sources, nx_dtype x_dtype, uint64_t n_elements) {
  (void)stream;
  const nxk_operator operator= {
      .op = NX_OP_cast,
      .n_in = 1,
      .n_out = 1,
      .args = {{.dtype = x_dtype, .n_dims = 1, .dims = {(int64_t)n_elements, 1, 1, 1}},
               {.dtype = y_dtype, .n_dims = 1, .dims = {(int64_t)n_elements, 1, 1, 1}}}};
  nxk_fault fault = {""};
  nxk_kernel *kernel;
  enum { FIRST, NEXT, LAST };
  if (!ocl_bind_row(device, &ocl_sum_row, &operator, & kernel, &fault)) {
    fprintf(stderr, "opencl: sum: %s\n", fault.text);
    abort();
  }
  for (uint32_t source = 0; source < n_sources; source++)
    run_sum(device, kernel, source ? NEXT : FIRST, x[source], y);
  run_sum(device, kernel, LAST, x[0], y);
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
    .sum = device_sum,
    .stream = stream_get,
    .event_record = event_record,
    .event_wait = event_wait,
    .synchronize = synchronize,
    .workspace_bytes = workspace_bytes,
    .memory_bytes = memory_bytes,
};
