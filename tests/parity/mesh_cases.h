/* SPDX-License-Identifier: Apache-2.0 */
/* The trainings of test_meshes.c: families of models and options, and the meshes on which each is the same.
 */
#ifndef TESTS_PARITY_MESH_CASES_H
#define TESTS_PARITY_MESH_CASES_H

#include "tests/parity/mesh_layouts.h"
#include "tests/parity/mesh_tuned.h"

/* `exact`: the meshes sum in the same order, so all numbers have the same bits. `like`: what they are
 * compared with, where that is not one rank. `data`: of what was recorded, where it is not `tokens`. */
static const struct family {
  const char *name, *overrides;
  const mesh *meshes;
  size_t n_meshes;
  bool exact;
  const mesh *like;
  const char *data;
} families[] = {
    {"zero", "", zero, sizeof zero / sizeof *zero},
    {"zero-tied", SET("model.tied_embeddings", "true"), zero_few, 3},
    {"zero-recompute", SET("recompute.granularity", "full"), zero_few, 3},
    {"zero-gpt2", GPT2 SET("model.tied_embeddings", "true"), zero_few, 3},
    {"growing", LAYERS("4") GROWING, growing, sizeof growing / sizeof *growing},
    {"zero-stages", LAYERS("4"), zero_staged, sizeof zero_staged / sizeof *zero_staged},
    {"zero-bits", SET("batch.global", "2") NO_CLIP, zero_alike, sizeof zero_alike / sizeof *zero_alike, true,
     &dp2},
    {"zero-bits-bf16",
     SET("batch.global", "2") NO_CLIP SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.master_weights", "true") SET("model.tied_embeddings", "true"),
     zero_alike, sizeof zero_alike / sizeof *zero_alike, true, &dp2},
    {"zero-bits-bf16-gradients",
     SET("batch.global", "2") NO_CLIP SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.master_weights", "true") SET("precision.grad_accumulation", "bf16"),
     zero_alike, sizeof zero_alike / sizeof *zero_alike, true, &dp2},
    {"rule-sgd-momentum", RULE("sgd") SET("optimizer.momentum", "0.9") SET("optimizer.nesterov", "true"),
     zero_rules, 2, true, &dp2},
    {"rule-adam", RULE("adam"), zero_rules, 2, true, &dp2},
    {"rule-adamax", RULE("adamax"), zero_rules, 2, true, &dp2},
    {"rule-adadelta", RULE("adadelta"), zero_rules, 2, true, &dp2},
    {"rule-adagrad", RULE("adagrad"), zero_rules, 2, true, &dp2},
    {"rule-rmsprop", RULE("rmsprop") SET("optimizer.momentum", "0.9"), zero_rules, 2, true, &dp2},
    {"rule-rprop", RULE("rprop"), zero_rules, 2, true, &dp2},
    {"rule-lion", RULE("lion"), zero_rules, 2, true, &dp2},
    {"rule-madgrad", RULE("madgrad_wd") SET("optimizer.momentum", "0.9"), zero_rules, 2, true, &dp2},
    {"rule-madgrad-alone", RULE("madgrad_wd"), zero_rules, 2, true, &dp2},
    {"rule-late-decay", RULE("adamw") SET("optimizer.late_decay", "true"), zero_rules, 2, true, &dp2},
    {"rule-two-types",
     RULE("adamw") SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.second_moment", "fp32") SET("precision.optimizer_state", "bf16")
             SET("precision.master_weights", "true"),
     zero_rules, 2, true, &dp2},
    {"rule-signsgd", RULE("signsgd"), zero_rules, 2, true, &dp2},
    {"rule-distsignsgd", RULE("distsignsgd"), zero_rules, 2, true, &dp2},
    {"votes-growing", SET("optimizer.name", "distsignsgd") NO_CLIP LAYERS("4") GROWING, growing, 4},
    {"rule-ademamix", RULE("ademamix") SET("optimizer.slow_weight_warmup", "4"), zero_rules, 2, true, &dp2},
    {"rule-adan", RULE("adan"), zero_rules, 2, true, &dp2},
    {"rule-cautious", RULE("adamw") SET("optimizer.cautious_decay", "true"), zero_rules, 2, true, &dp2},
    {"rule-uncorrected", RULE("adamw") SET("optimizer.bias_correction", "false"), zero_rules, 2, true, &dp2},
    {"rule-kahan",
     RULE("kahan_adamw") SET("precision.param", "bf16") SET("precision.compute", "bf16")
         SET("precision.optimizer_state", "bf16"),
     zero_rules, 2, true, &dp2},
    {"rule-muon", RULE("muon") MUON, zero_rules, 2, true, &dp2},
    {"rule-muon-shards",
     RULE("muon") MUON SET("optimizer.matrix_parts", "2") SET("optimizer.rounded_momentum", "all")
         SET("precision.optimizer_state", "bf16") SET("optimizer.joined", "[qkv,gate_up]"),
     zero_rules, 2, true, &dp2},
    {"rule-soap", RULE("soap"), soap_alike, 3, true, &dp2},
    {"rule-soap-parts", RULE("soap"), soap_parts + 1, 1, true, soap_parts},
    {"rule-soap-experts",
     SET("optimizer.name", "soap") NO_CLIP SET("optimizer.joined", "[expert_gate_up]") MIXTURE("2"),
     soap_experts + 1, 1, true, soap_experts},
    {"muon", MUON SET("optimizer.name", "muon") SET("optimizer.joined", "[gate_up]"), tensor_rules,
     sizeof tensor_rules / sizeof *tensor_rules},
    {"adaptive-muon",
     MUON SET("optimizer.name", "adaptive_muon") SET("optimizer.moment2", "normuon")
         SET("optimizer.cautious_decay", "true") SET("optimizer.joined", "[qkv,gate_up]"),
     tensor_few, 2},
    {"muon-blockwise", MUON SET("optimizer.name", "muon") SET("optimizer.blockwise", "true"), tensor_few + 1,
     1, false, tensor_few},
    {"muon-blockwise-shards",
     MUON SET("optimizer.name", "muon") SET("optimizer.blockwise", "true") SET("optimizer.matrix_parts", "3"),
     tensor_few + 1, 1, false, tensor_few},
    {"novograd", SET("optimizer.name", "novograd"), tensor_few, 2},
    {"sm3", SET("optimizer.name", "sm3") SET("optimizer.momentum", "0.9"), tensor_few, 2},
    {"sm3-decay", SET("optimizer.name", "sm3") SET("optimizer.sum_beta", "0.9"), tensor_few, 2},
    {"adafactor", SET("optimizer.name", "adafactor"), tensor_few, 2},
    {"adafactor-momentum", SET("optimizer.name", "adafactor") SET("optimizer.momentum", "0.8"), tensor_few,
     2},
    {"8-bit", SET("optimizer.eight_bits", "true") SET("optimizer.min_8bit_size", "1024"), tensor_few, 2},
    {"muon-experts",
     MUON SET("optimizer.name", "muon") SET("optimizer.joined", "[expert_gate_up]")
         SET("optimizer.matrix_routers", "true") MIXTURE("2"),
     few_expert_meshes, 3},
    {"muon-expert-shards",
     MUON SET("optimizer.name", "muon") SET("optimizer.expert_parts", "4") SET("optimizer.matrix_parts", "2")
         SET("optimizer.stacked_scale", "true") MIXTURE("2"),
     soap_experts, 2},
    {"groups",
     SET("optimizer.decoupled_lr", "3e-3") SET("optimizer.weight_decay_growth", "linear")
         SET("optimizer.start_weight_decay", "0.01"),
     few, 3},
    {"zero-once", NO_CLIP, zero_once, sizeof zero_once / sizeof *zero_once, true, &dp2},
    {"zero-each-pass", NO_CLIP, zero_each_pass, sizeof zero_each_pass / sizeof *zero_each_pass, true,
     &dp2_zero2},
    {"llama", "", dense, sizeof dense / sizeof *dense},
    {"tied", SET("model.tied_embeddings", "true"), few, 3},
    {"separate-qkv", SET("model.fused_qkv", "false"), few, 3},
    {"gpt2", GPT2 SET("model.tied_embeddings", "true"), few, 3},
    {"gpt2-separate-qkv", GPT2 SET("model.fused_qkv", "false"), few, 3},
    {"one-tensor", SET("model.checkpoint_names", "phi3"), few, 3},
    {"one-tensor-grouped",
     SET("model.checkpoint_names", "gpt_neox") SET("model.activation", "gelu") SET("model.bias", "true"), few,
     3},
    {"dropout",
     SET("model.hidden_dropout", "0.1") SET("model.attention_dropout", "0.1") SET("model.ffn_dropout", "0.1"),
     few, 3},
    {"qk-scaling", SET("model.query_key_layer_scaling", "true"), few, 3},
    {"recompute", SET("recompute.granularity", "full"), few, 3},
    {"context", "", context, sizeof context / sizeof *context},
    {"context-dropout",
     SET("model.hidden_dropout", "0.1") SET("model.attention_dropout", "0.1") SET("model.ffn_dropout", "0.1"),
     contexts, 4},
    {"context-gpt2", GPT2 SET("model.tied_embeddings", "true"), contexts, 4},
    {"context-documents",
     SET("data.end_of_document", "244") SET("data.reset_attention_mask", "true")
         SET("data.reset_position_ids", "true") SET("data.eod_mask_loss", "true"),
     contexts, 4},
    {"context-recompute", SET("recompute.granularity", "full"), contexts, 3},
    {"context-stages", LAYERS("4"), staged_context, 4},
    {"stages", LAYERS("5"), stages, sizeof stages / sizeof *stages, true},
    {"stages-tensor", LAYERS("4"), staged_tensor, 3},
    {"stages-data", LAYERS("4"), staged_data, 4},
    {"mirrored", LAYERS("8") SET("batch.global", "7"), mirrored, sizeof mirrored / sizeof *mirrored, true},
    {"mirrored-few", LAYERS("8") SET("batch.global", "3"), mirrored, 4, true},
    {"mirrored-tied", LAYERS("8") SET("batch.global", "13") SET("model.tied_embeddings", "true"), mirrored,
     4},
    {"mirrored-tied-mixed", LAYERS("8") SET("batch.global", "20") SET("model.tied_embeddings", "true"),
     mirrored_mixed, sizeof mirrored_mixed / sizeof *mirrored_mixed},
    {"mirrored-experts", LAYERS("8") SET("batch.global", "24") MIXTURE("2"), mirrored_mixed, 4},
    {"mirrored-further", LAYERS("8") SET("batch.global", "9") SET("model.predict_depth", "1"), mirrored, 3},
    {"mirrored-growing", LAYERS("8") GROWING, mirrored, 4, true},
    {"shared-layers", LAYERS("8") SET("model.unique_layers", "4"), shared_layers,
     sizeof shared_layers / sizeof *shared_layers},
    {"shared-layers-spaced",
     LAYERS("8") SET("model.unique_layers", "2") SET("model.layer_sharing", "spaced")
         SET("model.tied_embeddings", "true"),
     shared_layers, sizeof shared_layers / sizeof *shared_layers},
    {"again", LAYERS("5") SET("model.hidden_dropout", "0.1") SET("model.attention_dropout", "0.1"), again,
     sizeof again / sizeof *again, true},
    {"again-gpt2",
     LAYERS("5") SET("model.normalization", "layernorm") SET("model.position_embedding", "learned")
         SET("model.activation", "gelu_tanh") SET("model.bias", "true") SET("model.kv_heads", "4"),
     again, sizeof again / sizeof *again, true},
    {"again-context", SET("model.attention_dropout", "0.1"), again_context, 3, true, &ring2},
    {"again-divided", LAYERS("4"), again_divided, sizeof again_divided / sizeof *again_divided, true, &tp2},
    {"stages-tied", LAYERS("4") SET("model.tied_embeddings", "true"), staged_tied, 4, true},
    {"stages-tied-mixed", LAYERS("4") SET("model.tied_embeddings", "true"), staged_tied_mixed,
     sizeof staged_tied_mixed / sizeof *staged_tied_mixed},
    {"stages-recompute", LAYERS("8") SET("recompute.granularity", "full") SET("batch.global", "6"), staged, 2,
     true},
    {"stages-dropout",
     LAYERS("8") SET("model.hidden_dropout", "0.1") SET("model.attention_dropout", "0.1")
         SET("model.query_key_layer_scaling", "true") SET("batch.global", "10"),
     staged, 2, true},
    {"stages-gpt2", LAYERS("8") GPT2, staged, 2, true},
    {"experts", MIXTURE("2") SET("moe.normalize_top_k", "true") SET("moe.z_loss_coef", "0.01"), expert_meshes,
     sizeof expert_meshes / sizeof *expert_meshes},
    {"experts-jitter", MIXTURE("2") SET("moe.input_jitter", "0.2"), few_expert_meshes, 3},
    {"experts-random", MIXTURE("2") SET("moe.random_logits", "true"), few_expert_meshes, 3},
    {"experts-gathered", MIXTURE("2") SET("moe.pre_softmax", "false"), gather_meshes, 4},
    {"experts-capacity", MIXTURE("2") SET("moe.capacity_factor", "0.8") SET("moe.aux_loss_scope", "sequence"),
     few_expert_meshes, 3},
    {"experts-ranks",
     EXPERTS("2") SET("batch.global", "2") SET("moe.aux_loss_over", "ranks")
         SET("moe.aux_loss_scope", "model"),
     ranks_experts, 2, false, &two_at_once},
    {"experts-model", MIXTURE("2") LAYERS("4") SET("moe.aux_loss_scope", "model"), model_experts, 4},
    {"experts-model-shares",
     EXPERTS("2") LAYERS("4") SET("moe.aux_loss_scope", "model") SET("moe.offset", "2")
         SET("moe.frequency", "3"),
     model_shares, 2, false, &two_shares},
    {"experts-step", EXPERTS("2") LAYERS("4") SET("moe.aux_loss_over", "step"), step_experts, 4, false,
     &two_shares},
    {"experts-ademamix",
     MIXTURE("2") SET("optimizer.name", "ademamix") SET("optimizer.slow_weight_warmup", "4"), staged_zero, 1},
    {"experts-normuon",
     MUON MIXTURE("2") SET("optimizer.name", "adaptive_muon") SET("optimizer.moment2", "normuon"),
     staged_zero, 1},
    {"experts-adamuon",
     MUON MIXTURE("2") SET("optimizer.name", "adaptive_muon") SET("optimizer.moment2", "adamuon")
         SET("optimizer.moment2_epsilon", "0.01"),
     staged_zero, 1},
    {"experts-blockwise", MUON MIXTURE("2") SET("optimizer.name", "muon") SET("optimizer.blockwise", "true"),
     staged_zero, 1},
    {"experts-novograd", MIXTURE("2") SET("optimizer.name", "novograd"), staged_zero, 1},
    {"experts-sm3", MIXTURE("2") SET("optimizer.name", "sm3") SET("optimizer.momentum", "0.9"), staged_zero,
     1},
    {"experts-adafactor", MIXTURE("2") SET("optimizer.name", "adafactor"), staged_zero, 1},
    {"experts-position", MIXTURE("1") SET("moe.capacity_factor", "1") SET("moe.drop_policy", "position"),
     few_expert_meshes, 3},
    {"experts-drop-random",
     MIXTURE("1") SET("moe.capacity_factor", "0.5") SET("moe.min_capacity", "20")
         SET("moe.drop_policy", "random") SET("model.ffn_bias", "true") SET("moe.biases", "first"),
     few_expert_meshes, 3},
    {"experts-context-random",
     MIXTURE("2") SET("moe.capacity_factor", "0.8") SET("moe.drop_policy", "random"), context_experts, 1},
    {"experts-residual",
     MIXTURE("1") SET("moe.shared_softmax", "true") SET("model.ffn_bias", "true") SET("moe.biases", "first"),
     few_expert_meshes, 3},
    {"experts-one-bias", MIXTURE("2") SET("model.ffn_bias", "true") SET("moe.biases", "layer"),
     few_expert_meshes, 3},
    {"experts-context", MIXTURE("2") SET("moe.capacity_factor", "0.8") SET("moe.drop_policy", "position"),
     context_experts, 4},
    {"experts-sinkhorn", MIXTURE("1") SET("moe.routing", "sinkhorn") SET("moe.router_activation", "sigmoid"),
     few_expert_meshes, 3},
    {"experts-shared",
     MIXTURE("2") SET("moe.shared_ffn_hidden", "32") SET("moe.router_activation", "sigmoid")
         SET("moe.normalize_top_k", "true") SET("moe.router_scale", "2.5") SET("moe.aux_loss_scope", "model"),
     few_expert_meshes, 3},
    {"experts-recompute", MIXTURE("2") SET("recompute.granularity", "full"), few_expert_meshes, 3},
    {"experts-recompute-moe", MIXTURE("2") AGAIN("selective") SET("recompute.modules", "[moe]"),
     few_expert_meshes, 1},
    FORM("form-pythia",
         SET("model.block", "gpt_j") SET("model.normalization", "layernorm") SET("model.activation", "gelu")
             SET("model.bias", "true") SET("model.rotary_percentage", "0.25")
                 SET("model.init_method", "small_init") SET("model.output_init_method", "wang_init")
                     SET("optimizer.epsilon", "1e-5")),
    FORM("form-gptj", SET("model.block", "gpt_j_tied") SET("model.rope_interleaved", "true")
                          SET("model.activation", "gelu_tanh") SET("model.ffn_bias", "true")
                              SET("model.init_method", "xavier_uniform")
                                  SET("model.normalization", "scalenorm") SET("optimizer.epsilon", "1e-5")),
    FORM("form-qwen3", SET("model.qk_norm", "head") SET("model.head_dim", "32")),
    FORM("form-gemma2",
         SET("model.block", "sandwich") SET("model.normalization", "rmsnorm1p")
             SET("model.activation", "geglu_tanh") SET("model.tied_embeddings", "true")
                 SET("model.embedding_scale", "8") SET("model.attention_soft_cap", "5")
                     SET("model.output_soft_cap", "3") SET("model.sliding_window", "9")
                         SET("model.full_attention_every", "2") SET("model.attention_scale", "0.2")),
    {"form-olmo2",
     LAYERS("4") SET("model.block", "norm_after") SET("model.qk_norm", "projection")
         SET("model.rope_scaling", "yarn") SET("model.rope_factor", "4")
             SET("model.rope_original_positions", "16") SET("model.init_std", "0.1"),
     formed, FORMED - 2},
    FORM("form-bloom", SET("model.position_embedding", "alibi") SET("model.normalization", "layernorm1p")
                           SET("model.activation", "squared_relu") SET("model.block", "residual_post_ln")
                               SET("model.attention_dropout", "0.1")),
    FORM("form-original", SET("model.position_embedding", "sinusoidal") SET("model.block", "post_ln")
                              SET("model.activation", "relu")),
    FORM("form-t5", SET("model.position_embedding", "relative") SET("model.relative_buckets", "8")
                        SET("model.relative_max_distance", "20") SET("model.relative_scale", "2")
                            SET("model.init_std", "0.1")),
    FORM("form-longrope", SET("model.rope_scaling", "longrope") SET("model.rope_original_positions", "16")
                              SET("model.rope_long_factors", "[1,1.5,2,2,3,4,5,6]")),
    {"form-normformer", LAYERS("4") SET("model.block", "normformer") SET("model.init_method", "orthogonal"),
     formed, FORMED},
    FORM("form-local", SET("model.attention_pattern", "[local,global]") SET("model.sparse_block", "4")
                           SET("model.attention_dropout", "0.1")),
    FORM("form-bigbird", SET("model.attention_pattern", "[bigbird,sparse_fixed]")
                             SET("model.sparse_block", "2") SET("model.sparse_random_blocks", "1")
                                 SET("model.sparse_heads_differ", "true") SET("model.sparse_patterns", "4")),
    {"form-further",
     LAYERS("4") SET("model.predict_depth", "2") SET("model.predict_loss_factor", "0.3")
         SET("model.hidden_dropout", "0.1"),
     formed, FORMED},
    {"form-further-tied", LAYERS("4") SET("model.predict_depth", "1") SET("model.tied_embeddings", "true"),
     formed, 4},
    {"experts-between", MIXTURE("2") LAYERS("4") " --set 'nx:moe.pattern=([0]+[1])*2'", staged_experts, 2},
    {"further-again",
     LAYERS("4") SET("model.predict_depth", "1") SET("recompute.granularity", "full")
         SET("recompute.layers", "2"),
     formed, 2},
    {"further-chunks", LAYERS("4") SET("model.predict_depth", "2"), tuned_few + 1, 1},
    {"elastic-chunks", LAYERS("4") SET("run.reproducible", "elastic") SET("batch.micro", "2"), tuned_few + 1,
     1, true},
    {"elastic-tensors", SET("run.reproducible", "elastic") SET("optimizer.name", "adafactor"), &dp2, 1, true},
    {"stages-gpipe", LAYERS("8") SET("pipeline.schedule", "gpipe") SET("batch.global", "21"), staged_gpipe,
     sizeof staged_gpipe / sizeof *staged_gpipe, true},
    {"stages-relative-tied",
     LAYERS("4") SET("model.position_embedding", "relative") SET("model.relative_buckets", "8")
         SET("model.tied_embeddings", "true") SET("model.init_std", "0.1"),
     staged_relative, sizeof staged_relative / sizeof *staged_relative},
    {"lora-dropout", LORA SET("lora.dropout", "0.1"), contexts, 4},
    {"jitter-context", MIXTURE("2") SET("moe.input_jitter", "0.2"), context_experts, 4},
    {"random-context", MIXTURE("2") SET("moe.random_logits", "true"), context_experts, 4},
    {"quantiles", MIXTURE("2") QUANTILES, few_expert_meshes, 3},
    {"quantiles-context", MIXTURE("2") QUANTILES SET("recompute.granularity", "full"), context_experts, 4},
    {"quantiles-growing", EXPERTS("2") LAYERS("4") GROWING QUANTILES, growing,
     sizeof growing / sizeof *growing},
    {"lora", LORA, tuned, TUNED},
    {"lora-experts", LORA MIXTURE("2") SET("lora.modules", "[q_proj,gate_proj,up_proj,down_proj]"),
     tuned_experts, TUNED_EXPERTS},
    {"qlora", QLORA, tuned, TUNED},
    {"dpo", DPO LORA, tuned, TUNED, false, NULL, PAIRS},
    {"answers", ANSWERS, tuned, TUNED, false, NULL, PAIRS},
    {"lora-gpt2", LORA GPT2 LAYERS("4") SET("lora.bias", "all"), tuned_few, 3},
    {"lora-latent",
     SET("model.heads", "4") SET("model.kv_heads", "4") SET("model.latent_rank", "8")
         SET("model.latent_rope_dim", "4") SET("lora.rank", "4") SET("lora.modules", "[kv_a_proj_with_mqa]"),
     few, 3},
    {"qlora-answers", QLORA ANSWERS LAYERS("4"), tuned_few, 3, false, NULL, PAIRS},
    {"dpo-whole", DPO LAYERS("4"), tuned_few, 3, false, NULL, PAIRS},
    {"orpo-experts", SET("alignment.strategy", "orpo") MIXTURE("2"), tuned_experts, TUNED_EXPERTS, false,
     NULL, PAIRS},
};

#endif
