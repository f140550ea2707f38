/* SPDX-License-Identifier: Apache-2.0 */
/* Another driver than there is, for LD_PRELOAD:
 *
 *     NX_LOST_RANK=1 NX_LOST_AFTER=300         rank 1 (as mpiexec numbers it; else every process) is told,
 *                                              after 300 calls, that the device is out of resources
 *     NX_LOST_CALL=clFinish NX_LOST_ERROR=-4   by this call, with this error; an event itself ends with it
 *     NX_SAYS_GPU=1                            processors say that they are GPUs
 *     NX_LACKS=fp64                            or groups, parameters, devices: is without, or has too few
 *     NX_PROGRAMS=folder                       the text of each program is put there, PROCESS-NUMBER.cl */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver's own function into `function`, a pointer to one. */
static void find_own(const char *name, void *function) {
  void *found = dlsym(RTLD_NEXT, name);
  memcpy(function, &found, sizeof found);
}

static bool says(const char *variable, const char *value) {
  const char *said = getenv(variable);
  return said && strcmp(said, value) == 0;
}

/* CL_SUCCESS, or what the call ends with. */
static cl_int loss(const char *call) {
  static long n_calls;
  const char *after = getenv("NX_LOST_AFTER"), *lost = getenv("NX_LOST_CALL");
  const char *error = getenv("NX_LOST_ERROR");
  const char *rank = getenv("PMI_RANK"), *lost_rank = getenv("NX_LOST_RANK");
  if (!after || strcmp(lost ? lost : "clEnqueueNDRangeKernel", call) != 0) return CL_SUCCESS;
  if (lost_rank && (!rank || strcmp(rank, lost_rank) != 0)) return CL_SUCCESS;
  if (++n_calls <= atol(after)) return CL_SUCCESS;
  return error ? atoi(error) : CL_OUT_OF_RESOURCES;
}

static void set_number(cl_device_info what, size_t n_bytes, void *value) {
  static const struct {
    const char *name;
    cl_device_info what;
    cl_ulong number;
  } lacks[] = {{"fp64", CL_DEVICE_DOUBLE_FP_CONFIG, 0},
               {"groups", CL_DEVICE_MAX_WORK_GROUP_SIZE, 32},
               {"parameters", CL_DEVICE_MAX_PARAMETER_SIZE, 256}};
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
    if (lacks[i].what == what && says("NX_LACKS", lacks[i].name)) memcpy(value, &lacks[i].number, n_bytes);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *n_bytes) {
  static cl_int (*own)(cl_device_id, cl_device_info, size_t, void *, size_t *);
  if (!own) find_own("clGetDeviceInfo", &own);
  cl_int error = own(device, what, room, value, n_bytes);
  if (error != CL_SUCCESS || !value) return error;
  if (what == CL_DEVICE_TYPE && getenv("NX_SAYS_GPU")) *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
  if (room <= sizeof(cl_ulong)) set_number(what, room, value);
  return error;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices,
                      cl_uint *n_devices) {
  static cl_int (*own)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
  if (says("NX_LACKS", "devices")) return CL_DEVICE_NOT_FOUND;
  if (!own) find_own("clGetDeviceIDs", &own);
  return own(platform, type, room, devices, n_devices);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint n, const char **texts, const size_t *lengths,
                                     cl_int *error) {
  static cl_program (*own)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
  static int number;
  const char *folder = getenv("NX_PROGRAMS");
  char path[4096];
  if (!own) find_own("clCreateProgramWithSource", &own);
  snprintf(path, sizeof path, "%s/%d-%d.cl", folder ? folder : "", (int)getpid(), number++);
  FILE *file = folder && !lengths ? fopen(path, "w") : NULL;
  for (cl_uint i = 0; file && i < n; i++) fputs(texts[i], file);
  if (file) fclose(file);
  return own(context, n, texts, lengths, error);
}

cl_int clBuildProgram(cl_program program, cl_uint n_devices, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
  static cl_int (*own)(cl_program, cl_uint, const cl_device_id *, const char *,
                       void(CL_CALLBACK *)(cl_program, void *), void *);
  cl_int error = loss("clBuildProgram");
  if (!own) find_own("clBuildProgram", &own);
  return error ? error : own(program, n_devices, devices, options, notify, data);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint n_waits,
                              const cl_event *waits, cl_event *event) {
  static cl_int (*own)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                       cl_uint, const cl_event *, cl_event *);
  cl_int error = loss("clEnqueueNDRangeKernel");
  if (!own) find_own("clEnqueueNDRangeKernel", &own);
  return error ? error : own(queue, kernel, n_dims, offset, global, local, n_waits, waits, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool waits, size_t at, size_t n_bytes,
                           void *to, cl_uint n_waits, const cl_event *others, cl_event *event) {
  static cl_int (*own)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *,
                       cl_event *);
  cl_int error = loss("clEnqueueReadBuffer");
  if (!own) find_own("clEnqueueReadBuffer", &own);
  return error ? error : own(queue, buffer, waits, at, n_bytes, to, n_waits, others, event);
}

cl_int clFinish(cl_command_queue queue) {
  static cl_int (*own)(cl_command_queue);
  cl_int error = loss("clFinish");
  if (!own) find_own("clFinish", &own);
  return error ? error : own(queue);
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t room, void *value, size_t *n_bytes) {
  static cl_int (*own)(cl_event, cl_event_info, size_t, void *, size_t *);
  if (!own) find_own("clGetEventInfo", &own);
  cl_int error = own(event, what, room, value, n_bytes);
  cl_int lost = what == CL_EVENT_COMMAND_EXECUTION_STATUS ? loss("clGetEventInfo") : CL_SUCCESS;
  if (error == CL_SUCCESS && lost) *(cl_int *)value = lost;
  return error;
}
