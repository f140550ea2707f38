#!/bin/bash
# torchrun takes integers, words and ranges.
GPUS_PER_NODE=1e1
ARGS=(--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64
  --micro-batch-size 1 --train-iters 10 --lr 1e-4 --mock-data)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes 1:4 pretrain_gpt.py ${ARGS[@]}
torchrun --nproc_per_node gpu --nnodes=0 pretrain_gpt.py ${ARGS[@]}
