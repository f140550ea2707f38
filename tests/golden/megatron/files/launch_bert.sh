#!/bin/bash
# What it trains is told by the program: no option says that it is no decoder.
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 ${MEGATRON}/pretrain_bert.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-4 \
  --mock-data --vocab-size 128 --tokenizer-type NullTokenizer --optimizer adam
