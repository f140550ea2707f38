/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of OpenCL as people read them. */
#include "kernels/opencl/opencl.h"

#include <stdio.h>

static const struct {
  cl_int error;
  const char *name;
} errors[] = {
    {CL_DEVICE_NOT_AVAILABLE, "the device is not available: another process may have it for itself"},
    {CL_COMPILER_NOT_AVAILABLE, "the driver has no compiler: install the whole OpenCL package of the vendor"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE,
     "the device has no memory left: other processes may hold some, and a smaller batch.micro needs less"},
    {CL_OUT_OF_RESOURCES, "the device is out of resources, or was lost: the kernel log (dmesg) says more"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
     "what ran before it failed: the kernel log (dmesg) says more"},
    {CL_OUT_OF_HOST_MEMORY, "the host has no memory left"},
    {CL_INVALID_BUFFER_SIZE, "the device has no buffers of that size"},
    {-1001, "there is no OpenCL platform"},
};

static const char *error_name(cl_int error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) return errors[i].name;
  return "OpenCL error";
}

bool ocl_fault(nxk_fault *fault, const char *what, cl_int error) {
  snprintf(fault->text, sizeof fault->text, "%s: %s (%d)", what, error_name(error), error);
  return false;
}

void ocl_check(const nxk_device *device, cl_int error, const char *what) {
  const nxk_frame frame = {.alarm = device->alarm};
  if (error != CL_SUCCESS)
    nxk_fail(&frame, "%s: %s: %s (%d)", device->name, what, error_name(error), error);
}
