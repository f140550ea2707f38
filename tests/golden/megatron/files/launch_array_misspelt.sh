#!/bin/bash
# One cause: the launch names an array that is not there.
ARGS=(
  --num-layers 4
  --hidden-size 64
  --num-attention-heads 4
)
torchrun --nproc_per_node 8 pretrain_gpt.py "${ARGZ[@]}" --seq-length 64 --max-position-embeddings 64 --mock-data
