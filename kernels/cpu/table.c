/* SPDX-License-Identifier: Apache-2.0 */
/* A target's table. clip_scale, segment and moe_index are a few numbers each: ref takes them. */
#include "kernels/cpu/family.h"

#define OWN(name) {CPU_NAME(name##_bind), CPU_NAME(name)}
#define REAL(name) {CPU_NAME(cpu_bind_real), CPU_NAME(name)}

const cpu_table CPU_NAME(cpu_table) = {
  .families = {
    [NX_OP_matmul] = {cpu_matmul_bind, cpu_matmul_run},
    [NX_OP_bias_grad] = REAL(cpu_bias_grad),
    [NX_OP_embedding] = OWN(cpu_embedding),
    [NX_OP_embedding_grad] = OWN(cpu_embedding_grad),
    [NX_OP_position_add] = OWN(cpu_position_add),
    [NX_OP_position_grad] = OWN(cpu_position_grad),
    [NX_OP_rms_norm] = REAL(cpu_rms_norm),
    [NX_OP_rms_norm_grad] = {CPU_NAME(cpu_norm_grad_bind), CPU_NAME(cpu_rms_norm_grad)},
    [NX_OP_layer_norm] = REAL(cpu_layer_norm),
    [NX_OP_layer_norm_grad] = {CPU_NAME(cpu_norm_grad_bind), CPU_NAME(cpu_layer_norm_grad)},
    [NX_OP_add] = REAL(cpu_add),
    [NX_OP_bias_add] = REAL(cpu_bias_add),
    [NX_OP_columns_add] = REAL(cpu_columns_add),
    [NX_OP_columns] = REAL(cpu_columns),
    [NX_OP_dequantize_nf4] = OWN(cpu_dequantize_nf4),
    [NX_OP_dequantize_nvfp4] = OWN(cpu_dequantize_nvfp4),
    [NX_OP_split_qkv] = OWN(cpu_split_qkv),
    [NX_OP_merge_qkv] = OWN(cpu_merge_qkv),
    [NX_OP_split_heads] = OWN(cpu_split_heads),
    [NX_OP_merge_heads] = OWN(cpu_merge_heads),
    [NX_OP_rotate] = OWN(cpu_rotate),
    [NX_OP_split_latent] = OWN(cpu_split_latent),
    [NX_OP_merge_latent] = OWN(cpu_merge_latent),
    [NX_OP_attention] = OWN(cpu_attention),
    [NX_OP_attention_grad] = OWN(cpu_attention_grad),
    [NX_OP_attention_merge] = OWN(cpu_attention_merge),
    [NX_OP_attention_sink] = OWN(cpu_attention_sink),
    [NX_OP_gated] = REAL(cpu_gated),
    [NX_OP_gated_grad] = REAL(cpu_gated_grad),
    [NX_OP_activation] = REAL(cpu_activation),
    [NX_OP_activation_grad] = REAL(cpu_activation_grad),
    [NX_OP_dropout] = OWN(cpu_dropout),
    [NX_OP_ce_stats] = {CPU_NAME(cpu_ce_bind), CPU_NAME(cpu_ce_stats)},
    [NX_OP_ce_loss] = OWN(cpu_ce_loss),
    [NX_OP_ce_grad] = OWN(cpu_ce_grad),
    [NX_OP_fill] = OWN(cpu_fill),
    [NX_OP_cast] = REAL(cpu_cast),
    [NX_OP_norm_sq] = OWN(cpu_norm_sq),
    [NX_OP_muon] = {cpu_muon_bind, cpu_muon_run},
#define ELEMENT(number, name, n_states, meaning) \
    [NX_OP_##name] = {CPU_NAME(cpu_element_bind), CPU_NAME(cpu_##name)},
#include "schema/optimizers.def"
    [NX_OP_moe_route] = OWN(cpu_moe_route),
    [NX_OP_moe_route_grad] = OWN(cpu_moe_route_grad),
    [NX_OP_moe_permute] = OWN(cpu_moe_permute),
    [NX_OP_moe_combine] = OWN(cpu_moe_combine),
    [NX_OP_moe_combine_grad] = OWN(cpu_moe_combine_grad),
    [NX_OP_grouped_bias] = OWN(cpu_grouped_bias),
    [NX_OP_grouped_matmul] = {cpu_grouped_matmul_bind, cpu_grouped_matmul_run},
    [NX_OP_grouped_wgrad] = {cpu_grouped_wgrad_bind, cpu_grouped_wgrad_run},
  },
  .sum = CPU_NAME(cpu_sum),
  .convert_box = CPU_NAME(cpu_convert_box),
};
