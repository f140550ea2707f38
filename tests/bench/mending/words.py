# SPDX-License-Identifier: Apache-2.0
"""Names of settings that slips are made with."""

# Counts that have to fit each other.
LAYOUT = {
    "nxdt": ["tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "global_batch_size",
             "devices", "num_nodes", "kv_replicator", "num_attention_heads", "num_query_groups", "hidden_size",
             "ffn_hidden_size", "virtual_pipeline_model_parallel_size", "encoder_seq_length", "micro_batch_size"],
    "neox": ["model_parallel_size", "pipe_parallel_size", "num_attention_heads", "hidden_size", "train_batch_size",
             "gradient_accumulation_steps", "num_layers", "num_kv_heads", "max_position_embeddings", "seq_length",
             "moe_num_experts"],
    "megatron": ["tensor_model_parallel_size", "pipeline_model_parallel_size", "num_attention_heads", "hidden_size",
                 "global_batch_size", "micro_batch_size", "num_query_groups", "num_layers", "context_parallel_size",
                 "expert_model_parallel_size", "num_experts", "seq_length", "max_position_embeddings",
                 "num_layers_per_virtual_pipeline_stage", "ffn_hidden_size"],
    "xorl": ["ulysses_parallel_size", "ringattn_parallel_size", "tensor_parallel_size", "pipeline_parallel_size",
             "data_parallel_shard_size", "data_parallel_replicate_size", "expert_parallel_size"],
}

# The system's own name, and what another system has for it.
FOREIGN = {
    "nxdt": {
        "tensor_model_parallel_size": "tensor_parallel_size", "pipeline_model_parallel_size": "pipe_parallel_size",
        "global_batch_size": "train_batch_size", "micro_batch_size": "train_micro_batch_size_per_gpu",
        "max_steps": "train_iters", "num_layers": "num_hidden_layers", "gradient_clip_val": "max_grad_norm",
        "encoder_seq_length": "seq_length", "lr": "learning_rate", "warmup_steps": "lr_warmup_steps", "devices": "gpus",
        "num_nodes": "nnodes", "zero1": "use_distributed_optimizer", "weight_decay": "wd", "sequence_parallel": "sp",
    },
    "neox": {
        "model_parallel_size": "tensor_model_parallel_size", "pipe_parallel_size": "pipeline_model_parallel_size",
        "seq_length": "sequence_length", "train_micro_batch_size_per_gpu": "micro_batch_size",
        "num_attention_heads": "n_head", "num_layers": "num_hidden_layers", "hidden_size": "d_model",
        "train_iters": "max_steps", "lr_decay_style": "lr_scheduler_type", "gradient_clipping": "clip_grad",
        "checkpoint_activations": "recompute_activations", "warmup": "lr_warmup_fraction",
        "max_position_embeddings": "n_positions", "weight_decay": "wd", "data_path": "train_data",
        "eval_interval": "eval_steps", "log_interval": "logging_steps", "checkpoint_factor": "save_interval",
    },
    "megatron": {
        "tensor_model_parallel_size": "model-parallel-size", "pipeline_model_parallel_size": "pipe-parallel-size",
        "micro_batch_size": "train-micro-batch-size-per-gpu", "global_batch_size": "train-batch-size",
        "num_layers": "num-hidden-layers", "lr": "learning-rate", "lr_warmup_fraction": "warmup-ratio",
        "clip_grad": "max-grad-norm", "train_iters": "max-steps", "lr_decay_style": "lr-scheduler-type",
        "num_query_groups": "num-key-value-heads", "ffn_hidden_size": "intermediate-size", "hidden_size": "d-model",
        "bf16": "bfloat16", "seq_length": "max-seq-len", "save_interval": "save-steps",
        "use_mcore_models": "use-megatron-core", "transformer_impl": "transformer-engine-impl",
        "recompute_granularity": "checkpoint-activations",
    },
    "xorl": {
        "micro_batch_size": "per_device_train_batch_size", "lr": "learning_rate", "max_grad_norm": "clip_grad",
        "lr_decay_style": "lr_scheduler_type", "lr_warmup_ratio": "warmup_ratio", "num_train_epochs": "epochs",
        "tensor_parallel_size": "tensor_model_parallel_size", "pipeline_parallel_size": "pipeline_model_parallel_size",
        "max_steps": "train_iters", "model_path": "model_name_or_path", "gradient_accumulation_steps": "grad_accum",
        "save_steps": "save_interval", "optimizer": "optim", "enable_gradient_checkpointing": "gradient_checkpointing",
        "enable_mixed_precision": "bf16", "expert_parallel_size": "expert_model_parallel_size",
    },
}

# Settings that do not go together, with each other or with what files have.
CONTRADICTIONS = {
    "neox": [
        {"fp16": '{"enabled": true}', "bf16": '{"enabled": true}'},
        {"train_data_paths": '["a"]', "data_path": '"b"'},
        {"precision": '"fp16"'},
        {"zero_optimization": '{"stage": 5}'},
        {"num_kv_heads": "5"},
        {"lr_decay_iters": "5", "lr_decay_fraction": "0.5"},
        {"mamba_use_bias_in_conv": "3"},
        {"save": '"x"', "checkpoint_factor": "null"},
        {"norm": '"rmsnom"'},
        {"sparsity_config": '{"block": 16}', "num_kv_heads": "2"},
        {"dataset_impl": '"gpt2"'},
        {"train_label_data_paths": '["l"]'},
        {"optimizer_type": '"adamw"'},
        {"min_lr": "1.0"},
        {"use_checkpoint_lr_scheduler": "true", "override_lr_scheduler": "true"},
        {"onnx_safe": "true", "bias_gelu_fusion": "true"},
        {"intermediate_size": "4096", "expansion_factor": "4"},
    ],
    "megatron": [
        {"fp16": ""}, {"bf16": ""}, {"train-samples": "1000"}, {"lr-decay-samples": "100"}, {"lr-warmup-samples": "10"},
        {"lr-warmup-iters": "10"}, {"recompute-method": "uniform"}, {"recompute-activations": ""},
        {"sequence-parallel": ""}, {"swiglu": ""}, {"moe-router-topk": "0"}, {"num-experts": "8"},
        {"no-position-embedding": ""}, {"use-rotary-position-embeddings": ""}, {"position-embedding-type": "ropee"},
        {"rampup-batch-size": "16 16"}, {"group-query-attention": ""}, {"expert-model-parallel-size": "2"},
        {"overlap-param-gather": ""}, {"tp-comm-overlap": ""}, {"fp8-format": "e5m2"},
        {"virtual-pipeline-model-parallel-size": "2"}, {"save-interval": "0"}, {"weight-decay-incr-style": "linear"},
        {"lr-warmup-fraction": "2.0"}, {"recompute-num-layers": "2"}, {"squared-relu": "", "swiglu": ""},
        {"optimizer": "adamw"}, {"moe-expert-capacity-factor": "1.0"}, {"num-layers-per-virtual-pipeline-stage": "1"},
        {"decoder-first-pipeline-num-layers": "3"}, {"data-path": "a", "mock-data": ""},
        {"split": "90,5,5", "train-data-path": "x"}, {"checkpoint-activations": ""},
        {"use-distributed-optimizer": "", "ckpt-format": "zarr"}, {"untie-embeddings-and-output-weight": ""},
        {"start-weight-decay": "0.1"}, {"add-qkv-biass": ""}, {"attention-softmax-in-fp16": ""},
        {"cross-entropy-loss-fusion": "true"}, {"normalization": "RMSnorm"}, {"manual-gc-interval": "-1"},
        {"context-parallel-size": "3"},
    ],
}
