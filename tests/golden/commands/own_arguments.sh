#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: own.sh TENSOR_PARALLEL SIZE
export CUDA_DEVICE_MAX_CONNECTIONS=1
case $2 in
  small) LAYERS=2 ;;
  *) LAYERS=$2 ;;
esac
torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size $1 --num-layers $LAYERS \
  --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 \
  --global-batch-size 4 --lr 1e-3 --train-iters 10 --mock-data --tokenizer-type NullTokenizer --vocab-size 99
