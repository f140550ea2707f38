#!/bin/bash
# A code that grew out of Megatron-LM writes all of its options so; it had what Megatron-LM had then.
torchrun --nproc_per_node 8 pretrain_gpt.py --tensor_model_parallel_size 2 --num_layers 4 --hidden_size 64 --num_attention_heads 8 \
  --num_attention_heads_kv=2 --ffn_hidden_size 176 --seq_length 64 --max_position_embeddings 64 --micro_batch_size 1 --global_batch_size 8 \
  --use_rms_norm --glu_activation swiglu --no_tie_embed_logits --data_impl mmap --train_iters 10 --lr 1e-3 --lr_decay_iters 10 --bf16
