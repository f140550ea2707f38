#!/bin/bash
# Which option a variable names, nothing here tells; a fork's lists may have several words.
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 8 \
  --seq-length 512 --max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 32 --lr 1e-4 \
  --data-path a --tokenizer-type NullTokenizer --vocab-size 1000 --${DTYPE_OF_MINE} --train-iters $N \
  --deepspeed --num-experts 4 4 8
