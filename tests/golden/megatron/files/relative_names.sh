#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
CONFIG=ds_$(date +%Y %m).json
deepspeed --num_gpus 1 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 4 --lr 1e-3 --train-iters 10 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 99 --deepspeed --deepspeed_config="$CONFIG" --local_rank 0
