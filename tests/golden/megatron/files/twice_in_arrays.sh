#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What stands behind means to override what stands before it.
ARGS=(
  --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32
  --micro-batch-size 1 --global-batch-size 4 --lr 1e-3 --train-iters 10 --mock-data
  --tokenizer-type NullTokenizer --vocab-size 99 --seed 1 --clip-grad 1.0 --log-interval 1
)
ARGS+=(
  --train-iters 20
  --log-interval 1
)
EXTRA="--seed 2 --weight-decay 0.1 --weight-decay 0.2"
torchrun --nproc_per_node 1 pretrain_gpt.py "${ARGS[@]}" $EXTRA --clip-grad 0.5
