/* SPDX-License-Identifier: Apache-2.0 */
/* The families of operators of one target: for each a bind, which declines what it has no code for and
 * reserves scratch, and a run. Tables of all targets are made from the same source (table.c). */
#ifndef CPU_FAMILY_H
#define CPU_FAMILY_H

#include "kernels/cpu/cpu.h"

#define FAMILY(name) \
  bool CPU_NAME(name##_bind)(nxk_kernel *kernel, nxk_fault *fault); \
  void CPU_NAME(name)(const nxk_kernel *kernel, const nxk_frame *frame);
#define RUN(name) void CPU_NAME(name)(const nxk_kernel *kernel, const nxk_frame *frame);

/* For the operators whose every operand is f32 or bf16, and that need no scratch. */
bool CPU_NAME(cpu_bind_real)(nxk_kernel *kernel, nxk_fault *fault);
bool CPU_NAME(cpu_norm_grad_bind)(nxk_kernel *kernel, nxk_fault *fault);
bool CPU_NAME(cpu_ce_bind)(nxk_kernel *kernel, nxk_fault *fault);
bool CPU_NAME(cpu_element_bind)(nxk_kernel *kernel, nxk_fault *fault);

RUN(cpu_add)
RUN(cpu_vote)
RUN(cpu_bias_add)
RUN(cpu_columns_add)
RUN(cpu_columns)
RUN(cpu_row_gate)
RUN(cpu_row_gate_grad)
FAMILY(cpu_dequantize_nf4)
FAMILY(cpu_dequantize_nvfp4)
FAMILY(cpu_dequantize_mxfp4)
FAMILY(cpu_dequantize_fp8)
RUN(cpu_fp8_amax)
FAMILY(cpu_fp8_round)
RUN(cpu_cast)
FAMILY(cpu_fill)
RUN(cpu_bias_grad)
FAMILY(cpu_embedding)
FAMILY(cpu_embedding_grad)
FAMILY(cpu_position_add)
FAMILY(cpu_position_grad)
RUN(cpu_rms_norm)
RUN(cpu_rms_norm_grad)
RUN(cpu_layer_norm)
RUN(cpu_layer_norm_grad)
FAMILY(cpu_split_qkv)
FAMILY(cpu_merge_qkv)
FAMILY(cpu_split_heads)
FAMILY(cpu_merge_heads)
FAMILY(cpu_rotate)
FAMILY(cpu_split_latent)
FAMILY(cpu_merge_latent)
FAMILY(cpu_attention)
FAMILY(cpu_attention_grad)
FAMILY(cpu_attention_merge)
FAMILY(cpu_attention_sink)
FAMILY(cpu_attention16)
FAMILY(cpu_attention16_grad)
RUN(cpu_gated)
RUN(cpu_gated_grad)
RUN(cpu_activation)
RUN(cpu_activation_grad)
RUN(cpu_clamp)
RUN(cpu_clamp_grad)
FAMILY(cpu_dropout)
RUN(cpu_ce_stats)
FAMILY(cpu_ce_loss)
FAMILY(cpu_ce_grad)
FAMILY(cpu_norm_sq)
FAMILY(cpu_moe_route)
FAMILY(cpu_moe_route_grad)
FAMILY(cpu_moe_permute)
FAMILY(cpu_moe_combine)
FAMILY(cpu_moe_combine_grad)
FAMILY(cpu_grouped_bias)
FAMILY(cpu_grouped_bias_grad)
FAMILY(cpu_soap)

bool CPU_NAME(cpu_tensor_bind)(nxk_kernel *kernel, nxk_fault *fault);
#define ELEMENT(number, name, n_states, meaning) RUN(cpu_##name)
#define TENSOR(number, name, n_states, meaning) RUN(cpu_##name)
#include "schema/optimizers.def"

#undef FAMILY
#undef RUN

void CPU_NAME(cpu_convert_box)(const nxk_device *device, void *y, nx_dtype y_type, int64_t y_stride,
                               const void *x, nx_dtype x_type, int64_t x_stride, int64_t n_rows,
                               int64_t n_columns);
void CPU_NAME(cpu_sum)(const nxk_device *device, void *y, nx_dtype y_type, const void *const *x,
                       uint32_t n_sources, nx_dtype x_type, uint64_t n_elements);

#endif
