/* SPDX-License-Identifier: Apache-2.0 */
/* Another driver than there is, for LD_PRELOAD. Its device is lost on one rank of a run: after NX_LOST_AFTER
 * kernels the rank NX_LOST_RANK (as mpiexec numbers it) is told that it is out of resources. With NX_SAYS_GPU
 * processors say that they are GPUs. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int info(cl_device_id, cl_device_info, size_t, void *, size_t *);
typedef cl_int enqueue(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                       cl_uint, const cl_event *, cl_event *);

static int is_lost(void) {
  static long n_kernels;
  const char *rank = getenv("PMI_RANK"), *lost = getenv("NX_LOST_RANK"), *after = getenv("NX_LOST_AFTER");
  return rank && lost && after && strcmp(rank, lost) == 0 && ++n_kernels > atol(after);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *n_bytes) {
  static info *own;
  if (!own) {
    void *found = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    memcpy(&own, &found, sizeof own);
  }
  cl_int error = own(device, what, room, value, n_bytes);
  if (what == CL_DEVICE_TYPE && error == CL_SUCCESS && value && getenv("NX_SAYS_GPU"))
    *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
  return error;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint n_waits,
                              const cl_event *waits, cl_event *event) {
  static enqueue *own;
  if (is_lost()) return CL_OUT_OF_RESOURCES;
  if (!own) {
    void *found = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    memcpy(&own, &found, sizeof own);
  }
  return own(queue, kernel, n_dims, offset, global, local, n_waits, waits, event);
}
