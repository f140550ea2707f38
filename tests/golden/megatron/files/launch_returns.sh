#!/bin/bash
python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 4 --train-iters 10 --lr 1e-3 \
  --mock-data --tokenizer-type NullTokenizer --vocab-size 100
