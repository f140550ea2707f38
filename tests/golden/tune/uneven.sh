#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 30 layers on 4 stages, of which the ends have less.
export CUDA_DEVICE_MAX_CONNECTIONS=1
PARALLEL="
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 4
    --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7
    --use-distributed-optimizer
"
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py $PARALLEL \
    --num-layers 30 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
    --untie-embeddings-and-output-weights --tokenizer-type NullTokenizer --vocab-size 128255 \
    --attention-dropout 0 --hidden-dropout 0 \
    --micro-batch-size 1 --global-batch-size 128 --recompute-granularity full --recompute-method uniform \
    --recompute-num-layers 1 --train-iters 1000 --lr 3e-4 --bf16 --data-path /data/tokens
