#!/bin/bash
# save needs save-interval, which may stand in what nobody here can read
EXTRA=$(cat options)
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --lr 1e-4 --train-iters 10 --save ckpt $EXTRA
