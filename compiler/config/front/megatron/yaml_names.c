/* SPDX-License-Identifier: Apache-2.0 */
/* Names of argparse's namespace, as Megatron's YAML files have them. */
#include "compiler/config/front/megatron/front_megatron.h"

#include <string.h>

/* Names that are no option with underscores: the option behind them, and whether it says the opposite. An
 * empty option: the name belongs to Megatron Core itself and is no argument. */
static const struct {
  const char *name, *option;
  bool opposite;
} names[] = {
    {"add_bias_linear", "disable-bias-linear", true},
    {"add_position_embedding", "no-position-embedding", true},
    {"align_grad_reduce", "no-align-grad-reduce", true},
    {"align_param_gather", "no-align-param-gather", true},
    {"apply_rope_fusion", "no-rope-fusion", true},
    {"async_tensor_model_parallel_allreduce", "no-async-tensor-model-parallel-allreduce", true},
    {"attn_layernorm", "no-attn-layernorm", true},
    {"barrier_with_L1_time", "no-barrier-with-level-1-timing", true},
    {"bert_binary_head", "bert-no-binary-head", true},
    {"bias_activation_fusion", "no-bias-gelu-fusion", true},
    {"bias_dropout_fusion", "no-bias-dropout-fusion", true},
    {"bias_gelu_fusion", "no-bias-gelu-fusion", true},
    {"bias_swiglu_fusion", "no-bias-swiglu-fusion", true},
    {"check_for_nan_in_loss_and_grad", "no-check-for-nan-in-loss-and-grad", true},
    {"ckpt_fully_parallel_save", "no-ckpt-fully-parallel-save", true},
    {"clone_scatter_output_in_embedding", "no-clone-scatter-output-in-embedding", true},
    {"create_attention_mask_in_dataloader", "no-create-attention-mask-in-dataloader", true},
    {"data_sharding", "no-data-sharding", true},
    {"enable_one_logger", "no-one-logger", true},
    {"final_layernorm", "no-final-layernorm", true},
    {"fp8_wgrad", "no-fp8-wgrad", true},
    {"gradient_accumulation_fusion", "no-gradient-accumulation-fusion", true},
    {"log_loss_scale_to_tensorboard", "no-log-loss-scale-to-tensorboard", true},
    {"manual_gc_eval", "no-manual-gc-eval", true},
    {"masked_softmax_fusion", "no-masked-softmax-fusion", true},
    {"mlp_layernorm", "no-mlp-layernorm", true},
    {"mmap_bin_files", "no-mmap-bin-files", true},
    {"overlap_p2p_comm", "no-overlap-p2p-communication", true},
    {"perform_initialization", "no-initialization", true},
    {"retro_verify_neighbor_count", "retro-no-verify-neighbor-count", true},
    {"scatter_gather_tensors_in_pipeline", "no-scatter-gather-tensors-in-pipeline", true},
    {"tp_comm_bulk_dgrad", "disable-tp-comm-bulk-dgrad", true},
    {"tp_comm_bulk_wgrad", "disable-tp-comm-bulk-wgrad", true},
    {"tp_comm_overlap_ag", "disable-tp-comm-overlap-ag", true},
    {"tp_comm_overlap_rs", "disable-tp-comm-overlap-rs", true},
    {"tp_comm_split_ag", "disable-tp-comm-split-ag", true},
    {"tp_comm_split_rs", "disable-tp-comm-split-rs", true},
    {"use_tokenizer_model_from_checkpoint_args", "no-use-tokenizer-model-from-checkpoint-args", true},
    {"fp8", "fp8-format", false},
    {"layernorm_epsilon", "norm-epsilon", false},
    {"layernorm_zero_centered_gamma", "apply-layernorm-1p", false},
    {"microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage", false},
    {"num_moe_experts", "num-experts", false},
    {"overlap_p2p_comm_warmup_flush", "overlap-p2p-communication-warmup-flush", false},
    {"override_opt_param_scheduler", "override-opt_param-scheduler", false},
    {"persist_layer_norm", "no-persist-layer-norm", true},
    {"use_checkpoint_opt_param_scheduler", "use-checkpoint-opt_param-scheduler", false},
    {"_cpu_offloading_context", "", false},
    {"activation_func", "", false}, /* swiglu and squared_relu say it too */
    {"autocast_dtype", "", false},
    {"batch_p2p_comm", "", false},
    {"batch_p2p_sync", "", false},
    {"cpu_offloading", "", false},
    {"cpu_offloading_activations", "", false},
    {"cpu_offloading_num_layers", "", false},
    {"cpu_offloading_weights", "", false},
    {"deallocate_pipeline_outputs", "", false},
    {"delay_grad_reduce", "", false},
    {"delay_param_gather", "", false},
    {"enable_autocast", "", false},
    {"finalize_model_grads_func", "", false},
    {"gated_linear_unit", "", false},
    {"grad_scale_func", "", false},
    {"grad_sync_func", "", false},
    {"init_method", "", false},
    {"memory_efficient_layer_norm", "", false},
    {"moe_token_dropping", "", false},
    {"no_sync_func", "", false},
    {"num_microbatches_with_partial_activation_checkpoints", "", false},
    {"output_layer_init_method", "", false},
    {"param_sync_func", "", false},
    {"params_dtype", "", false},
    {"pipeline_dtype", "", false},
    {"timers", "", false},
    {"tp_comm_atomic_ag", "", false},
    {"tp_comm_atomic_rs", "", false},
    {"variable_seq_lengths", "", false},
    {"virtual_pipeline_model_parallel_size", "", false},
    {"window_size", "", false},
};

const char *nxc_megatron_option_of(nxc_arena *arena, const char *name, bool *opposite) {
  *opposite = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i].name, name) != 0) continue;
    *opposite = names[i].opposite;
    return names[i].option;
  }
  char *option = nxc_arena_strdup(arena, name);
  for (char *c = option; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  return option;
}
