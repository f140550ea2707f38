#!/bin/bash
# A conversion takes the sizes that a training does.
torchrun --nproc_per_node 1 hf2mcore_qwen2_moe.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --micro-batch-size 1 --target-tensor-model-parallel-size 2
