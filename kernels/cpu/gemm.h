/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product, oneDNN's or our own (product.h): c[m,n] (+)= op(a) op(b) (+ bias[n]) over given types
 * and row strides.
 *
 * Made at bind, kept by the device and shared by every kernel that asks for the same form. Operands may be
 * packed: the product then reads a layout of oneDNN's own, which gemm_run writes to scratch first. A gemm
 * needs `scratch_bytes` of 64-byte aligned memory when it runs. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include "kernels/cpu/cpu.h"

typedef struct cpu_gemm_form {
  int64_t m, n, k;
  int64_t a_stride, b_stride, c_stride; /* elements between stored rows */
  bool trans_a, trans_b, accumulate;
  bool pack_a, pack_b;
  nx_dtype type, c_type, bias_type; /* bias_type 0: none */
} cpu_gemm_form;

/* NULL with an empty fault: oneDNN has no fast implementation of it. */
cpu_gemm *cpu_gemm_find(nxk_device *device, const cpu_gemm_form *form, nxk_fault *fault);
uint64_t cpu_gemm_scratch_bytes(const nxk_device *device, const cpu_gemm *gemm);
void cpu_gemm_run(const nxk_device *device, const cpu_gemm *gemm, const void *a, const void *b,
                  const void *bias, void *c, char *scratch);

#endif
