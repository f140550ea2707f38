/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by CLBlast, where the build has it (product_clblast.c; else product_none.c).
 * NXRUN_CLBLAST=0 has all made by tiles, =1 ends a run that can not have them from CLBlast; else accelerators
 * ask it.
 *
 * It multiplies in fp32: operands of another type are widened into scratch before, and the product is rounded
 * once, with its bias, behind it (programs/product.cl). Which of its kernels runs depends on the shape alone
 * and none of them adds in an order that chance decides, so the same device gives the same bits. */
#ifndef OPENCL_PRODUCT_H
#define OPENCL_PRODUCT_H

#include "kernels/opencl/opencl.h"

/* The row of an operator that CLBlast multiplies, after what it needs was built and reserved; NULL: by tiles,
 * as where the run's workspace has no room for it, or not at all where there is a fault. */
const ocl_row *ocl_product_row(nxk_device *device, const nxk_operator *operator, nxk_fault * fault);
/* A launch over OCL_LIBRARY. */
void ocl_product(nxk_device *device, const nxk_operator *operator, const cl_mem * buffers,
                 const int64_t *places, ocl_command *command);
void ocl_products_close(nxk_device *device);

#endif
