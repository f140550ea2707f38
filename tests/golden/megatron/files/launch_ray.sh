#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ray starts a program of slime, which sets itself what it is not given; what both codes have is judged.
MODEL=(--num-layers 2 --hidden-size 64 --num-attention-heads 4 --clip-grad 1.0 0.5)
ray start --head --num-gpus 8
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py \
  --actor-num-nodes 1 --actor-num-gpus-per-node 8 \
  --hf-checkpoint /models/small --sglang-cuda-graph-bs 1 2 4 \
  "${MODEL[@]}" --lr abc
  --colocate
