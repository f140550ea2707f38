#!/bin/bash
# A program of the user's own has options that nobody here knows; those that are nearly an option of Megatron are not.
torchrun --nproc-per-node 2 my/finetune.d/learn.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 \
  --seq-length 128 --max-position-embeddings 128 --micro-batch-size 2 --global-batch-size 16 --train-iters 10 \
  --lr 1e-3 --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data --my-flag 3 --use-te --lr-warmup-iter 2
