#!/bin/bash
# Options whose quotes hold more than their value, and one that a fork or another version has.
SCHEDULE=(
    --step-batch-size-schedule "0:16 2.4B:320 4.8B:624"
)
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 4 --lr 1e-4 --train-iters 100 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 100 \
    --global-batch-size 32 ${SCHEDULE[@]} \
    --no-final-layernorm \
    --clip-grad 1.0
