#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A window of 128 tokens in every second layer, as gpt-oss has.
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2880 --ffn-hidden-size 2880 \
    --num-attention-heads 64 --group-query-attention --num-query-groups 8 --kv-channels 64 --swiglu --normalization RMSNorm \
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --seq-length 8192 \
    --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 8 --train-iters 100 --lr 1e-4 --bf16 \
    --tokenizer-type NullTokenizer --vocab-size 201087 --data-path /data/tokens --use-distributed-optimizer \
    --window-size 127,0 --window-attn-skip-freq 2
