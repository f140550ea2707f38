#!/bin/bash
# A comment ends the command, so that the rest is lost.
torchrun --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 2 --hidden-size 64 \
  # a comment
  --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 
