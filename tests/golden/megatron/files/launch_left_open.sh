#!/bin/bash
# What its arguments tell is unknown here.
TP=$1
PP=$2
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 --lr 1e-4 --min-lr $3 --train-iters 5 \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --save-interval $4 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 32000 --bf16
