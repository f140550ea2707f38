#!/bin/bash
# No environment gives arrays: a short name that is near another is misspelt.
ARGS=(--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64
  --micro-batch-size 1 --train-iters 10 --lr 1e-4 --mock-data)
torchrun --nproc_per_node 8 pretrain_gpt.py ${ARS[@]}
