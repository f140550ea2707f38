#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another program than that of decoders, and what the script's own arguments tell.
export CUDA_DEVICE_MAX_CONNECTIONS=1
DATA_PATH=$2
torchrun --nproc_per_node 8 pretrain_ict.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-file $1 \
  --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-4 \
  --data-path $DATA_PATH --split 949,50,1
