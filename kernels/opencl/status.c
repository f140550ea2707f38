/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels report of a step. */
#include "kernels/moe.h"
#include "kernels/opencl/opencl.h"

void ocl_read_status(nxk_device *device) {
  const nxk_frame frame = {.alarm = device->alarm};
  cl_int most = 0;
  if (!device->reports) return;
  device->reports = false;
  ocl_check(device,
            clEnqueueReadBuffer(device->queues[NXK_KERNELS], device->status, CL_TRUE, 0, sizeof most, &most,
                                0, NULL, NULL),
            "status");
  if (most > 0)
    nxk_fail(&frame, NXK_MOE_FULL, (long long)most, (long long)device->rows,
             (double)most / (double)device->rows);
}
