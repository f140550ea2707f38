#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A part of a script, with a variable that stands in two places, and nothing that says how long to train.
source common.sh
if [ "$KIND" = small ]; then
  MICRO=${MICRO:-1}
else
  MICRO=${MICRO:-1}
fi
MODEL_OPTIONS=" \
  --num-layers 32 \
  --hidden-size 4096 \
  --ffn-hidden-size 14336 \
  --num-attention-heads 32 \
  --group-query-attention \
  --num-query-groups 8 \
  --seq-length 8192 \
  --max-position-embeddings 8192 \
  --position-embedding-type rope \
  --normalization RMSNorm \
  --swiglu \
  --disable-bias-linear \
  --untie-embeddings-and-output-weights \
  --tokenizer-type NullTokenizer \
  --vocab-size 128255 \
  --attention-dropout 0 \
  --hidden-dropout 0 \
  --micro-batch-size $MICRO \
  --global-batch-size $TRAINING \
  --lr 3e-4 \
  --bf16"
