/* SPDX-License-Identifier: Apache-2.0 */
/* Our own loop for weight gradients, c[m,n] (+)= a^T b in fp32: both operands packed to panels that lie in
 * the caches, tiles of sums in registers. oneDNN 2.6 reads a transposed left side slowly on AMD's cores with
 * AVX-512, so there it does not. Other products are as fast with oneDNN, and are its.
 *
 * An element's sum runs over k in the same blocks whatever m, n and the number of threads are. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include "kernels/cpu/gemm.h"

bool cpu_product_takes(const nxk_device *device, const cpu_gemm_form *form);
uint64_t cpu_product_scratch_bytes(const nxk_device *device);
void cpu_product_run(const nxk_device *device, const cpu_gemm_form *form, const void *a, const void *b,
                     void *c, char *scratch);

#endif
