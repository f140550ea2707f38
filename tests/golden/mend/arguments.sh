#!/bin/bash
# Options of a command line, and variables of a script.
GPUS_PER_NODE = 8
TENSOR=2
ARGS=(
  --num_layers 24
  --hidden-size 1024
  --num-attention-heds 16
  --seq-length 1024.0
  --max-position-embeddings 1024
  --micro-batch-size 4
  --global-batch-size 64
  --train-iters 1000
  --lr 0.00015
  --tokenizer-type NullTokeniser
  --vocab-size 1000
  --tensor-model-parallel-size $TENSR
)
torchrun --nproc_per_node 8 pretrain_gpt.py "${ARGS[@]}" --bf16 --use-flash-attn \
  --mock-data
