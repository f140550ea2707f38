#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Degrees in variables; what a layout needs of the environment is not there.

TP=1 PP=8 CHUNK=1
PARALLEL="--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP"
if ((CHUNK > 0)); then
  PARALLEL="$PARALLEL --num-layers-per-virtual-pipeline-stage $CHUNK"
fi
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py $PARALLEL --use-distributed-optimizer \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
    --untie-embeddings-and-output-weights --tokenizer-type NullTokenizer --vocab-size 128255 \
    --attention-dropout 0 --hidden-dropout 0 \
    --micro-batch-size 1 --global-batch-size 128 --train-iters 1000 --lr 3e-4 --bf16 --data-path /data/tokens
