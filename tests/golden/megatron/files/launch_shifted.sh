#!/bin/bash
# Arguments that a script shifts away are others than those that it reads next.
OLD=$(realpath -m $1); shift
NEW=$1; shift 2
torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 4 --lr 1e-3 --train-iters 10 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 99 --load $OLD/checkpoints --save $NEW/checkpoints --save-interval 5 \
  --finetune --seed $1
